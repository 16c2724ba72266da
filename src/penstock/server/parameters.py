"""Rejects unknown query parameters: a misspelt filter would return everything."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from fastapi import Request
from fastapi.dependencies.models import Dependant

from penstock.server.problems import Problem

API = "/v1/"


def check_parameters(request: Request) -> None:
    """422 for a parameter that the route does not have. Pages may carry others."""
    if not request.query_params or not request.url.path.startswith(API):
        return
    known = sorted(set(_parameters(request.scope["route"].dependant)))
    unknown = [name for name in request.query_params if name not in known]
    if not unknown:
        return
    name = unknown[0][:64]
    if close := get_close_matches(name, known, n=1):
        hint = f"did you mean {close[0]}?"
    else:
        hint = f"there are: {', '.join(known)}" if known else "there are none here"
    what = f"there is no such parameter; {hint}"
    raise Problem(
        422, "invalid", f"query.{name}: {what}", errors=[{"where": f"query.{name}", "what": what}]
    )


def _parameters(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for needed in dependant.dependencies:
        yield from _parameters(needed)
