"""JSON schemas in the words of the reference pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MEANT = 10**12
"""A larger limit of a number is only what a database can hold."""


def without_enums(given: Any, schemas: dict[str, Any]) -> Any:
    """With the values of an enum where it is named: a section of its own would say no more."""
    enums = {name: schemas.pop(name) for name in list(schemas) if "enum" in schemas[name]}

    def inlined(given: Any) -> Any:
        match given:
            case {"$ref": str() as ref} if _name(ref) in enums:
                told = given.get("description", "")
                return {"enum": enums[_name(ref)]["enum"], "description": told}
            case dict():
                return {name: inlined(one) for name, one in given.items()}
            case list():
                return [inlined(one) for one in given]
        return given

    return inlined(given)


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def link(ref: str) -> str:
    name = _name(ref)
    return f"[{name}](#{name.lower()})"


def section(name: str, schema: Mapping[str, Any]) -> str:
    about = " ".join(schema.get("description", "").split())
    sent = schema.get("additionalProperties") is False
    needed = schema.get("required", ()) if sent else ()
    rows = [
        row(
            f"`{field}`",
            type_of(one) + (", required" if field in needed else ""),
            one.get("description", ""),
        )
        for field, one in schema["properties"].items()
    ]
    table = "\n".join(["| field | | |", "|---|---|---|", *rows])
    return "\n\n".join(part for part in (f"### {name}", about, table) if part)


def type_of(schema: Mapping[str, Any]) -> str:
    words = [_kind(schema)]
    for key, limit in (("minimum", "from {:,}"), ("maximum", "to {:,}")):
        if key in schema and abs(schema[key]) < MEANT:
            words.append(limit.format(round(schema[key])))
    if "maxLength" in schema:
        words.append(f"up to {schema['maxLength']:,} long")
    if schema.get("default") not in (None, ""):
        words.append(f"default `{str(schema['default']).lower()}`")
    return ", ".join(words)


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(type_of(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "$ref" in schema:
        return link(schema["$ref"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
