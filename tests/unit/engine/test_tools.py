"""Tools: what schemas follow from a function, and what it lacks."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from penstock import JobContext, Penstock
from penstock.engine.asks import asking_of
from penstock.engine.tools import AppTool
from penstock.errors import ConfigError, ValidationError


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Line(BaseModel):
    item: str
    pieces: Annotated[int, Field(ge=1, description="How many.")] = 1


class Lines(TypedDict):
    lines: list[Line]


@dataclass
class Price:
    euros: float
    title: str = ""


def tool_of(function: Callable[..., Any], **options: Any) -> AppTool:
    app = Penstock("sqlite:///unused.db")
    assert app.tool(**options)(function) is function, "it can be called as before"
    return app.tools[function.__name__]


async def order(
    ctx: JobContext,
    lines: list[Line],
    size: Size = Size.SMALL,
    how: Annotated[Literal["fast", "slow"], Field(description="The way.")] = "slow",
    note: str | None = None,
) -> Price:
    """Order something.

    Args:
        lines: What to order.
        how: Not this: the annotation says it.
    """
    return Price(1.0)


def test_schemas_follow_from_the_signature() -> None:
    tool = tool_of(order, title="An order", key=True)
    assert (tool.name, tool.title, tool.description) == ("order", "An order", "Order something.")
    fields = tool.parameters["properties"]
    assert fields["lines"]["description"] == "What to order."
    assert fields["size"]["default"] == "small"
    assert fields["how"] == {
        "default": "slow",
        "description": "The way.",
        "enum": ["fast", "slow"],
        "type": "string",
    }
    assert tool.parameters["required"] == ["lines"]
    assert tool.parameters["additionalProperties"] is False
    assert "ctx" not in fields
    line = tool.parameters["$defs"]["Line"]["properties"]["pieces"]
    assert line == {"default": 1, "description": "How many.", "minimum": 1, "type": "integer"}
    assert tool.result["properties"]["euros"] == {"type": "number"}
    assert "title" in tool.result["properties"], "a field of that name stays"
    assert tool.structured({"euros": 1.0, "title": ""}) == {"euros": 1.0, "title": ""}


def test_results_that_are_no_object_are_wrapped() -> None:
    def total(numbers: list[int]) -> int:
        """Add."""
        return sum(numbers)

    def anything(value: Any) -> Any:
        """Give it back."""
        return value

    tool = tool_of(total)
    assert tool.result["properties"] == {"result": {"type": "integer"}}
    assert tool.structured(3) == {"result": 3}
    assert total([1, 2]) == 3
    loose = tool_of(anything)
    assert loose.result == {"type": "object"}
    assert (loose.structured({"a": 1}), loose.structured([1])) == ({"a": 1}, {"result": [1]})


def test_a_key_tells_calls_apart() -> None:
    arguments = {"lines": [{"item": "a"}], "note": "x"}
    assert tool_of(order).key_of(arguments) is None
    assert tool_of(order, key="note").key_of(arguments) == "x"
    assert tool_of(order, key="note").key_of({"lines": []}) is None
    whole = tool_of(order, key=True)
    assert whole.key_of(arguments) == whole.key_of(dict(reversed(arguments.items())))
    assert whole.key_of(arguments) != whole.key_of({**arguments, "note": "y"})
    long = tool_of(order, key=lambda given: "x" * 5000)
    assert len(str(long.key_of(arguments))) == 64
    with pytest.raises(ValidationError, match="key of a call of 'order'"):
        tool_of(order, key=lambda given: given["absent"]).key_of(arguments)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Choice:
    color: Color | None = None


def test_a_form_can_ask_for_plain_fields_only() -> None:
    asking = asking_of("Which?", Line)
    assert asking.schema["required"] == ["item"]
    assert asking_of("Which?", Line).name == asking.name != asking_of("What?", Line).name
    with pytest.raises(ConfigError, match="lines of a question"):
        asking_of("Which?", Lines)
    with pytest.raises(ConfigError, match="asks for a pydantic model"):
        asking_of("Which?", int)
    with pytest.raises(ConfigError, match=r"ctx\.ask: Unable to generate"):
        asking_of("Which?", Penstock)


def test_a_form_can_ask_for_one_of_some_texts_that_may_be_left_out() -> None:
    asked = asking_of("Which?", Choice).schema
    assert asked["properties"]["color"] == {"type": "string", "enum": ["red", "blue"]}
    assert "required" not in asked


def test_what_is_no_tool_is_refused_when_it_is_written() -> None:
    async def bare(ctx: JobContext) -> None: ...

    async def field(amount: int = Field(3, ge=1)) -> None:
        """Take a default that is none."""

    async def fine(item: str) -> None:
        """Do nothing."""

    def refuse(function: Any, match: str, **options: Any) -> None:
        with pytest.raises(ConfigError, match=match):
            tool_of(function, **options)

    refuse(bare, "needs a docstring")
    refuse(field, "Annotated")
    refuse(fine, "not an argument", key="number")
    refuse(fine, "read_only and destructive", read_only=True, destructive=True)
    app = Penstock("sqlite:///unused.db")
    with pytest.raises(ConfigError, match="name of a tool"):
        app.tool("a:b")(fine)
    app.tool()(fine)
    with pytest.raises(ConfigError, match="already has a handler"):
        app.tool("fine")(order)
