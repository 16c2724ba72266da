"""Checks language models: reachable, key accepted, model known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from penstock.adapters.models.chat_client import ChatServer
from penstock.config import hide_secrets
from penstock.doctor.context import Case
from penstock.doctor.diagnosis import Diagnosis, broken, ok, skipped, warning
from penstock.errors import ConfigError
from penstock.model.llm import ROLES, ServedModel

if TYPE_CHECKING:
    import httpx2

ANSWER_SECONDS = 5.0
SHOWN = 5
"""Maximum models to list when the configured one is unknown."""


async def look(case: Case) -> list[Diagnosis]:
    used: dict[ServedModel, list[str]] = {}
    for role in ROLES:
        if (served := case.config.llm.model(role)) is not None:
            used.setdefault(served, []).append(role)
    if not used:
        return [skipped("models", "none configured: answers quote sentences of the documents")]
    asked = (_ask(f"model {', '.join(roles)}", served) for served, roles in used.items())
    return list(await asyncio.gather(*asked))


async def _ask(part: str, served: ServedModel) -> Diagnosis:
    import httpx2

    place = hide_secrets(served.base_url)
    server = ChatServer(served)
    try:
        headers = server.headers()
    except ConfigError as error:
        return broken(part, str(error), "set it for every process that asks the model")
    async with httpx2.AsyncClient(timeout=ANSWER_SECONDS, headers=headers) as client:
        try:
            answer = await client.get(f"{served.base_url.rstrip('/')}/models")
            if answer.status_code in (404, 405, 501):  # many servers have no such list
                return _asked(part, served, await _complete(client, server, served))
        except httpx2.HTTPError as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            found = f"{place} cannot be reached ({what})"
            return broken(part, found, "start it, or correct llm.base_url")
    return _listed(part, served, answer)


async def _complete(
    client: httpx2.AsyncClient, server: ChatServer, served: ServedModel
) -> httpx2.Response:
    """Request the shortest possible completion."""
    question: dict[str, Any] = {
        "model": served.name,
        "messages": [{"role": "user", "content": "Say ok."}],
        "max_completion_tokens" if served.reasoning else "max_tokens": 1,
    }
    return await client.post(server.url, json=question)


def _asked(part: str, served: ServedModel, answer: httpx2.Response) -> Diagnosis:
    """Judge a completion, for servers that do not list their models."""
    if (trouble := _refused(part, served, answer)) is not None:
        return trouble
    place = hide_secrets(served.base_url)
    if answer.status_code in (400, 404, 422):
        found = f"{place} answers {answer.status_code} when it is asked for {served.name}"
        advice = "correct llm.base_url, which often ends in /v1, or the name of the model"
        return broken(part, found, advice)
    return ok(part, f"{served.name} at {place} answers")


def _listed(part: str, served: ServedModel, answer: httpx2.Response) -> Diagnosis:
    if (trouble := _refused(part, served, answer)) is not None:
        return trouble
    place = hide_secrets(served.base_url)
    try:
        names = [str(one["id"]) for one in answer.json()["data"]]
    except (ValueError, TypeError, KeyError):
        found = f"{place} answers, but not with a list of its models"
        return warning(part, found, "make sure that llm.base_url is that of an OpenAI-like API")
    # Google's begin with `models/`, and are asked for with or without it.
    if served.name in names or f"models/{served.name}" in names:
        return ok(part, f"{served.name} at {place} is known")
    some = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    found = f"{place} does not know {served.name}; it has {some or 'none'}"
    return broken(part, found, "correct the name under llm.models")


def _refused(part: str, served: ServedModel, answer: httpx2.Response) -> Diagnosis | None:
    status, place = answer.status_code, hide_secrets(served.base_url)
    if status in (401, 403):
        found = f"{place} refuses the key (HTTP {status})"
        variable = served.key_variable
        advice = f"put a valid key into {variable}" if variable else "name one by llm.key_variable"
        return broken(part, found, advice)
    if status == 429:
        found = f"{place} answers 429: its limit is used up"
        return warning(part, found, "wait, or raise the limit there; jobs wait meanwhile")
    if status >= 500:
        return broken(part, f"{place} answers {status}", "check its log")
    return None
