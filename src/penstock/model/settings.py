"""Sections whose settings can also be given in the environment and as arguments, each by its name
alone. All times are in seconds; tests scale them down."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from penstock.errors import ConfigError
from penstock.model.section import check_fields, setting

_CONTACT = re.compile(r"[!-'*-~]*")
_LANGUAGES = re.compile(r"[A-Za-z]\w*(\+[A-Za-z]\w*)*", re.ASCII)


@dataclass(slots=True, frozen=True)
class OutboundConfig:
    """Requests to the outside."""

    fetch_allow: tuple[str, ...] = setting((), example="[intranet.example:8080]")
    """`host:port` of servers that may be fetched from although not on the open internet."""
    contact: str = ""
    """Who runs this, told to web servers whose pages are fetched: a mail address or a web address.
    Requests then say `Penstock/0.1.0 (+mail@example.org)`."""
    trace_hosts: tuple[str, ...] = setting((), example="[embedder.internal]")
    """Hosts that are told which trace a request belongs to (`traceparent`): services of your own
    that trace as well. Addresses that others name are never told."""

    def __post_init__(self) -> None:
        if not _CONTACT.fullmatch(self.contact):
            raise ConfigError(
                "contact must be a mail or web address, in ASCII and without blanks",
                setting="contact",
            )


@dataclass(slots=True, frozen=True)
class LoggingConfig:
    """Logging, and values that people are not shown."""

    log_format: Literal["text", "json"] = "text"
    """What `serve`, `worker`, `mcp` and `librarian` log: `text`, or `json` with a line for each
    entry."""
    log_errors: Literal["message", "type"] = "message"
    """What the log tells of an error that ended a job of yours: `message`, with its type, place and
    causes, or `type`, without what it says, which may quote a payload."""
    hidden_names: tuple[str, ...] = setting((), example="[iban, birth_date]")
    """Names whose values in payloads and results people are not shown, in the log, on the dashboard
    and by commands, besides `password`, `secret`, `token`, `api_key`, `authorization`, `cookie` and
    the like."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(slots=True, frozen=True)
