"""What nobody foresaw: it is answered, counted and logged, and what it says is quoted nowhere."""

from collections.abc import MutableMapping
from typing import Any

import pytest

from penstock.model.server import ServerConfig
from penstock.server.dashboard.pages import problem_page
from penstock.server.draining import Draining
from penstock.server.guard import Guard, Receive, Scope, Send
from penstock.server.metrics import Metrics

SCOPE = {
    "type": "http",
    "method": "GET",
    "raw_path": b"/v1/jobs",
    "query_string": b"",
    "headers": [(b"host", b"localhost")],
}


SAID = "call kim at 555-0100"


async def call(app: Any, metrics: Metrics) -> list[MutableMapping[str, Any]]:
    """What is sent for a request to `app` behind the guard."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await Guard(app, ServerConfig(), Draining(), metrics, problem_page)(dict(SCOPE), receive, send)
    return sent


async def test_an_unforeseen_error_is_counted_and_not_quoted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError(SAID)

    metrics = Metrics()
    counted: list[int] = []
    metrics.answered = lambda method, route, status, seconds: counted.append(status)  # type: ignore[method-assign]
    start, body = await call(broken, metrics)
    assert (start["status"], counted) == (500, [500])
    assert (b"x-content-type-options", b"nosniff") in start["headers"]
    assert b"RuntimeError" in body["body"]
    assert "RuntimeError" in caplog.text
    assert "in broken" in caplog.text, "where it was raised"
    assert SAID not in caplog.text + str(body)


async def test_an_answer_that_has_begun_is_cut_and_not_begun_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def breaks_off(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("half way")

    (start,) = await call(breaks_off, Metrics())
    assert start["status"] == 200
    assert "RuntimeError" in caplog.text
