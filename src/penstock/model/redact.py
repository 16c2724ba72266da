"""Hides secrets in payloads, results and errors of jobs.

A value is hidden by the name it stands under, and what looks like credentials in any text. It is
a courtesy to whoever looks over somebody's shoulder, not a guard: a secret under a harmless name is
shown. Programs get everything as it is; what a caller may read is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from penstock.model.job import Job, Record

HIDDEN = "***"
NAMES = (
    *("password", "passwords", "passwd", "pwd", "passphrase", "passcode", "pin"),
    *("secret", "secrets", "token", "credential", "credentials"),
    *("api key", "apikey", "access key", "secret key", "private key", "signing key"),
    *("authorization", "cookie", "cookies", "session id", "sessionid"),
)
"""Words, or several in a row, of names whose values are hidden, however the name is written:
`client_secret`, `X-API-Key`, `accessToken`."""
MAX_DEEP = 100
"""What lies deeper is hidden as a whole."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
# Of bounded length: long texts may have many places where one could begin.
_USER = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://)[^\s/?#@]+@")
_PARAMETER = re.compile(r"([?&;])([^\s=&;#?]+)=([^\s&;#]+)")
# Not "basic example": what follows is no plain word.
_SCHEME = re.compile(r"\b((?i:bearer|basic))\s+(?=[\w.~+/-]*[A-Z0-9=])[\w.~+/-]{6,}=*")
_KEY = re.compile(r"\bpk_[0-9a-f]{32}_[a-z2-7]+")


def hidden(value: Any, names: Collection[str] = ()) -> Any:
    """A JSON value as people may see it. `names` are hidden besides NAMES."""
    return _hidden(value, _secret_names(names), 0)


def hidden_job(job: Job, names: Collection[str] = ()) -> Job:
    """A job as people may see it."""
    return replace(
        job,
        payload=hidden(job.payload, names),
        result=hidden(job.result, names),
        message=hidden(job.message, names),
        error=None if job.error is None else Record(hidden(job.error, names)),
        history=[Record(hidden(record, names)) for record in job.history],
        lines=[Record(hidden(line, names)) for line in job.lines],
    )


def _secret_names(more: Collection[str]) -> frozenset[str]:
    return frozenset(f" {' '.join(_words(name))} " for name in (*NAMES, *more))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _is_secret(name: str, secret: frozenset[str]) -> bool:
    written = f" {' '.join(_words(name))} "
    return any(one in written for one in secret)


def _hidden(value: Any, secret: frozenset[str], depth: int) -> Any:
    if depth > MAX_DEEP:
        return HIDDEN
    match value:
        case str():
            return _text(value, secret)
        case Mapping():
            return {
                name: HIDDEN
                if one not in (None, "") and _is_secret(str(name), secret)
                else _hidden(one, secret, depth + 1)
                for name, one in value.items()
            }
        case list() | tuple():
            return [_hidden(one, secret, depth + 1) for one in value]
        case _:
            return value


def _text(text: str, secret: frozenset[str]) -> str:
    if "://" in text:
        text = _USER.sub(rf"\1{HIDDEN}@", text)
    if "=" in text:

        def parameter(found: re.Match[str]) -> str:
            shown = HIDDEN if _is_secret(found[2], secret) else found[3]
            return f"{found[1]}{found[2]}={shown}"

        text = _PARAMETER.sub(parameter, text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    return _KEY.sub(f"pk_{HIDDEN}", text)
