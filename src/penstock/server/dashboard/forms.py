"""Form errors: shown on the form, which keeps what was typed."""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.server.dashboard.session import Form
from penstock.server.problems import Problem, problem_of

Refused = (PenstockError, Problem)
"""Errors that the input of a form may cause."""


def told(error: PenstockError | Problem) -> Problem:
    """Return the problem to show on the page. Raises the error again if no input could have caused
    it."""
    problem = error if isinstance(error, Problem) else problem_of(error)
    if problem is None:
        raise error
    return problem


def typed(form: Form, *names: str) -> dict[str, str]:
    """Return the submitted fields, to show the form again."""
    return {name: form.fields.get(name, [""])[0] for name in names}


def empty(*names: str, **given: str) -> dict[str, str]:
    """An empty form."""
    return dict.fromkeys(names, "") | given


def number(form: Form, name: str, label: str) -> float | None:
    """An optional number. Problem (422) if it is not a number."""
    text = form.one(name)
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise Problem(422, "invalid", f"{label}: {text!r} is not a number") from None


def whole_number(form: Form, name: str, label: str) -> int | None:
    value = number(form, name, label)
    if value is None:
        return None
    if value != value // 1 or abs(value) > 2**53:
        raise Problem(422, "invalid", f"{label} must be a whole number")
    return int(value)
