"""Decides whether two findings are the same work."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote, urlsplit

from penstock.text.normalize import normalized

_DOI = re.compile(r"10\.\d{4,9}/\S+")
_DOI_PREFIX = re.compile(r"(?i)\s*(?:doi:\s*|(?:https?://)?(?:dx\.|www\.)?doi\.org/)")
_ARXIV_DOI = "10.48550/arxiv."
_ARXIV_ID = re.compile(r"(?i)(\d{4}\.\d{4,5}|[a-z][a-z-]*(?:\.[a-z]{2})?/\d{7})(?:v\d+)?(?:\.pdf)?")
_ARXIV_PAGE = re.compile(
    r"(?i)(?:https?://)?(?:(?:www|export)\.)?arxiv\.org/(?:abs|pdf|html)/([^?#]+)"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ACCENTS = frozenset(map(chr, range(0x300, 0x370)))
"""Accents of Latin, Greek and Cyrillic. In other scripts such marks make another word."""
_TRACKING = re.compile(
    r"(?i)utm_.*|fbclid|gclid|dclid|gbraid|wbraid|msclkid|yclid|igshid|mc_[ce]id|_ga|_gl|_hs\w+"
)


def doi_of(text: str | None) -> str | None:
    """Extract the DOI that `text` is or links to, in lower case: DOIs are case-insensitive."""
    if text is None:
        return None
    prefix = _DOI_PREFIX.match(text)
    rest = text[prefix.end() :] if prefix else text
    if prefix and "doi.org" in prefix[0].lower():
        rest = unquote(re.split(r"[?#]", rest, maxsplit=1)[0])
    rest = rest.strip().lower()
    return rest if _DOI.fullmatch(rest) else None


def arxiv_id_of(text: str | None) -> str | None:
    """Extract the arXiv id that `text` is, or whose page, PDF or DOI it names; without its
    version."""
    if text is None:
        return None
    page = _ARXIV_PAGE.match(text.strip())
    doi = doi_of(text)
    if page:
        text = page[1].rstrip("/")
    elif doi and doi.startswith(_ARXIV_DOI):
        text = doi.removeprefix(_ARXIV_DOI)
    else:
        text = re.sub(r"(?i)^\s*arxiv:\s*", "", text).strip()
    found = _ARXIV_ID.fullmatch(text)
    return found[1].lower() if found else None


def is_preprint_doi(doi: str) -> bool:
    """Whether arXiv issued the DOI: then it is another name for an arXiv id."""
    return doi.startswith(_ARXIV_DOI)


def canonical_url(url: str) -> str | None:
    """Normalize `url`: without scheme, default port, trailing slash, fragment and tracking
    parameters. None if it is not a web address."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return None
    place = host.rstrip(".")
    if port not in (None, _DEFAULT_PORTS[parts.scheme]):
        place += f":{port}"
    given = (one for one in parts.query.split("&") if one)
    query = "&".join(one for one in given if not _TRACKING.fullmatch(one.partition("=")[0]))
    return f"{place}{parts.path.rstrip('/')}{'?' if query else ''}{query}"


def folded_title(title: str) -> str:
    """Normalize a title to letters, digits and vowel signs, in one case and without accents."""
    apart = normalized("NFKD", normalized("NFKD", title).casefold())
    kept = (sign for sign in apart if sign.isalnum() or unicodedata.category(sign)[0] == "M")
    return normalized("NFC", "".join(one for one in kept if one not in _ACCENTS))
