"""Resource limits of parsing. A document that exceeds one fails with a ParserError that names
it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from penstock.errors import ConfigError


@dataclass(slots=True, frozen=True)
class ParseLimits:
    input_bytes: int = 50_000_000
    """Maximum size of the document."""
    expanded_bytes: int = 300_000_000
    """Maximum total uncompressed size of an archive (DOCX and the like, EPUB)."""
    expansion_ratio: int = 200
    """Maximum compression ratio of a file of more than a megabyte."""
    entries: int = 10_000
    """Maximum files in an archive."""
    pages: int = 10_000
    characters: int = 20_000_000
    """Maximum characters of text."""
    scans: int = 0
    """Maximum scanned pages; 0: such pages are not read."""
    pixels: int = 50_000_000
    """Maximum pixels of an image."""
    page_characters: int = 40_000
    """Maximum characters of text in one image."""
    seconds: float = 60.0
    """Time limit for a document, or for one of its images."""
    megabytes: int = 1024
    """Memory limit of the child."""
    requests: int = 1000
    """Requests after which a child is replaced, two per document, to bound memory leaks."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "scans" and value == 0:
                continue
            if not 0 < value < float("inf"):
                raise ConfigError(f"parse limit {each.name} must be a positive number")
