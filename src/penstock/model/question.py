"""Questions that jobs ask people: forms of plain fields, and the answers to them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import ValidationError

PREFIX = "ask:"
ACCEPT, DECLINE = "accept", "decline"
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


@dataclass(slots=True, frozen=True)
class JobQuestion:
    """A question of a job that nobody has answered yet."""

    id: str
    """It is answered by this."""
    message: str
    schema: dict[str, Any]
    """JSON schema of the answer: an object whose fields are texts, numbers, true or false."""


def question_name(text: str) -> str:
    """The name of the step and of the signal of a question with this text."""
    return PREFIX + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what a form cannot ask for."""
    if schema.get("type") != "object":
        raise ValidationError("a question asks for a pydantic model, dataclass or TypedDict")
    for name, field in schema.get("properties", {}).items():
        if field.get("type") not in _TYPES and "enum" not in field:
            raise ValidationError(
                f"{name} of a question is to be a text, a number, true or false, or one of some "
                "texts: that is what a form can ask for"
            )


def check_answer(schema: Mapping[str, Any], content: Any) -> None:
    """Raise ValidationError unless the content fits the form. (Bounds beyond types are checked by
    the job, which has the type.)"""
    if not isinstance(content, dict):
        raise ValidationError("an answer is an object: the fields by name")
    fields = schema.get("properties", {})
    wrong = [f"{name} is missing" for name in schema.get("required", ()) if name not in content]
    wrong += [f"there is no field {name}" for name in content if name not in fields]
    known = [name for name in content if name in fields]
    wrong += [said for name in known if (said := _wrong(name, fields[name], content[name]))]
    if wrong:
        raise ValidationError(f"the answer does not fit: {'; '.join(wrong[:5])}")


def _wrong(name: str, field: Mapping[str, Any], value: Any) -> str | None:
    if "enum" in field:
        there = ", ".join(map(str, field["enum"]))
        return None if value in field["enum"] else f"{name} is one of: {there}"
    kind = field["type"]
    fits = isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "boolean")
    if not fits:
        return f"{name} is to be {_WORDS[kind]}"
    if kind in ("integer", "number"):
        if value < field.get("minimum", value) or value > field.get("maximum", value):
            return f"{name} is out of bounds"
    elif kind == "string" and not (
        field.get("minLength", 0) <= len(value) <= field.get("maxLength", len(value))
    ):
        return f"{name} is too short or too long"
    return None
