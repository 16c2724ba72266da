"""Checks a handler's annotations before it is ever run."""

from __future__ import annotations

import sys
from collections import abc
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from inspect import isabstract
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from penstock.model.payload import writer

PLAIN = (
    *(str, int, float, NoneType, dict, list, tuple, set, frozenset),
    *(Enum, date, time, timedelta, UUID, Decimal, PurePath),
)
"""Classes known to be data without asking pydantic, which takes 0.2 s to load."""

RUNNING = {
    *(abc.Iterator, abc.Generator, abc.AsyncIterable, abc.AsyncIterator, abc.AsyncGenerator),
    *(abc.Awaitable, abc.Coroutine, abc.Callable),
}
"""Abstract classes of things that run: whatever they are in fact, it is no data."""


def resolve(annotation: Any, function: Callable[..., Any]) -> Any:
    """An annotation that may be written as text; NameError or AttributeError if it is one of
    names that the function's module does not have."""
    if not isinstance(annotation, str):
        return annotation
    module = sys.modules.get(function.__module__)
    return eval(annotation, dict(vars(module)) if module else {})  # noqa: S307


def is_data(annotation: Any) -> bool:
    """Whether all that is annotated so is data, and so cannot be a job's context."""
    return all(isinstance(one, type) and _is_data(one) for one in _classes(annotation))


def never_json(annotation: Any) -> Any:
    """A class named in an annotation whose values can never be JSON; None if there is none."""
    return next((one for one in _classes(annotation) if _is_no_data(one)), None)


def _is_data(cls: type) -> bool:
    known = issubclass(cls, PLAIN) or is_dataclass(cls)
    return known or hasattr(cls, "__pydantic_serializer__")


def _is_no_data(cls: Any) -> bool:
    if not isinstance(cls, type) or cls is object or _is_data(cls):
        return False
    if isabstract(cls) or getattr(cls, "_is_protocol", False):
        return cls in RUNNING  # what another is in fact may be data
    return writer(cls) is None


def _classes(annotation: Any) -> Iterator[Any]:
    """The classes that an annotation is made of, and what else it names, such as Any."""
    annotation = getattr(annotation, "__supertype__", annotation)  # of a NewType
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _classes(inner[0])
    elif origin is Literal:
        yield from map(type, inner)
    elif origin in (Union, UnionType):
        for one in inner:
            yield from _classes(one)
    elif origin is None:
        yield NoneType if annotation is None else annotation
    else:
        yield origin
        for one in inner:
            if one is not ... and not isinstance(one, list):
                yield from _classes(one)
