"""A job's stored result, read as the type that its handler is annotated to return."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from penstock.engine.annotations import resolve
from penstock.errors import ValidationError

log = logging.getLogger("penstock")

Read = Callable[[Any], Any]


def as_stored(result: Any) -> Any:
    """The result of a handler that does not say what it returns."""
    return result


@lru_cache(maxsize=1000)
def reader(kind: str, function: Callable[..., Any]) -> Read:
    """What reads results of a handler; it raises ValidationError for a result that is none."""
    annotation = inspect.signature(function).return_annotation
    if annotation in (inspect.Signature.empty, Any, "Any"):
        return as_stored
    try:
        returns = resolve(annotation, function)
    except (NameError, AttributeError) as error:
        log.warning(
            "%s: the type of its results (%s) cannot be resolved (%s), so they are given as JSON",
            kind,
            annotation,
            error,
        )
        return as_stored
    return _typed(kind, returns)


def _typed(kind: str, returns: Any) -> Read:
    parse: Read | None = None

    def read(result: Any) -> Any:
        nonlocal parse
        if type(result) is (type(None) if returns is None else returns):
            return result  # as most plain ones are; pydantic takes 0.2 s to load
        import pydantic

        if parse is None:
            try:
                parse = pydantic.TypeAdapter(returns).validate_json
            except pydantic.errors.PydanticUserError:
                log.warning("%s: results are given as JSON, not as %s", kind, returns)
                parse = json.loads
        try:
            return parse(json.dumps(result))
        except pydantic.ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}"
                for one in error.errors(include_url=False, include_input=False)
            )
            name = getattr(returns, "__name__", returns)
            raise ValidationError(
                f"the stored result of a {kind!r} job is no {name}, which its handler returns "
                f"here: {problems}; app.result gives it as it is stored"
            ) from None

    return read
