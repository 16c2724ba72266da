"""Checks a queue or a store in PostgreSQL."""

from __future__ import annotations

from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database
from penstock.adapters.postgres.documents.schema import OLDEST_PGVECTOR
from penstock.adapters.postgres.facts import PostgresFacts
from penstock.adapters.postgres.facts import look as look_at_server
from penstock.adapters.postgres.schema import OLDEST_SERVER
from penstock.doctor.context import Case
from penstock.doctor.database_facts import judge_clock, judge_schema
from penstock.doctor.diagnosis import Diagnosis, broken, ok, skipped, warning


async def facts(url: str) -> PostgresFacts:
    return await look_at_server(Database(parse(url), poll_only=True))


async def look(part: str, url: str, case: Case, *, documents: bool) -> list[Diagnosis]:
    found = await facts(url)
    said = [judge_server(part, parse(url).shown, found), judge_schema(part, found.queue)]
    said += [judge_durability(part, found), judge_clock(part, found.clock)]
    if documents:
        said.append(judge_pgvector(found, wanted=bool(case.config.store)))
        if found.documents.version:
            said.append(judge_schema("documents", found.documents))
    return said


def judge_server(part: str, place: str, facts: PostgresFacts) -> Diagnosis:
    if facts.major < OLDEST_SERVER:
        found = f"{place} is PostgreSQL {facts.version}"
        return broken(part, found, f"upgrade the server to {OLDEST_SERVER} or newer")
    if facts.standby:
        found = f"{place} is a standby and takes no writes"
        return broken(part, found, "name the primary in the URL")
    return ok(part, f"{place}, PostgreSQL {facts.version}")


def judge_durability(part: str, facts: PostgresFacts) -> Diagnosis:
    name, on = f"{part} durability", facts.settings
    if on["fsync"] != "on":
        found = "fsync is off: a power loss may destroy the whole database"
        return broken(name, found, "set `fsync = on` in postgresql.conf and reload")
    if on["full_page_writes"] != "on":
        found = "full_page_writes is off: a power loss may damage tables"
        return broken(name, found, "set `full_page_writes = on` in postgresql.conf and reload")
    if on["synchronous_commit"] == "off":
        found = "synchronous_commit is off: a crash of the server loses jobs it had just accepted"
        advice = "set `synchronous_commit = on` for the server, the database or this user"
        return warning(name, found, advice)
    return ok(name, "every commit waits for the disk")


def judge_pgvector(facts: PostgresFacts, *, wanted: bool) -> Diagnosis:
    """Check pgvector. `wanted`: documents are configured to be stored here."""
    vector, oldest = facts.pgvector, ".".join(map(str, OLDEST_PGVECTOR))
    if vector.installed is not None:
        if tuple(int(one) for one in vector.installed.split(".")[:2]) >= OLDEST_PGVECTOR:
            return ok("pgvector", f"version {vector.installed}")
        advice = f"install {oldest} or newer on the server, then ALTER EXTENSION vector UPDATE"
        return broken("pgvector", f"version {vector.installed} is too old", advice)
    if not vector.available:
        found = "the server does not have it, so there can be no documents"
        advice = "install pgvector there, or set `store: sqlite:///documents.db`"
        return broken("pgvector", found, advice) if wanted else skipped("pgvector", found, advice)
    if not vector.creatable:
        found = "this user may not create it in the database, so there can be no documents"
        advice = "let a superuser run CREATE EXTENSION vector there once"
        return broken("pgvector", found, advice) if wanted else warning("pgvector", found, advice)
    return ok("pgvector", "the server has it, and the first process that needs it creates it")
