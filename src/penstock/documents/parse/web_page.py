"""HTML, from the web or a file: its main text, without navigation and boilerplate.

trafilatura tells what the main text is; html_file.py makes a text of it, as of every HTML. Where it
finds too little, fails, takes too long or is not installed, the whole page is read but for its
navigation, and what is kept of the reading says so. trafilatura is loaded here and so only in the
parser's children.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.documents.parse.draft import Draft
from penstock.documents.parse.html_file import read_html, read_tags
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.tags import Tag
from penstock.text.normalize import storable

if TYPE_CHECKING:
    from trafilatura.metadata import Document

LEAST = 200
"""Minimum characters of a main text. A shorter one is likely a heading or a notice."""
LEAST_SHARE, LONG = 0.05, 1000
"""Minimum share of the text of a long page, and the length of a long page, in characters."""
LEAST_SHARE_OF_FILE = 0.25
"""Minimum share for a file that somebody chose: they would rather have everything than too
little."""
LARGEST = 2_000_000
"""Maximum characters of HTML to search for a main text: more takes too much memory."""
TIME_SHARE = 0.2
"""Share of the parser's time limit; enough is left to read the whole page."""

_LANGUAGE = re.compile(r"(?i)<html\b[^>]{0,500}?\slang\s*=\s*[\"']?([a-z]{2,3}(?:-[a-z0-9]{1,8})*)")
_NAVIGATION, _END_OF_NAVIGATION = re.compile(r"(?i)<nav[\s>]"), re.compile(r"(?i)</nav[\s>]")
_HTML_NAMES = {"list": "ul", "item": "li", "row": "tr", "cell": "td", "quote": "blockquote"}
_HTML_NAMES |= {"lb": "br", "p": "p", "table": "table", "div": "div"}


AGAIN_SECONDS = 0.5


class OutOfTime(BaseException):
    """Time is up. Not an Exception, because those are caught on the way."""


class NoMainText(Exception):
    """There is no main text; the message says why."""


class MainText(NamedTuple):
    """A main text, and the page's metadata."""

    draft: Draft
    about: dict[str, str | None]


def read_page(text: str, limits: ParseLimits, *, of_file: bool = False) -> Draft:
    """Extract the main text of a web page, or of a file, of which more is kept."""
    least_share = LEAST_SHARE_OF_FILE if of_file else LEAST_SHARE
    text = storable(text)
    whole = _whole(text, limits)
    language = _LANGUAGE.search(text[:5000])
    try:
        _check(whole.length, whole.length, least_share)  # a part of it is not longer
        main = _main(text, limits)
        _check(main.draft.length, whole.length, least_share)
        if of_file and whole.headings and not main.draft.headings:
            raise NoMainText("the main text would have none of its headings")
    except NoMainText as why:
        whole.tell("text", "whole")
        whole.tell("why", str(why))
        whole.tell("language", language and language[1])
        return whole
    draft = main.draft
    draft.title = draft.title or whole.title
    draft.tell("text", "main")
    draft.tell("language", language and language[1])
    for key, value in main.about.items():
        draft.tell(key, value)
    return draft


def _whole(text: str, limits: ParseLimits) -> Draft:
    """Read everything except navigation, if that is marked up correctly and is not everything."""
    if 0 < len(_NAVIGATION.findall(text)) == len(_END_OF_NAVIGATION.findall(text)):
        draft = Draft(limits)
        read_html(text, draft, without=("nav",))
        if draft.length:
            return draft
    draft = Draft(limits)
    read_html(text, draft)
    return draft


def _check(found: int, whole: int, least_share: float) -> None:
    if found < LEAST:
        raise NoMainText(f"its main text has only {found} characters")
    if whole > LONG and found < least_share * whole:
        raise NoMainText(f"only {found} of {whole} characters look like a main text")


def _main(text: str, limits: ParseLimits) -> MainText:
    if len(text) > LARGEST:
        raise NoMainText(f"the page has over {LARGEST} characters")
    try:
        from trafilatura import bare_extraction
    except ModuleNotFoundError as error:
        raise NoMainText(
            "extracting the main text needs: pip install 'penstock[research]'"
        ) from error
    try:
        with _at_most(TIME_SHARE * limits.seconds):
            found: Any = bare_extraction(text, include_comments=False, with_metadata=True)
    except OutOfTime:
        raise NoMainText("extracting the main text took too long") from None
    except MemoryError:
        raise NoMainText("extracting the main text took too much memory") from None
    except Exception as error:  # whatever it is, the page can be read without it
        kind = type(error).__name__
        raise NoMainText(f"extracting the main text failed: {kind}") from error
    if found is None or found.body is None:
        raise NoMainText("no main text was found")
    draft = Draft(limits)
    read_tags(_tags(found), draft)
    draft.title = found.title
    return MainText(draft, {"author": found.author, "date": found.date})


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside the block after that time. A child has one thread, which gets the
    signal. Where it comes in a destructor or a callback of the collector, Python drops what is
    raised: so it comes again."""

    def over(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _tags(found: Document) -> Iterator[Tag]:
    """Convert trafilatura's elements to HTML tags."""
    from lxml.etree import iterwalk

    body = found.body
    for event, element in iterwalk(body, events=("start", "end")):
        name = _html_name(element, body)
        if name:
            yield event, name
        text = element.text if event == "start" else element.tail
        if text and (event == "start" or element is not body):
            yield "text", text


def _html_name(element: Any, body: Any) -> str | None:
    match element.tag:
        case "head":
            level = element.get("rend", "")[1:]
            return f"h{level}" if level in set("123456") else "h2"
        case "code":  # a listing; within a paragraph it is part of that
            listing = element.getparent() is body or "\n" in (element.text or "")
            return "pre" if listing else None
        case name:
            return _HTML_NAMES.get(name)
