"""Settings of the services: documents, research, answers. All times are in seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from penstock.errors import ConfigError
from penstock.model.section import check_fields, setting

_LANGUAGES = re.compile(r"[A-Za-z]\w*(\+[A-Za-z]\w*)*", re.ASCII)


@dataclass(slots=True, frozen=True)
class DocumentsConfig:
    """Parsing, chunking and searching documents."""

    document_bytes: int = setting(50_000_000, least=1)
    """Maximum size of a document. Larger ones are rejected."""
    keep_originals: bool = False
    """Keep original files, which are not masked, after the document is searchable."""
    parsers: int = setting(2, least=1)
    """Maximum documents that one process parses at a time, each in a child process; and as many
    scanned pages, with `scans`."""
    parse_seconds: float = 60.0
    """Time limit for parsing a document or reading a scanned page, after which the document fails
    permanently. Time spent waiting for a free parser does not count."""
    scans: Literal["none", "ocr", "model"] = "none"
    """How pages without text, and images, are read: `none`, `ocr` (Tesseract, on this machine) or
    `model` (the model `llm.models.ingest`, **which receives them unmasked**)."""
    ocr_languages: str = "eng"
    """Tesseract language packs, such as `eng+jpn+kor`."""
    chunk_tokens: int = setting(500, least=50)
    """Chunk size in tokens."""
    chunk_overlap: int = setting(128, least=8)
    """Overlap between adjacent chunks, in tokens; at most 40 % of the chunk size."""
    fetch_seconds: float = setting(86400.0, least=0.1)
    """A document whose URL could not be fetched within this time fails."""
    question_seconds: float = setting(5.0, least=0.1)
    """Time limit for embedding the query of a search, which then uses the full-text index alone."""
    search_min_coverage: float = setting(0.25, most=1)
    """Relevance cutoff: the share of the query's words, rare words weighing more, at which a
    passage is returned whatever its vector. With less it needs the rest in `search_min_similarity`:
    half of one and half of the other are enough. With the offline embedder it needs more where no
    document knows most of these words. 0: no cutoff, every search fills its limit."""
    search_min_similarity: float = setting(0.0, most=1)
    """Relevance cutoff for vectors: the cosine similarity at which a passage is returned whatever
    its words. 0: the value measured for the offline embedder; with another embedder, every vector
    match is returned."""
    unused_vectors_seconds: float = 7 * 86400.0
    """How long unused vectors are cached: those that no document needs any more, and those of a
    model that was replaced. A text that returns within this time is not embedded again."""

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
    """Default providers of a search. Empty: all that are configured or have a public URL, and
    `documents`."""
    provider_seconds: float = setting(60.0, least=0.1)
    """A search stops waiting for providers after this time."""
    page_seconds: float = setting(120.0, least=0.1)
    """A search stops waiting for pages after this time."""
    page_fresh_seconds: float = 86400.0
    """A page fetched within this time is not fetched again."""
    search_seconds: float = setting(1800.0, least=1)
    """Timeout of one run of a search."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(slots=True, frozen=True)
class AnswersConfig:
    """Time limits of answers, and how much evidence a model reads."""

    answer_seconds: float = setting(90.0, least=1)
    """Time limit of an answer, which is then written from the evidence found so far."""
    search_loop_seconds: float = setting(45.0, least=0.1)
    """The part of it that may be spent on searching."""
    evidence_tokens: int = setting(6000, least=100)
    """Maximum evidence in one prompt, in tokens."""

    def __post_init__(self) -> None:
        check_fields(self)
