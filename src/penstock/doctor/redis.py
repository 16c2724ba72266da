"""Checks a queue in Redis or Valkey."""

from __future__ import annotations

from penstock.adapters.redis.address import parse
from penstock.adapters.redis.durability import OLDEST, WAITAOF
from penstock.adapters.redis.facts import RedisFacts
from penstock.adapters.redis.facts import look as look_at_server
from penstock.doctor.context import Case, Diagnosis, broken, ok, warning
from penstock.doctor.databases import judge_clock


async def facts(url: str) -> RedisFacts:
    return await look_at_server(parse(url))


async def look(part: str, url: str, case: Case) -> list[Diagnosis]:
    found = await facts(url)
    settings = case.config.engine
    volatile = settings.allow_volatile
    return [
        judge_server(part, parse(url).shown, found),
        judge_durability(part, found, volatile=volatile, wait_aof=settings.wait_aof),
        judge_eviction(part, found, volatile=volatile),
        judge_clock(part, found.clock),
    ]


def judge_server(part: str, place: str, facts: RedisFacts) -> Diagnosis:
    if facts.version is not None and facts.version < OLDEST:
        return broken(part, f"{place} is {facts.name}", "use Redis 7.0 or Valkey 7.2, or newer")
    if facts.replica:
        found = f"{place} is a replica and takes no writes"
        return broken(part, found, "name the primary in the URL")
    if facts.loading:
        return broken(part, f"{place} is loading its data", "wait until it has, and ask again")
    return ok(part, f"{place}, {facts.name or 'which does not tell its version'}")


def judge_durability(
    part: str, facts: RedisFacts, *, volatile: bool, wait_aof: bool = False
) -> Diagnosis:
    name = f"{part} durability"
    can_wait = facts.version is None or facts.version >= WAITAOF
    if wait_aof and not can_wait:
        found = f"wait_aof is set, and {facts.name} has no WAITAOF"
        return broken(name, found, "use Redis 7.2 or Valkey, or set `appendfsync always` instead")
    if facts.append_only is None:
        found = "the server does not tell this user whether it has an append-only file"
        return warning(name, found, "let the user run INFO and CONFIG GET, or look on the server")
    if not facts.append_only:
        found = "appendonly is no: a restart of the server loses every job"
        if volatile:
            advice = "allow_volatile says that this is acceptable; else set `appendonly yes`"
            return warning(name, found, advice)
        return broken(name, found, "set `appendonly yes` on the server")
    if facts.fsync in (None, "always"):
        return ok(name, f"append-only file, appendfsync {facts.fsync or 'not told'}")
    if wait_aof and facts.fsync == "everysec":
        found = "appendfsync is everysec and wait_aof is set: the server's death costs no jobs"
        return ok(name, f"{found}; a power loss may cost the last second")
    loses = "the last second" if facts.fsync == "everysec" else "half a minute or more"
    found = f"appendfsync is {facts.fsync}: a power loss may cost {loses}"
    advice = "set `appendfsync always`, unless that is acceptable"
    if facts.fsync == "everysec":
        found += ", and so may the death of the server alone while its disk is slow"
        if can_wait:
            advice = (
                "set `engine: {wait_aof: true}`, or `appendfsync always`, unless that is acceptable"
            )
    return warning(name, found, advice)


def judge_eviction(part: str, facts: RedisFacts, *, volatile: bool) -> Diagnosis:
    name = f"{part} eviction"
    if facts.eviction is None:
        found = "the server does not tell this user its maxmemory-policy"
        return warning(name, found, "let the user run INFO, or look on the server")
    if facts.eviction == "noeviction":
        return ok(name, "maxmemory-policy is noeviction")
    found = f"maxmemory-policy is {facts.eviction}: jobs are deleted when memory is full"
    if volatile:
        return warning(name, found, "allow_volatile says that this is acceptable")
    return broken(name, found, "set `maxmemory-policy noeviction` on the server")
