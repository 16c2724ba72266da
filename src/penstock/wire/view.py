"""Views as JSON, and their schemas.

A view is a frozen dataclass of the standard library, so neither workers nor commands import
pydantic for it. For OpenAPI and MCP, pydantic builds its schema, with the docstrings of its fields
as descriptions. Dataclasses of the model that are returned unchanged need only be `described`.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


def plain(value: Any) -> Any:
    """Serialize a dataclass for `json.dumps` (its `default`): by its fields, or with its
    `as_dict`."""
    if isinstance(value, WireView):
        return fields_of(value)
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if is_dataclass(value):
        return fields_of(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, without copying them."""
    return {one.name: getattr(value, one.name) for one in fields(value)}


def made(view: type[T], source: object, **given: Any) -> T:
    """Build a view from the given values, and the rest from attributes of `source` with the same
    names."""
    names = (one.name for one in fields(view) if one.name not in given)  # type: ignore[arg-type]
    known = {name: getattr(source, name) for name in names if hasattr(source, name)}
    return view(**known, **given)


def _complete(schema: dict[str, Any], view: type) -> None:
    """Add descriptions to the JSON schema of a view, and make all fields required."""
    said = {
        name: text
        for one in reversed(view.__mro__)
        if is_dataclass(one)
        for name, text in _docstrings(one.__module__).get(one.__name__, {}).items()
    }
    for name, one in schema["properties"].items():
        one.pop("default", None)
        if name in said:
            one["description"] = said[name]
    schema["required"] = list(schema["properties"])


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Collect the docstrings of the fields, by class."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef):
            said = found[node.name] = {}
            for field, text in pairwise(node.body):
                match field, text:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str() as words)),
                    ):
                        said[name] = " ".join(words.split()).replace("None", "null")
    return found


SCHEMA: dict[str, Any] = {"json_schema_extra": _complete}


def described(*views: type) -> None:
    """Describe the fields of other dataclasses in the same way."""
    for view in views:
        view.__pydantic_config__ = SCHEMA  # type: ignore[attr-defined]


class WireView:
    """The base of all views."""

    __slots__ = ()
    __pydantic_config__: ClassVar = SCHEMA

    def as_dict(self) -> dict[str, Any]:
        """Return the view as JSON values."""
        known: dict[str, Any] = json.loads(json.dumps(self, default=plain))
        return known


@dataclass(slots=True, frozen=True)
class ListPage(WireView):
    """A page of a list."""

    next: str | None
    """Pass it as `before` for the next page; None: last page."""
