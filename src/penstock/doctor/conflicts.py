"""Checks for settings that are valid but conflict."""

from __future__ import annotations

from penstock.doctor.context import Case
from penstock.doctor.diagnosis import Diagnosis, ok, warning

SHORT_LEASE, LONG_LEASE = 3.0, 120.0
LONG_POLL = 60.0


async def look(case: Case) -> list[Diagnosis]:
    config = case.config
    one, answers, research = config.engine, config.answers, config.research
    said = [
        (
            one.lease_seconds < SHORT_LEASE,
            f"lease_seconds is {one.lease_seconds:g}: a pause of the machine costs running jobs",
            f"set it to {SHORT_LEASE:g} or more; 15 is usual",
        ),
        (
            one.lease_seconds > LONG_LEASE,
            f"lease_seconds is {one.lease_seconds:g}: what a dead machine held waits that long",
            "set it to 15, however long jobs take: leases are renewed",
        ),
        (
            one.upkeep_seconds > one.lease_seconds,
            f"upkeep_seconds ({one.upkeep_seconds:g}) is longer than a lease",
            "set it to 0.5: it decides how soon the dead are noticed",
        ),
        (
            max(one.poll_seconds, one.reconnect_cap_seconds) > LONG_POLL,
            "poll_seconds or reconnect_cap_seconds is over a minute",
            "shorten it: after a lost wake-up or an outage work resumes only then",
        ),
        (
            one.retry_base_seconds > one.retry_cap_seconds,
            "retry_base_seconds is longer than retry_cap_seconds, which then always holds",
            "make the base the shorter one",
        ),
        (
            answers.search_loop_seconds >= answers.answer_seconds,
            "search_loop_seconds leaves no time of answer_seconds to write the answer",
            "make it half of answer_seconds",
        ),
        (
            answers.answer_seconds > config.server.deadline_seconds,
            "answer_seconds is longer than server.deadline_seconds, after which callers are told "
            "to come back",
            "raise server.deadline_seconds",
        ),
        (
            max(research.provider_seconds, research.page_seconds) > research.search_seconds,
            "provider_seconds or page_seconds is longer than search_seconds, which ends both",
            "raise search_seconds",
        ),
    ]
    bad = [warning("settings", found, advice) for wrong, found, advice in said if wrong]
    return bad or [ok("settings", "no conflicts")]
