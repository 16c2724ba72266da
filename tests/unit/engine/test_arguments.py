"""Payloads checked against a handler's signature."""

from __future__ import annotations

import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from ipaddress import IPv4Address
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, TypedDict
from uuid import UUID

import pydantic
import pytest

from penstock import JobContext
from penstock.engine.arguments import Arguments
from penstock.errors import ConfigError, ValidationError

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Size:
    width: int
    height: int = 1


def arguments(function: Callable[..., Any]) -> Arguments:
    return Arguments("resize", function)


def typed(ctx: Any, url: str, width: int = 800, *, exact: bool = False) -> None:
    """Annotations of this module are strings."""


def untyped(ctx, url, width=800):  # type: ignore[no-untyped-def]
    pass


@pytest.mark.parametrize("function", [typed, untyped])
def test_fitting_payload_becomes_arguments(function: Callable[..., Any]) -> None:
    parse = arguments(function).parse

    assert parse('{"url":"x"}') == {"url": "x"}, "defaults are the handler's own"
    assert parse('{"url":"x","width":5}') == {"url": "x", "width": 5}


@pytest.mark.parametrize("function", [typed, untyped])
def test_missing_argument_is_named(function: Callable[..., Any]) -> None:
    with pytest.raises(ValidationError) as refusal:
        arguments(function).parse('{"width":5}')

    assert "resize(" in str(refusal.value)
    assert "url" in str(refusal.value).split(":", 1)[1]


@pytest.mark.parametrize("function", [typed, untyped])
def test_unknown_argument_is_named(function: Callable[..., Any]) -> None:
    with pytest.raises(ValidationError, match="colour"):
        arguments(function).parse('{"url":"x","colour":"red"}')


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(ValidationError) as refusal:
        arguments(typed).parse('{"width":"wide","colour":1}')

    problems = str(refusal.value)
    assert all(name in problems for name in ("url", "width", "colour"))


@pytest.mark.parametrize(
    "payload",
    ['{"url":5}', '{"url":"x","width":"wide"}', '{"url":"x","width":1.5}', '{"url":null}'],
)
def test_wrong_type_is_refused(payload: str) -> None:
    with pytest.raises(ValidationError, match=r"payload does not fit resize\("):
        arguments(typed).parse(payload)


def test_problem_does_not_repeat_the_value() -> None:
    with pytest.raises(ValidationError) as refusal:
        arguments(typed).parse('{"url":["s3cret"]}')

    assert "s3cret" not in str(refusal.value)


def test_values_are_converted_to_the_annotated_types() -> None:
    def handler(
        ctx: Any, at: datetime, size: Size, sizes: list[Size], mode: Literal["a", "b"], n: int
    ) -> None: ...

    parsed = arguments(handler).parse(
        '{"at":"2026-01-02T03:04:05Z","size":{"width":2},"sizes":[{"width":3,"height":4}],'
        '"mode":"b","n":"12"}'
    )

    assert parsed["at"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert (parsed["size"], parsed["sizes"]) == (Size(2), [Size(3, 4)])
    assert (parsed["mode"], parsed["n"]) == ("b", 12)
    with pytest.raises(ValidationError, match=r"size\.width"):
        arguments(handler).parse('{"size":{"width":"x"}}')


def test_open_keywords_take_anything_else() -> None:
    def handler(ctx: Any, url: str, **rest: Any) -> None: ...

    assert arguments(handler).parse('{"url":"x","more":[1]}') == {"url": "x", "more": [1]}
    with pytest.raises(ValidationError, match="url"):
        arguments(handler).parse('{"more":1}')


def test_only_open_keywords_take_everything() -> None:
    def handler(ctx: Any, **payload: Any) -> None: ...

    assert arguments(handler).parse("{}") == {}
    assert arguments(handler).parse('{"a":1}') == {"a": 1}


def test_payload_cannot_replace_the_context() -> None:
    def handler(ctx: Any, **payload: Any) -> None: ...

    with pytest.raises(ValidationError, match="ctx"):
        arguments(handler).parse('{"ctx":1}')


def test_handler_without_arguments_takes_an_empty_payload_only() -> None:
    def handler(ctx: Any) -> None: ...

    assert arguments(handler).parse("{}") == {}
    with pytest.raises(ValidationError, match="url"):
        arguments(handler).parse('{"url":1}')


def test_untyped_arguments_beside_typed_ones_take_anything() -> None:
    def handler(ctx, url: str, extra, more=None):  # type: ignore[no-untyped-def]
        pass

    payload = '{"url":"x","extra":{"a":[1]},"more":2}'
    assert arguments(handler).parse(payload) == {"url": "x", "extra": {"a": [1]}, "more": 2}


def test_arguments_may_have_any_name() -> None:
    def handler(
        ctx: Any, json: str, copy: int, self: int, model_config: int, _private: int
    ) -> None: ...

    payload = '{"json":"x","copy":1,"self":2,"model_config":3,"_private":4}'
    assert arguments(handler).parse(payload)["_private"] == 4


def test_type_that_cannot_be_found_is_not_checked_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def handler(ctx: Any, price: Decimal, width: int) -> None: ...

    with caplog.at_level(logging.WARNING, "penstock"):
        assert arguments(handler).parse('{"price":"1.5","width":2}') == {"price": "1.5", "width": 2}
    assert "price" in caplog.text
    with pytest.raises(ValidationError, match="width"):
        arguments(handler).parse('{"price":"1.5","width":"x"}')


def positional_only(ctx: Any, url: str, /) -> None: ...


def star_args(ctx: Any, *urls: str) -> None: ...


@pytest.mark.parametrize("function", [positional_only, star_args])
def test_handler_that_cannot_be_called_by_name_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="named arguments"):
        arguments(function)


