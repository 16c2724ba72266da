"""What the design asks for, and which measurements answer: the rows of docs/proof.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.kept import Section
from benchmarks.report import Result


@dataclass(slots=True, frozen=True)
class Answer:
    """Results of one benchmark: those whose line matches."""

    section: str
    what: str
    """A regular expression for the whole of what was measured."""

    def found(self, sections: Mapping[str, Section]) -> list[Result]:
        section = sections.get(self.section)
        results = section.results if section else []
        return [result for result in results if re.fullmatch(self.what, result.what)]


@dataclass(slots=True, frozen=True)
class Wanted:
    """One target of the design, and all that has to be measured for it."""

    what: str
    target: str
    answers: tuple[Answer, ...]


TARGETS = (
    Wanted(
        "no-op jobs/s, SQLite, every feature on",
        ">= 6x huey's default with results, >= 2x huey with fsync off",
        (Answer("jobs", "every feature on.*"), Answer("jobs", "against huey without fsync")),
    ),
    Wanted(
        "no-op jobs/s, Redis or Valkey",
        ">= 4x the fastest Redis peer",
        (Answer("redis", "no-op jobs"),),
    ),
    Wanted("no-op jobs/s, PostgreSQL", ">= 1.2x PgQueuer", (Answer("postgres", "no-op jobs"),)),
    Wanted(
        "enqueue/s, batch",
        ">= 1.5x the fastest peer per queue",
        (
            Answer("enqueue", "batch"),
            Answer("redis", "enqueue, batch"),
            Answer("postgres", "enqueue, batch"),
        ),
    ),
    Wanted(
        "enqueue to handler start, idle",
        "p50 at or below every peer; p99 reported",
        (
            Answer("latency", "p(50|99), worker in .*"),
            Answer("redis", "enqueue to handler start, idle, p.*"),
            Answer("postgres", "enqueue to handler start, idle, p.*"),
        ),
    ),
    Wanted(
        "all work done after SIGKILL and a restart",
        "<= 2 s same host, <= 20 s other host, 0 lost, 0 stale writes",
        (
            Answer("recovery", ".*"),
            Answer("redis", "after SIGKILL and a restart.*"),
            Answer("postgres", "after SIGKILL and a restart.*"),
            Answer("redis", "after SIGKILL, taken over by another host.*"),
            Answer("postgres", "after SIGKILL, taken over by another host.*"),
            Answer("fencing", ".*"),
            Answer("redis", "late writes.*"),
            Answer("postgres", "late writes.*"),
        ),
    ),
    Wanted(
        "embedder down",
        "< 1 % CPU, at most 10 real tries in 5 min, no attempts spent, "
        "resumes <= 5 s after its return",
        (Answer("outage", ".*"), Answer("outage_course", "from its return.*")),
    ),
    Wanted(
        "100,000 jobs of a blocked lane in front",
        "other lanes finish within 1.1x of their time alone",
        (Answer("head_of_line", ".*behind.*blocked lane"), Answer("outage_course", "another.*")),
    ),
    Wanted(
        "lane use, 4 processes",
        "never above, >= 97 % of what binds (down to intervals of 20 ms)",
        (Answer("lane_use", ".*"),),
    ),
    Wanted(
        "tokens of a provider used, 4 processes",
        "never above where the bound holds, no 429, >= 90 %; bounds too low by up to 3x: above by "
        "no more than the error in flight, nothing lost",
        (
            Answer("token_use", ".*(sliding|bucket)(, requests that say nothing)?(: 429s)?"),
            Answer("token_use", ".*too low.*"),
        ),
    ),
    Wanted(
        "permits/s of one lane that counts tokens",
        ">= 2,000 on each queue",
        (Answer("token_use", ".*a lane that counts tokens"),),
    ),
    Wanted("idle process", "< 0.5 % CPU", (Answer("idle", "CPU"),)),
    Wanted(
        "waiters woken by one change",
        "10,000 in process p99 <= 100 ms; 1,000 HTTP long polls p99 <= 250 ms",
        (Answer("waiters", ".*"), Answer("http", ".*long polls")),
    ),
    Wanted(
        "ingest, same embedder and parallelism",
        ">= 2x LlamaIndex IngestionPipeline at its best setting, flat memory",
        (
            Answer("ingest", "documents made searchable, stored.*"),
            Answer("ingest_pdfs", "memory with.*"),
        ),
    ),
    Wanted(
        "hybrid search, 100k chunks, embedded, query embedding included",
        "p50 <= 60 ms, p99 <= 250 ms for question-length queries",
        (Answer("search", "p(50|99), .*"),),
    ),
    Wanted(
        "`penstock --help` / server ready",
        "<= 0.2 s / <= 2 s",
        (Answer("cli_help", ".*"), Answer("http", "ready")),
    ),
    Wanted(
        "claim time by backlog",
        "at most 2x with 1,000,000 queued against 1,000",
        (Answer("claim", ".*"),),
    ),
    Wanted(
        "steps of 100 jobs at a time",
        ">= 10x DBOS at its best setting, same durability",
        (Answer("steps", "steps/s, .*"),),
    ),
    Wanted(
        "steps of one job, one after another",
        "p50 at most 1.2x of a bare durable commit of that store",
        (Answer("steps", "p50 of a step.*"),),
    ),
    Wanted(
        "a job with 10,000 records is resumed",
        "within 1 s",
        (Answer("steps", "resume of .*"),),
    ),
    Wanted(
        "100,000 sleeping jobs",
        "CPU under 0.5 % of a core, wake-up late by at most 1 s",
        (Answer("steps", ".* sleeping jobs: .*"),),
    ),
    Wanted(
        "jobs without steps",
        "no-op jobs/s within 2 % of the commit before there were steps",
        (Answer("steps", "no-op jobs/s, beside .*"),),
    ),
)
