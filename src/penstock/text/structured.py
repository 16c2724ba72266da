"""Extracts JSON from the reply of a language model."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from penstock.errors import ModelError

MAX_TRIES = 100
"""Places at which an object may begin; text that is full of them is none."""

T = TypeVar("T", bound=BaseModel)


def structured(text: str, form: type[T]) -> T:
    """The first JSON object in `text` that fits `form`, whatever stands around it: prose, a fence,
    the rest of a thought. ModelError, which quotes nothing, where there is none."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(MAX_TRIES):
        if at < 0:
            break
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):  # no JSON: perhaps further on
            at = text.find("{", at + 1)
            continue
        try:
            return form.model_validate(found)
        except ValidationError:
            at = text.find("{", end)
    raise ModelError(f"an answer without the JSON object that was asked for ({form.__name__})")