def no_parameters() -> None: ...


def only_keywords(*, url: str) -> None: ...


def only_open(**payload: Any) -> None: ...


@pytest.mark.parametrize("function", [no_parameters, only_keywords, only_open])
def test_handler_without_a_context_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="context first"):
        arguments(function)


def test_context_may_be_positional_only() -> None:
    def handler(ctx: Any, /, url: str) -> None: ...

    assert arguments(handler).parse('{"url":"x"}') == {"url": "x"}


def test_method_partial_and_wrapped_functions_are_understood() -> None:
    class Service:
        async def handle(self, ctx: Any, url: str) -> None: ...

        async def __call__(self, ctx: Any, url: str) -> None: ...

    @functools.wraps(typed)
    def wrapped(*args: Any, **kwargs: Any) -> None: ...

    for function in (Service().handle, Service(), wrapped):
        assert arguments(function).parse('{"url":"x"}') == {"url": "x"}
        with pytest.raises(ValidationError):
            arguments(function).parse('{"url":1}')
    partial = functools.partial(untyped, width=5)
    assert arguments(partial).parse('{"url":"x"}') == {"url": "x"}


class Page(pydantic.BaseModel):
    url: str


class Colour(Enum):
    RED = "red"


class Record(dict[str, int]):
    """What JSON takes for a dict, and pydantic knows nothing of."""


class Row(TypedDict):
    n: int


@pytest.mark.parametrize(
    "first", [int, "str", str | None, list[int], Page, Size, Literal[1]], ids=str
)
def test_handler_whose_first_parameter_is_data_is_refused(first: Any) -> None:
    def handler(a, b: int = 1):  # type: ignore[no-untyped-def]
        pass

    handler.__annotations__["a"] = first
    with pytest.raises(ConfigError, match=r"'resize' must take the job's context first.*ctx"):
        arguments(handler)


@pytest.mark.parametrize("first", [Any, JobContext, JobContext[Size], "Missing", object], ids=str)
def test_what_may_be_a_context_is_taken(first: Any) -> None:
    def handler(a, b: int = 1):  # type: ignore[no-untyped-def]
        pass

    handler.__annotations__["a"] = first
    assert arguments(handler).parse('{"b":2}') == {"b": 2}


@pytest.mark.parametrize("function", [lambda url, width=1: None, lambda url, **rest: None])
def test_argument_in_the_place_of_the_context_is_told_so(function: Callable[..., Any]) -> None:
    with pytest.raises(ValidationError, match="url, the first parameter, is the job's context"):
        arguments(function).parse('{"url":"x"}')


Name = NewType("Name", str)
STORABLE = [
    *(None, Any, object, int, dict, dict[str, list[Size]], Page | None, "Missing", Record),
    *(datetime, UUID, Path, IPv4Address, tuple[int, ...], Annotated[Colour, 1], Row, Name),
    *(set[int], Literal["a", 1], Mapping[str, int], "list[Missing]"),
]


@pytest.mark.parametrize("returns", STORABLE, ids=str)
def test_result_that_can_be_stored_is_taken(returns: Any) -> None:
    def handler(ctx):  # type: ignore[no-untyped-def]
        pass

    handler.__annotations__["return"] = returns
    arguments(handler)


NOT_STORABLE = [
    *(bytes, list[bytes], dict[str, socket], socket | None, JobContext),
    *(Iterator[int], AsyncIterator[int], Awaitable[int], Callable[[int], str]),
    *(Annotated[socket, 1], pytest.CaptureFixture),
]


@pytest.mark.parametrize("returns", NOT_STORABLE, ids=str)
def test_result_that_can_never_be_stored_is_refused(returns: Any) -> None:
    def handler(ctx):  # type: ignore[no-untyped-def]
        pass

    handler.__annotations__["return"] = returns
    with pytest.raises(ConfigError, match=r"'resize' returns \w+, which cannot be stored as JSON"):
        arguments(handler)
