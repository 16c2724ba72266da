"""Descriptions of an answer's events, in a few words for people and models."""

from __future__ import annotations

from penstock.model.answer import Answer, Evidence
from penstock.model.change import Change


def in_words(change: Change) -> str:
    """An entry of its log; '' for those that hold the text, or its end."""
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
    """What the text cites, by number, each once."""
    numbers = {one.number for one in answer.citations}
    return [one for one in answer.evidence if one.number in numbers]


def _quoted(texts: list[str]) -> str:
    return "; ".join(texts)


def _because(note: str) -> str:
    return f" ({note})" if note else ""
