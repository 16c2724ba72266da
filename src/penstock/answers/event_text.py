"""Descriptions of an answer's events, in a few words for people and models."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from penstock.answers.extract import ELLIPSIS
from penstock.model.answer import Answer, Evidence
from penstock.model.change import Change


def in_words(change: Change) -> str:
    """Describe a log entry; '' for those with the text or its end."""
    data = change.data
    match change.what:
        case "plan":
            return f"planned: {_quoted(data['queries'])}" + _because(data["note"])
        case "searching":
            return f"looking, round {data['round']}: {_quoted(data['queries'])}"
        case "evidence":
            count = len(data["numbers"])
            found = f"found {count} passage{'' if count == 1 else 's'}"
            where = f" in {_quoted(data['titles'])}" if data["titles"] else ""
            missing = f"; not found yet: {_quoted(data['missing'])}" if data["missing"] else ""
            return found + where + missing
        case "writing":
            return "writing" if data["mode"] == "model" else "choosing sentences"
        case _:
            return ""


def cited_evidence(answer: Answer) -> list[Evidence]:
    """List the evidence that the text cites, by number. If sentences are quoted, its pages are
    those of the quotes."""
    lines: dict[int, list[str]] = {}
    for one in answer.citations:
        begin = answer.text.rfind("\n", 0, one.start) + 1
        lines.setdefault(one.number, []).append(answer.text[begin : one.start])
    return [
        replace(one, pages=_pages(one, lines[one.number])) if answer.mode == "extractive" else one
        for one in answer.evidence
        if one.number in lines
    ]


def _pages(one: Evidence, quotes: Sequence[str]) -> tuple[int, int] | None:
    """Return the first and last page of the quotes; of the whole passage if one is not found."""
    if one.pages is None or not one.page_starts:
        return one.pages
    # What a passage repeats of a table stands before its start.
    offset, on = one.end - len(one.text), list[int]()
    for quote in quotes:
        words = quote.removesuffix(f"{ELLIPSIS} ").split()
        found = re.search(r"\s+".join(map(re.escape, words)), one.text)
        if found is None:
            return one.pages
        on += [
            bisect_right(one.page_starts, offset + at) for at in (found.start(), found.end() - 1)
        ]
    return one.pages[0] + min(on), one.pages[0] + max(on)


def _quoted(texts: list[str]) -> str:
    return "; ".join(texts)


def _because(note: str) -> str:
    return f" ({note})" if note else ""
