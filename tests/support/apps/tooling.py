"""An app of tools: functions that agents call, each call a job."""

import asyncio
from enum import Enum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from penstock import JobContext, Penstock

app = Penstock(max_workers=4, retry_base_seconds=0.01, upkeep_seconds=0.1, durable=False)


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Day(Enum):
    MONDAY = "monday"
    SUNDAY = "sunday"


class Quote(BaseModel):
    item: str
    price: Annotated[float, Field(description="In euros.")]


@app.tool(read_only=True)
async def quote(
    item: Annotated[str, Field(min_length=1)], pieces: int = 1, size: Size = Size.SMALL
) -> Quote:
    """Price an item.

    Args:
        item: What it is called.
        pieces: How many of it.
    """
    return Quote(item=item, price=pieces * (2.5 if size is Size.SMALL else 5.0))


@app.tool(key="number", max_retries=5, timeout=600)
async def press(ctx: JobContext, number: str, weight: float = 1.0) -> dict[str, str]:
    """Press an order of cider; it takes until the file `gate` is there."""
    await ctx.step("crush", crush, number)
    await ctx.progress(0.5, "half way")
    await ctx.emit(f"pressing {number}")
    while not Path("gate").exists():  # noqa: ASYNC110, ASYNC240 (the test is another process)
        await asyncio.sleep(0.01)
    return {"number": number, "state": "pressed"}


def crush(number: str) -> str:
    with Path("crushed").open("a") as file:
        file.write(f"{number}\n")
    return "crushed"


@app.tool
def total(numbers: list[int]) -> int:
    """Add numbers."""
    return sum(numbers)


class Delivery(BaseModel):
    day: Annotated[Day, Field(description="The day.")]
    boxes: Annotated[int, Field(ge=1, le=10)]
    note: str | None = None
    gift: bool = False


@app.tool
async def deliver(ctx: JobContext, number: str) -> str:
    """Deliver an order, when somebody has said when."""
    delivery = await ctx.ask(f"When to deliver {number}?", Delivery)
    return "not at all" if delivery is None else f"{delivery.boxes} on {delivery.day.value}"


@app.tool
def deliver_in_thread(ctx: JobContext, number: str) -> str:
    """The same, in a thread."""
    delivery = ctx.ask(f"When to deliver {number}?", Delivery)
    return "not at all" if delivery is None else f"{delivery.boxes} on {delivery.day.value}"


@app.tool(max_retries=0)
async def spill(what: str) -> None:
    """Fail."""
    raise ValueError(f"spilt {what}")