class EngineConfig:
    """Storing and running jobs."""

    max_workers: int = setting(10, least=1)
    """Jobs run at a time by one process."""
    reserved_workers: int = 0
    """Of those, kept free for jobs of high priority. Others are then not claimed ahead."""
    internal_queue: int = setting(100, least=1)
    """Jobs claimed ahead of the workers, at most."""
    prefetch_seconds: float = 5.0
    """A job claimed ahead and not started within this goes back."""
    lease_seconds: float = setting(15.0, least=0.1)
    """How long a process that stopped renewing keeps its jobs."""
    job_timeout: float = setting(60.0, least=0.001)
    """One run's limit where the handler names none."""
    max_retries: int = 3
    """Retries where the handler names none."""
    retry_base_seconds: float = 1.0
    retry_cap_seconds: float = 300.0
    """The n-th retry waits between 0 and min(cap, base * 2**(n-1)), at random."""
    # Pauses of nothing would be hot loops.
    reconnect_first_seconds: float = setting(0.1, least=0.001)
    reconnect_cap_seconds: float = setting(2.0, least=0.001)
    """Waits between tries while the queue cannot be reached."""
    upkeep_seconds: float = setting(0.5, least=0.01)
    """How often a process looks for dead ones."""
    poll_seconds: float = setting(1.0, least=0.01)
    """A look at the queue without a wake-up, in case one was lost."""
    progress_seconds: float = 0.25
    """A running job's progress is stored this often at most."""
    grace_seconds: float = 25.0
    """How long a stop waits for running jobs."""
    ageing_seconds: float = setting(300.0, least=0.01)
    """A job that waited this long is lifted one priority, and again after as long."""
    retention_seconds: float = 7 * 86400.0
    """How long completed and cancelled jobs are kept. Dead letters stay until discarded."""
    max_steps: int = setting(10_000, least=1)
    """Steps that one job records, at most."""
    max_steps_bytes: int = setting(64 * 1024 * 1024, least=1)
    """Bytes that the results of all steps of one job take, at most. A single one takes 1 MiB."""
    durable: bool = True
    """SQLite: every commit survives a power loss."""
    wait_aof: bool = False
    """Redis 7.2 or newer, Valkey: an enqueue waits until the server's append-only file has the job,
    so that the death of the server does not lose it while its disk is slow."""
    allow_volatile: bool = False
    """Redis: use a server that may lose jobs, having no append-only file or evicting keys."""
    poll_only: bool = False
    """PostgreSQL: use nothing that belongs to a session (LISTEN, prepared statements), for poolers
    that give each transaction another. Changes by other processes are then seen by polling."""
    outbound: OutboundConfig = setting(OutboundConfig, read=False)
    logging: LoggingConfig = setting(LoggingConfig, read=False)
    """Sections of their own, which the engine needs as well."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.reserved_workers >= self.max_workers:
            raise ConfigError(
                "reserved_workers must be fewer than max_workers", setting="reserved_workers"
            )
        if self.max_workers > 1000:
            raise ConfigError(
                "max_workers must be at most 1000; start more processes instead",
                setting="max_workers",
            )


@dataclass(slots=True, frozen=True)
class DocumentsConfig:
    """Reading, chunking and searching documents."""

    document_bytes: int = setting(50_000_000, least=1)
    """A larger document is refused."""
    keep_originals: bool = False
    """Keep original files, which are not masked, also once they are searchable."""
    parsers: int = setting(2, least=1)
    """Documents parsed at a time by one process, each in a child process; and as many scanned
    pages, where those are read."""
    parse_seconds: float = 60.0
    """A document, or a scanned page, that takes a parser longer fails for good. Waiting for a
    parser does not count."""
    scans: Literal["none", "ocr", "model"] = "none"
    """Who reads pages without text, and pictures: `none`, `ocr` (tesseract, on this machine) or
    `model` (that of `llm.models.ingest`, **which receives them unmasked**)."""
    ocr_languages: str = "eng"
    """What tesseract is to know: names of its data, such as `eng+jpn+kor`."""
    chunk_tokens: int = setting(500, least=50)
    chunk_overlap: int = setting(128, least=8)
    """The size of what is found, and how much neighbours share; at most a quarter of the size."""
    fetch_seconds: float = setting(86400.0, least=0.1)
    """A document whose address could not be fetched within this time fails."""
    question_seconds: float = setting(5.0, least=0.1)
    """A search whose question is not embedded within this time answers by its words alone."""
    search_min_coverage: float = setting(0.15, most=1)
    """A passage is found that holds at least this share of the question's words, the rare ones
    counting most, or whose vector is near enough. 0: every search fills its limit."""
    search_min_similarity: float = setting(0.0, most=1)
    """The cosine from which on a vector is near enough. 0: what was measured for the offline
    embedder; with another, whatever vectors find is taken for near."""
    unused_vectors_seconds: float = 7 * 86400.0
    """How long vectors are kept that no document needs any more, or of a model that was replaced:
    a text that comes back meanwhile is not embedded again."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not _LANGUAGES.fullmatch(self.ocr_languages):
            raise ConfigError(
                f"ocr_languages must be like eng or eng+jpn, not {self.ocr_languages!r}",
                setting="ocr_languages",
            )


@dataclass(slots=True, frozen=True)
class ResearchConfig:
    """Searches of research tasks."""

    search_providers: tuple[str, ...] = setting((), example="[openalex, documents]")
    """Whom searches ask unless told otherwise. Empty: all that are configured or have a public
    address, and the documents that are here."""
    provider_seconds: float = setting(60.0, least=0.1)
    """A search goes on without a provider that has not answered in this time."""
    page_seconds: float = setting(120.0, least=0.1)
    """A search goes on without pages that could not be read in this time."""
    page_fresh_seconds: float = 86400.0
    """A page that was fetched within this time is not fetched again for a search."""
    search_seconds: float = setting(1800.0, least=1)
    """One run of a search takes this long at most."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(slots=True, frozen=True)
class AnswersConfig:
    """Time limits of answers, and how much evidence a model reads."""

    answer_seconds: float = setting(90.0, least=1)
    """A question is answered within this time, with what is there by then."""
    search_loop_seconds: float = setting(45.0, least=0.1)
    """Of that, how long evidence is looked for at most."""
    evidence_tokens: int = setting(6000, least=100)
    """How much of what was found a language model is shown at a time."""

    def __post_init__(self) -> None:
        check_fields(self)
