"""Displays the steps of a job."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence

from penstock.cli.output import Looks, duration, print_table, printable, say
from penstock.model.redact import hidden
from penstock.model.step import Step
from penstock.ports.steps import is_internal, is_sleep


def print_steps(steps: Sequence[Step], names: Collection[str]) -> None:
    """A table of steps in the order in which they were begun; `names` are hidden in results."""
    say()
    if not steps:
        say("no steps")
        return
    steps = [step for step in steps if not is_internal(step)]
    begun = min((step.started_at for step in steps), default=0.0)
    rows = [
        {
            "step": printable(step.name + (f"#{step.occurrence}" if step.occurrence > 1 else "")),
            "begun": f"+{duration(step.started_at - begun)}",
            "took": ""
            if step.finished_at is None
            else duration(step.finished_at - step.started_at),
            "tries": str(step.attempts),
            "lane": printable(step.lane or ""),
            "told": printable(_told(step)),
            "result": _result(step, names),
        }
        for step in steps
    ]
    if not any(row["told"] for row in rows):
        for row in rows:
            del row["told"]
    print_table(rows, Looks(right=["begun", "took", "tries"], cut=["result"]))


def _told(step: Step) -> str:
    """What a receipt says of its call."""
    receipt = step.receipt
    if receipt is None:
        return ""
    tokens = [
        f"{count:,} {which}"
        for count, which in ((receipt.tokens_in, "in"), (receipt.tokens_out, "out"))
        if count is not None
    ]
    said = ["void receipt" if receipt.void else "receipt", receipt.model or ""]
    said += [f"{' '.join(tokens)} tokens"] if tokens else []
    said += [] if receipt.price is None else [f"price {receipt.price:g}"]
    return ", ".join(one for one in said if one)


def _result(step: Step, names: Collection[str]) -> str:
    if not step.recorded:
        return "not recorded yet"
    if step.receipt is not None and step.receipt.too_large:
        return "too large to be recorded"
    if is_sleep(step):
        return time.strftime("until %Y-%m-%d %H:%M:%S", time.localtime(step.result))
    return printable(json.dumps(hidden(step.result, names), ensure_ascii=False))


def _took(step: Step) -> str:
    return "" if step.finished_at is None else duration(step.finished_at - step.started_at)
