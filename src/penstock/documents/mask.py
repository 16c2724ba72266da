"""Replaces personal data in a text by labels, before anything else sees the text.

    mask("전화010-1234-5678로")  ->  Masked
        text    "전화[PHONE]로"
        counts  {"phone": 1}                how many of each kind; the values are kept nowhere
        edits   ((2, 15, 2, 9),)            what was replaced: from, to in the original;
                                            from, to in `text`. In order, apart from each other

Kinds and how each is found: pii/. A finder of one's own, say a model that knows names, is a
function from text to spans:

    mask = Masker(finders=[my_names])       it yields Span(start, end, "name")

Time is linear in the text: every pattern is bounded, and each looks at a text once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.documents.parsed import Heading, PageSpan, Parsed
from penstock.documents.pii import FINDERS, Finder, Kind, PiiSpan
from penstock.documents.pii.fold import fold
from penstock.errors import ConfigError

LABELS: Mapping[str, str] = {kind.value: f"[{kind.name}]" for kind in Kind}


class Edit(NamedTuple):
    """One replacement: `start` to `end` of the original became `masked_start` to `masked_end`."""

    start: int
    end: int
    masked_start: int
    masked_end: int


@dataclass(slots=True, frozen=True)
class Masked:
    text: str
    counts: dict[str, int]
    edits: tuple[Edit, ...] = field(default=(), repr=False)

    def position(self, offset: int) -> int:
        """Map an offset of the original to one in `text`; the label's start if it was replaced."""
        index = bisect_right(self.edits, offset, key=lambda edit: edit.start) - 1
        if index < 0:
            return offset
        edit = self.edits[index]
        if offset < edit.end:
            return edit.masked_start
        return edit.masked_end + offset - edit.end

    @property
    def labels(self) -> list[tuple[int, int]]:
        """Spans of the labels in `text`."""
        return [(edit.masked_start, edit.masked_end) for edit in self.edits]


class Masker:
    """Replaces what the finders find by `labels[kind]`; `[KIND]` by default."""

    def __init__(
        self, labels: Mapping[str, str] | None = None, finders: Sequence[Finder] = ()
    ) -> None:
        self._labels = {**LABELS, **(labels or {})}
        self._finders = tuple(finders)
        self._label = re.compile("|".join(map(re.escape, set(self._labels.values()))))
        for kind, label in self._labels.items():
            # With a digit or an @ it could be masked again when the text is.
            if not 0 < len(label) <= 64 or any(sign.isdigit() or sign == "@" for sign in label):
                raise ConfigError(
                    f"the label of {kind} must be 1 to 64 signs, no digit, no @: {label!r}"
                )

    @property
    def heavy(self) -> bool:
        """Whether masking needs more than patterns, so that even short texts belong in a thread."""
        return bool(self._finders)

    def __call__(self, text: str) -> Masked:
        pieces: list[str] = []
        edits: list[Edit] = []
        counts: Counter[str] = Counter()
        done = length = 0
        for start, end, kind in _apart(self._find(text)):
            label = self._labels.get(kind) or f"[{kind.upper()}]"
            length += start - done
            edits.append(Edit(start, end, length, length + len(label)))
            length += len(label)
            pieces += (text[done:start], label)
            counts[kind] += 1
            done = end
        pieces.append(text[done:])
        return Masked("".join(pieces), dict(counts), tuple(edits))

    def without_labels(self, text: str) -> str:
        """Remove the labels from a masked text: equal labels are no reason to find one text by
        another."""
        return self._label.sub(" ", text)

    def document(self, parsed: Parsed) -> tuple[Parsed, Masked]:
        """Mask a parsed document and everything derived from it: pages and headings are moved
        along, titles and metadata are masked too."""
        masked = self(parsed.text)
        pages = tuple(
            PageSpan(page.number, masked.position(page.start), masked.position(page.end))
            for page in parsed.pages
        )
        headings = tuple(
            Heading(heading.level, masked.position(heading.start), self(heading.title).text)
            for heading in parsed.headings
        )
        metadata = {key: self(value).text for key, value in parsed.metadata.items()}
        title = None if parsed.title is None else self(parsed.title).text
        return Parsed(masked.text, title, parsed.mime, pages, headings, metadata), masked

    def _find(self, text: str) -> Iterable[tuple[int, PiiSpan]]:
        """Collect the spans of all finders, with the finder's rank."""
        folded = fold(text)
        for rank, find in enumerate(FINDERS):
            for start, end, kind in find(folded.text):
                original = PiiSpan(folded.original(start), folded.original(end - 1) + 1, str(kind))
                yield rank, original
        for rank, find in enumerate(self._finders, len(FINDERS)):
            for start, end, kind in find(text):
                if not 0 <= start < end <= len(text):
                    raise ValueError(f"a finder yielded a span outside the text: {start} to {end}")
                # A label in a text that was masked before is nobody's name.
                for label in self._label.finditer(text, start, end):
                    if label.start() > start:
                        yield rank, PiiSpan(start, label.start(), str(kind))
                    start = label.end()
                if start < end:
                    yield rank, PiiSpan(start, end, str(kind))


def _apart(found: Iterable[tuple[int, PiiSpan]]) -> list[PiiSpan]:
    """Sort spans and merge overlapping ones, so that no part of either is left. The kind is that of
    the finder that comes first."""
    spans: list[tuple[int, PiiSpan]] = []
    for rank, span in sorted(found, key=lambda item: item[1].start):
        if spans and span.start < spans[-1][1].end:
            last_rank, last = spans.pop()
            kind = last.kind if last_rank <= rank else span.kind
            span = PiiSpan(last.start, max(last.end, span.end), kind)
            rank = min(rank, last_rank)
        spans.append((rank, span))
    return [span for _, span in spans]


mask = Masker()
"""Masks with the default labels and finders."""
