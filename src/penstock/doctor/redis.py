"""A queue in Redis or Valkey."""

from __future__ import annotations

from penstock.adapters.redis.address import parse
from penstock.adapters.redis.durability import OLDEST
from penstock.adapters.redis.facts import RedisFacts
from penstock.adapters.redis.facts import look as look_at_server
from penstock.doctor.case import Case
from penstock.doctor.clock import judge_clock
from penstock.doctor.finding import Finding, broken, ok, warning


async def facts(url: str) -> RedisFacts:
    return await look_at_server(parse(url))


async def look(part: str, url: str, case: Case) -> list[Finding]:
    found = await facts(url)
    volatile = case.config.settings.allow_volatile
    return [
        judge_server(part, parse(url).shown, found),
        judge_durability(part, found, volatile=volatile),
        judge_eviction(part, found, volatile=volatile),
        judge_clock(part, found.clock),
    ]


def judge_server(part: str, place: str, facts: RedisFacts) -> Finding:
    if facts.version is not None and facts.version < OLDEST:
        return broken(part, f"{place} is {facts.name}", "use Redis 7.0 or Valkey 7.2, or newer")
    if facts.replica:
        found = f"{place} is a replica and takes no writes"
        return broken(part, found, "name the primary in the URL")
    if facts.loading:
        return broken(part, f"{place} is loading its data", "wait until it has, and ask again")
    return ok(part, f"{place}, {facts.name or 'which does not tell its version'}")


def judge_durability(part: str, facts: RedisFacts, *, volatile: bool) -> Finding:
    name = f"{part} durability"
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
    loses = "the last second" if facts.fsync == "everysec" else "half a minute or more"
    found = f"appendfsync is {facts.fsync}: a power loss may cost {loses}"
    return warning(name, found, "set `appendfsync always`, unless that is acceptable")


def judge_eviction(part: str, facts: RedisFacts, *, volatile: bool) -> Finding:
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
