"""Settings of the engine. All times are in seconds; tests scale them down."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from penstock.errors import ConfigError

LOG_FORMATS = ("text", "json")
LOG_ERRORS = ("message", "type")
SCANS = ("none", "ocr", "model")
_CONTACT = re.compile(r"[!-'*-~]*")
_LANGUAGES = re.compile(r"[A-Za-z]\w*(\+[A-Za-z]\w*)*", re.ASCII)
_LEAST = {
    "max_workers": 1,
    "internal_queue": 1,
    "lease_seconds": 0.1,
    "job_timeout": 0.001,
    # Pauses of nothing would be hot loops.
    "poll_seconds": 0.01,
    "upkeep_seconds": 0.01,
    "reconnect_first_seconds": 0.001,
    "reconnect_cap_seconds": 0.001,
    "ageing_seconds": 0.01,
    "document_bytes": 1,
    "fetch_seconds": 0.1,
    "provider_seconds": 0.1,
    "page_seconds": 0.1,
    "search_seconds": 1,
    "answer_seconds": 1,
    "search_loop_seconds": 0.1,
    "question_seconds": 0.1,
    "evidence_tokens": 100,
    "parsers": 1,
    "chunk_tokens": 50,
    "chunk_overlap": 8,
}


@dataclass(slots=True, frozen=True)
class Settings:
    max_workers: int = 10
    """Jobs run at a time by one process."""
    reserved_workers: int = 0
    """Of those, kept free for jobs of high priority. Others are then not claimed ahead."""
    internal_queue: int = 100
    """Jobs claimed ahead of the workers, at most."""
    prefetch_seconds: float = 5.0
    """A job claimed ahead and not started within this goes back."""
    lease_seconds: float = 15.0
    """How long a process that stopped renewing keeps its jobs."""
    job_timeout: float = 60.0
    """One run's limit where the handler names none."""
    max_retries: int = 3
    """Retries where the handler names none."""
    retry_base_seconds: float = 1.0
    retry_cap_seconds: float = 300.0
    """The n-th retry waits between 0 and min(cap, base * 2**(n-1)), at random."""
    reconnect_first_seconds: float = 0.1
    reconnect_cap_seconds: float = 2.0
    """Waits between tries while the queue cannot be reached."""
    upkeep_seconds: float = 0.5
    """How often a process looks for dead ones."""
    poll_seconds: float = 1.0
    """A look at the queue without a wake-up, in case one was lost."""
    progress_seconds: float = 0.25
    """A running job's progress is stored this often at most."""
    grace_seconds: float = 25.0
    """How long a stop waits for running jobs."""
    ageing_seconds: float = 300.0
    """A job that waited this long is lifted one priority, and again after as long."""
    retention_seconds: float = 7 * 86400.0
    """How long completed and cancelled jobs are kept. Dead letters stay until discarded."""
    durable: bool = True
    """SQLite: every commit survives a power loss."""
    wait_aof: bool = False
    """Redis 7.2 or newer, Valkey: an enqueue waits until the server's append-only file has the job,
    so that the death of the server does not lose it while its disk is slow."""
    allow_volatile: bool = False
    """Redis: use a server that may lose jobs, having no append-only file or evicting keys."""
    store: str = ""
    """Where documents and API keys are: `sqlite:///documents.db`, `postgresql://...`. Empty: where
    the queue is."""
    blobs: str = ""
    """Where original files are until they are searchable: a folder, `s3://bucket/prefix` or
    `gs://bucket/prefix`. Empty: beside the store's file; PostgreSQL has none, so name a place that
    all worker processes reach."""
    document_bytes: int = 50_000_000
    """A larger document is refused."""
    keep_originals: bool = False
    """Keep original files, which are not masked, also once they are searchable."""
    parsers: int = 2
    """Documents parsed at a time by one process, each in a child process; and as many scanned
    pages, where those are read."""
    parse_seconds: float = 60.0
    """A document, or a scanned page, that takes a parser longer fails for good. Waiting for a
    parser does not count."""
    scans: str = "none"
    """Who reads pages without text, and pictures: `none`, `ocr` (tesseract, on this machine) or
    `model` (that of `llm.models.ingest`, **which receives them unmasked**)."""
    ocr_languages: str = "eng"
    """What tesseract is to know: names of its data, such as `eng+jpn+kor`."""
    chunk_tokens: int = 500
    chunk_overlap: int = 128
    """The size of what is found, and how much neighbours share; at most a quarter of the size."""
    idempotency_seconds: float = 86400.0
    """How long the server gives the same answer to requests with the same Idempotency-Key."""
    actions_seconds: float = 90 * 86400.0
    """How long the server remembers what callers did to jobs, lanes and documents."""
    hidden_names: str = ""
    """Names, with commas between, whose values in payloads and results people are not shown,
    besides `password`, `secret`, `token`, `api_key`, `authorization`, `cookie` and the like."""
    fetch_allow: str = ""
    """`host:port`, several with commas between: may be fetched although not on the open internet.
    Also a section of `penstock.yaml`: `fetch: {allow: ["intranet.example:8080"]}`."""
    contact: str = ""
    """Who runs this, told to web servers whose pages are fetched: a mail address or a web address.
    Requests then say `Penstock/0.1.0 (+mail@example.org)`."""
    trace_hosts: str = ""
    """Hosts, with commas between, that are told which trace a request belongs to (`traceparent`):
    services of your own that trace as well. Addresses that others name are never told."""
    log_format: str = "text"
    """What `serve`, `worker`, `mcp` and `librarian` log: `text`, or `json` with a line for each
    entry."""
    log_errors: str = "message"
    """What the log tells of an error that ended a job of yours: `message`, with its type, place and
    causes, or `type`, without what it says, which may quote a payload."""
    fetch_seconds: float = 86400.0
    """A document whose address could not be fetched within this time fails."""
    search_providers: str = ""
    """Whom searches of research tasks ask unless told otherwise, with commas between. Empty: all
    that are configured or have a public address, and the documents that are here."""
    provider_seconds: float = 60.0
    """A search goes on without a provider that has not answered in this time."""
    page_seconds: float = 120.0
    """A search goes on without pages that could not be read in this time."""
    page_fresh_seconds: float = 86400.0
    """A page that was fetched within this time is not fetched again for a search."""
    search_seconds: float = 1800.0
    """One run of a search of a research task takes this long at most."""
    answer_seconds: float = 90.0
    """A question is answered within this time, with what is there by then."""
    search_loop_seconds: float = 45.0
    """Of that, how long evidence is looked for at most."""
    question_seconds: float = 5.0
    """A search whose question is not embedded within this time answers by its words alone."""
    search_min_coverage: float = 0.15
    """A passage is found that holds at least this share of the question's words, the rare ones
    counting most, or whose vector is near enough. 0: every search fills its limit."""
    search_min_similarity: float = 0.0
    """The cosine from which on a vector is near enough. 0: what was measured for the offline
    embedder; with another, whatever vectors find is taken for near."""
    evidence_tokens: int = 6000
    """How much of what was found a language model is shown at a time."""
    unused_vectors_seconds: float = 7 * 86400.0
    """How long vectors are kept that no document needs any more, or of a model that was replaced:
    a text that comes back meanwhile is not embedded again."""
    poll_only: bool = False
    """PostgreSQL: use nothing that belongs to a session (LISTEN, prepared statements), for poolers
    that give each transaction another. Changes by other processes are then seen by polling."""

    mcp_operator_tools: bool = False
    """Offer agents over MCP also the tools for who looks after the queue: `lane_status`,
    `list_dead_letters`, `redrive`. Each tool costs every conversation some tokens."""

    @property
    def hidden(self) -> tuple[str, ...]:
        """`hidden_names`, one by one."""
        return tuple(name.strip() for name in self.hidden_names.split(",") if name.strip())

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type in ("bool", "str"):
                continue
            least = _LEAST.get(field.name, 0)
            if not least <= value < float("inf"):
                raise ConfigError(f"{field.name} must be a number from {least} up, not {value!r}")
        for name in ("search_min_coverage", "search_min_similarity"):
            if getattr(self, name) > 1:
                raise ConfigError(f"{name} must be between 0 and 1, not {getattr(self, name)!r}")
        if self.reserved_workers >= self.max_workers:
            raise ConfigError("reserved_workers must be fewer than max_workers")
        if self.max_workers > 1000:
            raise ConfigError("max_workers must be at most 1000; start more processes instead")
        if self.log_format not in LOG_FORMATS:
            raise ConfigError(f"log_format must be text or json, not {self.log_format!r}")
        if self.log_errors not in LOG_ERRORS:
            raise ConfigError(f"log_errors must be message or type, not {self.log_errors!r}")
        if self.scans not in SCANS:
            raise ConfigError(f"scans must be one of {', '.join(SCANS)}, not {self.scans!r}")
        if not _CONTACT.fullmatch(self.contact):
            raise ConfigError("contact must be a mail or web address, in ASCII and without blanks")
        if not _LANGUAGES.fullmatch(self.ocr_languages):
            raise ConfigError(
                f"ocr_languages must be like eng or eng+jpn, not {self.ocr_languages!r}"
            )
