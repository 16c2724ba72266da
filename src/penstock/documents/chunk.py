"""Splits text into chunks of bounded size and overlap.

    chunk(text)  ->  [Chunk, Chunk, ...]
        start, end      offsets in `text`: text[start:end] is the chunk's text, nothing trimmed. The
                        text of one that begins within a table has the table's header before it
        fresh           where what the chunk before did not have begins; of the first, 0
        tokens          as counted; never more than `size`
        pages           first and last page it touches, if there are pages
        page_starts     where each of them after the first begins, as offsets in `text`
        section         titles of the headings it stands under, outermost first

The parts from `fresh` to `end`, put side by side, are the text. Neighbours share `overlap` tokens,
give or take `slack` (the last pair may share what it likes: the text ends where it ends). Cuts are
made at the best boundary in reach: paragraph, sentence, line, clause, word. The limits hold where
there is none.

Time is linear in the text: it is counted a few times over, whatever it looks like.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from penstock.documents.boundaries import Boundaries
from penstock.documents.parsed import Heading, PageSpan, Table
from penstock.documents.tokens import CountTokens, count_tokens, is_apart
from penstock.errors import ConfigError

_BLOCK = 256
"""Maximum characters of the first, coarse split; bounds the cost of everything after it."""
_WIDEST = 16
"""Maximum characters per token, on average over a chunk. Tokenizers that see no token in blanks
would otherwise put a million of them into one."""
_HEAD = 0.25
"""Maximum share of a chunk for the header of a table."""
_FILL = 0.6
"""Minimum fill of a chunk that ends early at a better boundary."""


@dataclass(slots=True, frozen=True)
class ChunkSettings:
    size: int = 500
    """Maximum tokens of a chunk."""
    overlap: int = 128
    """Tokens shared by adjacent chunks."""
    slack: int = 32
    """Tolerance of the overlap, to reach a better boundary."""

    def __post_init__(self) -> None:
        if not 4 <= self.slack <= self.overlap:
            raise ConfigError("chunk slack must be between 4 and the overlap")
        if self.overlap + 2 * self.slack > self.size * _FILL:
            raise ConfigError(
                f"chunk overlap + 2 * slack must be at most {_FILL:.0%} of the size, or chunks "
                "would mostly repeat the one before"
            )


@dataclass(slots=True, frozen=True)
class Chunk:
    start: int
    end: int
    fresh: int
    text: str
    tokens: int
    pages: tuple[int, int] | None = None
    section: tuple[str, ...] = ()
    page_starts: tuple[int, ...] = ()


def chunk(
    text: str,
    settings: ChunkSettings | None = None,
    *,
    count: CountTokens = count_tokens,
    keep: Sequence[tuple[int, int]] = (),
    pages: Sequence[PageSpan] = (),
    headings: Sequence[Heading] = (),
    tables: Sequence[Table] = (),
) -> list[Chunk]:
    """Split `text` into chunks; none if it is blank. Spans in `keep` (labels) are never split."""
    if not text.strip():
        return []
    settings = settings or ChunkSettings()
    boundaries = Boundaries(text, (heading.start for heading in headings), keep)
    heads = _Heads(text, tables, int(settings.size * _HEAD), count)
    cuts = _Cuts(text, boundaries, settings, count, heads)
    places = _Places(pages, headings)
    chunks: list[Chunk] = []
    fresh = 0
    for start, end, tokens in cuts:
        chunks.append(
            Chunk(
                start=start,
                end=end,
                fresh=fresh,
                text=heads.at(start).text + text[start:end],
                tokens=tokens,
                pages=places.pages(start, end),
                section=places.section(start, fresh),
                page_starts=places.page_starts(start, end),
            )
        )
        fresh = end
    return chunks


class _Cuts:
    """Start and end of the chunks of a text.

    The text is first cut into pieces of at most `slack` tokens, so that in every stretch of
    2 * slack tokens there is a place to begin or end. Tokens of several pieces are added up to
    find such a place, then counted where a tokenizer may see another number in the whole.
    """

    def __init__(
        self,
        text: str,
        boundaries: Boundaries,
        settings: ChunkSettings,
        count: CountTokens,
        heads: _Heads,
    ) -> None:
        self._heads = heads
        self._text = text
        self._boundaries = boundaries
        self._settings = settings
        self._always = count("")
        self._tokenize = count
        pieces = list(self._pieces())
        self._at = [start for start, _ in pieces] + [len(text)]
        self._sums = list(accumulate((tokens for _, tokens in pieces), initial=0))
        self._joints = list(accumulate(map(self._is_joint, self._at), initial=0))
        self._strengths = [boundaries.strength(at) for at in self._at]
        self._chars = settings.size * _WIDEST

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        last = len(self._at) - 1
        first = done = 0
        while done < last:
            end = self._end(first, done)
            tokens = self._tokens_of_chunk(first, end)
            while tokens > self._settings.size and end - first > 1:
                if end > done + 1:
                    end -= 1
                else:
                    first += 1
                tokens = self._tokens_of_chunk(first, end)
            yield self._at[first], self._at[end], tokens
            done = end
            first = self._overlap_start(first, end)

    def _tokens_of_chunk(self, first: int, end: int) -> int:
        return self._heads.at(self._at[first]).tokens + self._tokens(first, end)

    def _is_joint(self, at: int) -> bool:
        """Whether two pieces may have other tokens together than apart."""
        return self._tokenize is not count_tokens or not is_apart(self._text, at)

    def _tokens(self, first: int, end: int) -> int:
        """Count the tokens of the pieces from `first` to `end`, adding up where that is exact."""
        if self._joints[first + 1] == self._joints[end]:
            return self._sums[end] - self._sums[first]
        return self._count(self._at[first], self._at[end])

    def _count(self, start: int, end: int) -> int:
        return self._tokenize(self._text[start:end]) - self._always

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """Return the start and number of tokens of each piece."""
        bounds = [0, *self._boundaries.strong(), len(self._text)]
        for start, end in pairwise(bounds):
            yield from self._split(start, end)

    def _split(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        waiting = [(start, end)]
        while waiting:
            start, end = waiting.pop()
            # A long stretch loses a block at its head, uncounted; a short one is halved.
            long = end - start > _BLOCK
            tokens = 0 if long else self._count(start, end)
            cut = None
            if long or tokens > self._settings.slack:
                cut = self._boundaries.middle(start, min(end, start + 2 * _BLOCK))
            if cut is None:
                yield start, tokens or self._count(start, end)
            else:
                waiting += [(cut, end), (start, cut)]

    def _end(self, first: int, done: int) -> int:
        """Find the best end of the chunk that starts at `first`; it contains something new."""
        size = self._settings.size - self._heads.at(self._at[first]).tokens
        most = bisect_right(self._sums, self._sums[first] + size) - 1
        most = min(most, bisect_right(self._at, self._at[first] + self._chars) - 1)
        if most >= len(self._at) - 1:
            return len(self._at) - 1
        least = bisect_left(self._sums, self._sums[first] + int(size * _FILL), lo=done + 1)
        candidates = range(min(least, most), most + 1)
        best = max(candidates, key=lambda end: (self._strengths[end], end))
        return max(best, done + 1)

    def _overlap_start(self, first: int, end: int) -> int:
        """Find the piece at which the next chunk starts to repeat text before `end`."""
        overlap, slack = self._settings.overlap, self._settings.slack
        total = self._sums[end]
        low = bisect_left(self._sums, total - overlap - slack, lo=first + 1, hi=end)
        low = max(low, bisect_left(self._at, self._at[end] - self._chars // 2, hi=end))
        high = bisect_right(self._sums, total - overlap + slack, lo=low, hi=end)
        candidates = sorted(
            range(low, max(high, low + 1)),
            key=lambda at: (-self._strengths[at], abs(total - self._sums[at] - overlap)),
        )
        counted = ((abs(self._tokens(at, end) - overlap), at) for at in candidates)
        off, at = next(counted)
        for other, other_at in counted:
            if off <= slack:
                break
            if other < off:
                off, at = other, other_at
        return at


class _Head(NamedTuple):
    text: str
    tokens: int


_NO_HEAD = _Head("", 0)


class _Heads:
    """Table headers, to repeat in later chunks of a table. Headers of more than `most` tokens would
    leave too little room for rows, and are not repeated."""

    def __init__(self, text: str, tables: Sequence[Table], most: int, count: CountTokens) -> None:
        self._text = text
        self._tables = tables
        self._starts = [table.start for table in tables]
        self._most = most
        self._count = count
        self._known: dict[int, _Head] = {}

    def at(self, start: int) -> _Head:
        """Return the header to repeat before a chunk that starts there."""
        index = bisect_right(self._starts, start) - 1
        if index < 0 or not self._tables[index].head_end < start < self._tables[index].end:
            return _NO_HEAD
        if index not in self._known:
            table = self._tables[index]
            self._known[index] = self._measured(self._text[table.start : table.head_end] + "\n")
        return self._known[index]

    def _measured(self, head: str) -> _Head:
        if len(head) > self._most * _WIDEST:
            return _NO_HEAD
        tokens = self._count(head) - self._count("")
        return _Head(head, tokens) if tokens <= self._most else _NO_HEAD


class _Places:
    """Pages and sections by offset."""

    def __init__(self, pages: Sequence[PageSpan], headings: Sequence[Heading]) -> None:
        self._pages = pages
        self._page_starts = [page.start for page in pages]
        self._heading_starts = [heading.start for heading in headings]
        self._paths: list[tuple[str, ...]] = [()]
        open_headings: list[Heading] = []
        for heading in headings:
            while open_headings and open_headings[-1].level >= heading.level:
                open_headings.pop()
            open_headings.append(heading)
            self._paths.append(tuple(each.title for each in open_headings))

    def pages(self, start: int, end: int) -> tuple[int, int] | None:
        if not self._pages:
            return None
        first = max(0, bisect_right(self._page_starts, start) - 1)
        last = max(first, bisect_left(self._page_starts, end) - 1)
        return self._pages[first].number, self._pages[last].number

    def page_starts(self, start: int, end: int) -> tuple[int, ...]:
        first = max(1, bisect_right(self._page_starts, start))
        return tuple(self._page_starts[first : bisect_left(self._page_starts, end)])

    def section(self, start: int, fresh: int) -> tuple[str, ...]:
        """Return the section of a chunk: that of its new text."""
        return self._paths[bisect_right(self._heading_starts, max(start, fresh))]
