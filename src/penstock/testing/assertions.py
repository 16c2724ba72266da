"""Assertions about the jobs that a test has enqueued."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from penstock.errors import ConfigError
from penstock.model.job import Job
from penstock.model.payload import plain_payload
from penstock.testing.under_test import tested
from penstock.wiring.handles import JobHandle

MOST_SHOWN = 10
CHECKED = frozenset({"tenant", "priority", "lane", "key", "log", "state", "parent_id", "deadline"})


def assert_enqueued(
    kind: str | JobHandle[..., Any],
    payload: Mapping[str, Any] | None = None,
    *,
    times: int | None = None,
    **fields: Any,
) -> list[Job]:
    """Assert that jobs of this kind are stored, and return them in the order they were enqueued,
    whatever has become of them since.

    `payload` names what the payloads must have; they may have more, on every level. `times` is how
    many there are; without it one or more. `fields` are fields of `Job`: tenant, priority, lane,
    key, log, state, parent_id, deadline. A job of a transaction that is not committed is not
    stored."""
    name = kind.kind if isinstance(kind, JobHandle) else kind
    jobs = tested().jobs()
    matching = [job for job in jobs if job.kind == name and not _differences(job, payload, fields)]
    if (times is None and matching) or len(matching) == times:
        return matching
    wanted = "a job" if times is None else f"{times} job{'s' * (times != 1)}"
    found = len(matching) or "none"
    what = _told(name, payload, fields)
    raise AssertionError(
        "\n".join(
            [f"expected {wanted} {what}, found {found}", *_others(name, jobs, payload, fields)]
        )
    )


def refute_enqueued(
    kind: str | JobHandle[..., Any], payload: Mapping[str, Any] | None = None, **fields: Any
) -> None:
    """Assert that no such job is stored; see `assert_enqueued`."""
    assert_enqueued(kind, payload, times=0, **fields)


@contextmanager
def inline() -> Iterator[None]:
    """Have what the app of this test enqueues in the block run at once, in the task that enqueues
    it: stored, claimed, run and settled as a worker does, with its steps, its lane and its result
    as JSON. What the handler raises is raised by `enqueue`; the job is left as the engine leaves
    it, for a retry or failed. What cannot start now (a delay, a lane without a free slot, a
    transaction that is not committed) stays in the queue."""
    from penstock.testing.inline_mode import running_inline

    own = tested()
    if own.virtual:
        raise ConfigError(
            "inline mode and the virtual clock do not go together: with the clock, "
            "penstock_clock.advance() runs what is due"
        )
    with running_inline(own.app):
        yield


def _differences(job: Job, payload: Mapping[str, Any] | None, fields: dict[str, Any]) -> list[str]:
    """How a job differs from what is wanted, in words."""
    if unknown := sorted(fields.keys() - CHECKED):
        raise TypeError(
            f"{', '.join(unknown)}: what can be asked of a job is {', '.join(sorted(CHECKED))}; "
            "look at the jobs that assert_enqueued returns for the rest"
        )
    found = []
    for name, wanted in fields.items():
        have = getattr(job, name)
        if name == "priority" and isinstance(wanted, str):
            have = have.name.lower()
        if have != wanted:
            found.append(f"{name} is {have!r}, not {wanted!r}")
    return [*found, *_missing(_plain(payload), job.payload, "payload")]


def _plain(payload: Mapping[str, Any] | None) -> Any:
    """What is wanted as it would be stored; what is no JSON, such as `mock.ANY`, as it is."""
    if payload is None:
        return {}
    return {name: _plain_value(value) for name, value in payload.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _plain(value)
    try:
        return plain_payload({"value": value})[0]["value"]
    except Exception:
        return value


def _missing(wanted: Any, have: Any, where: str) -> list[str]:
    if isinstance(wanted, Mapping) and isinstance(have, Mapping):
        found = []
        for name, value in wanted.items():
            place = f"{where}[{name!r}]"
            if name not in have:
                found.append(f"{place} is not there")
            else:
                found += _missing(value, have[name], place)
        return found
    # The other way round `mock.ANY` and pytest.approx would not be asked.
    return [] if wanted == have else [f"{where} is {have!r}, not {wanted!r}"]


def _told(name: str, payload: Mapping[str, Any] | None, fields: dict[str, Any]) -> str:
    given = [f"payload {payload!r}"] if payload is not None else []
    given += [f"{field} {value!r}" for field, value in fields.items()]
    return f"of {name!r}" + (f" with {', '.join(given)}" if given else "")


def _others(
    name: str, jobs: list[Job], payload: Mapping[str, Any] | None, fields: dict[str, Any]
) -> list[str]:
    """What is there instead."""
    if not jobs:
        return ["nothing is enqueued"]
    lines = []
    for job in [job for job in jobs if job.kind == name][-MOST_SHOWN:]:
        why = "; ".join(_differences(job, payload, fields)) or "matches"
        lines.append(f"  {name} {json.dumps(job.payload)} ({job.state}): {why}")
    others = Counter(job.kind for job in jobs if job.kind != name)
    if others:
        listed = ", ".join(f"{kind} ({count})" for kind, count in sorted(others.items()))
        lines.append(f"  other kinds: {listed}")
    return lines
