"""A key that may only call tools is held to the path that is served, whatever the Host is."""

from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import Request
from starlette.datastructures import URL

from penstock.model.access import Caller, KeyScope
from penstock.server.callers import known
from penstock.server.problems import Problem


class Callers:
    async def caller(self, request: Request) -> Caller:
        return Caller("default", frozenset(KeyScope), "key", tools=frozenset({"quote"}))

    def take(self, caller: Caller) -> Any:
        return SimpleNamespace(allowed=True, headers=dict)


def asking(path: str) -> Request:
    app = SimpleNamespace(state=SimpleNamespace(callers=Callers()))
    request = Request({"type": "http", "app": app, "method": "GET", "path": path, "headers": []})
    # As versions of Starlette make it that take the Host header `localhost/mcp` as it is.
    request._url = URL(f"http://localhost/mcp{path}")
    return request


@pytest.mark.parametrize("path", ["/v1/jobs", "/jobs", "/", "/v1/toolsmith", "/v1/usage"])
async def test_everything_else_is_refused(path: str) -> None:
    with pytest.raises(Problem, match="may only call tools"):
        await known(asking(path))


@pytest.mark.parametrize("path", ["/mcp", "/v1/tools", "/v1/tools/quote", "/v1/calls/1/cancel"])
async def test_tools_and_calls_are_served(path: str) -> None:
    assert (await known(asking(path))).confined() is not None
