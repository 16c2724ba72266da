"""What a server of chat completions answers, and what is made of it."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.models import chat_client as chat_server
from penstock.adapters.models.chat_client import ChatServer
from penstock.errors import (
    ConfigError,
    CutShort,
    ModelError,
    RateLimited,
    Unavailable,
)
from penstock.model.llm import ServedModel
from tests.support.model_server import DONE, event

SERVER = ChatServer(ServedModel("m", "http://x/v1/"))
HELLO = event("m", {"content": "Hello"})
END = event("m", {}, "stop")


def whole(content: Any, finish: str | None = "stop", **more: Any) -> bytes:
    message = {"role": "assistant", "content": content}
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], **more}).encode()


async def said(*parts: bytes, into: list[str] | None = None) -> list[str]:
    pieces = [] if into is None else into

    async def come() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    async for piece in SERVER.pieces(come()):
        pieces.append(piece)
    return pieces


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hello", "Hello"),
        ([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}], "Hello"),
        ([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Hello"}], "Hello"),
        ("a\x00b\ud800", "a\ufffdb?"),
    ],
)
async def test_text_is_taken_whole_and_streamed_alike(content: Any, text: str) -> None:
    assert SERVER.text(whole(content)) == text
    assert await said(event("m", {"content": content}) + END + DONE) == [text]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no chat completion"),
        (b"<html>canary</html>", "no chat completion"),
        (b'"canary"', "no chat completion"),
        (b"\xff\xfe\x00", "no chat completion"),
        (b"[" * 100_000, "no chat completion"),
        (b'{"choices": []}', "no chat completion"),
        (b'{"choices": [{"message": {}}]}', "no chat completion"),
        (b'{"choices": [{"message": {"content": 5}}]}', "no chat completion"),
        (b'{"choices": [{"message": {"content": [5]}}]}', "no chat completion"),
        (whole(None), "an empty answer"),
        (whole(" \n"), "an empty answer"),
        (whole([]), "an empty answer"),
        (b'{"error": "canary"}', "an error instead"),
        (b'{"error": {"message": "canary", "code": "bad"}}', "an error instead"),
    ],
)
def test_useless_answer_is_an_error_that_does_not_quote_it(body: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        SERVER.text(body)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("finish", ["length", "content_filter", "tool_calls"])
async def test_answer_that_is_not_all_is_said_to_be_so(finish: str) -> None:
    with pytest.raises(CutShort):
        SERVER.text(whole("Hello", finish))
    pieces: list[str] = []
    with pytest.raises(CutShort):
        await said(HELLO, event("m", {}, finish), DONE, into=pieces)
    assert pieces == ["Hello"]


@pytest.mark.parametrize(
    ("code", "kind"), [(429, RateLimited), (503, Unavailable), ("500", Unavailable)]
)
async def test_error_inside_an_answer_is_what_its_code_means(
    code: Any, kind: type[Exception]
) -> None:
    error = json.dumps({"error": {"message": "canary", "code": code}}).encode()
    with pytest.raises(kind) as caught:
        SERVER.text(error)
    assert "canary" not in str(caught.value)
    pieces: list[str] = []
    with pytest.raises(kind) as caught:
        await said(HELLO, b"data: " + error + b"\n\n", into=pieces)
    assert "canary" not in str(caught.value)
    assert pieces == ["Hello"]


@pytest.mark.parametrize(
    "parts",
    [
        [HELLO, END, DONE],
        [HELLO, END],
        [HELLO, DONE],
        [HELLO, b"data: [DONE]"],
        [HELLO, b"data:[DONE]\r\n\r\n"],
        [HELLO, event("m", {}, "stop").rstrip()],
        [b": a ping\n\n", b"event: x\nid: 1\nretry: 5\n", HELLO, b"\n\n:\n\n", END, DONE],
        [event("m", {"role": "assistant", "content": None}), HELLO, END, DONE],
        [HELLO, event("m", None), b'data: {"choices": []}\n\n', END, DONE],
        [HELLO.replace(b"\n", b"\r\n"), END, DONE],
        [HELLO.replace(b'"choices"', b'\ndata: "choices"'), END, DONE],
        [event("m", {"content": "Hello"}, "stop"), event("m", {"content": "behind"})],
        [event("m", {"reasoning_content": "hm"}), HELLO, END, b'data: {"usage": 5}\n\n', DONE],
    ],
)
async def test_stream_is_read_in_all_the_ways_that_servers_send_it(parts: list[bytes]) -> None:
    assert await said(*parts) == ["Hello"]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "no stream of events"),
        ([b"<html>canary</html>"], "no stream of events"),
        ([whole("canary")], "no stream of events"),
        ([b"data: canary\n\n"], "no part of a chat completion"),
        ([HELLO, b"data: {\n\n"], "no part of a chat completion"),
        ([HELLO, b"data: \xff\n\n"], "no part of a chat completion"),
        ([HELLO, b'data: {"choices": 5}\n\n'], "no part of a chat completion"),
        ([HELLO, b'data: {"choices": ["canary"]}\n\n'], "no part of a chat completion"),
        ([HELLO, b'data: {"error": {"message": "canary"}}\n\n'], "an error instead"),
        ([HELLO, b"data: " + b"canary" * chat_server.MAX_LINE], "a line that has no end"),
        ([DONE], "an empty answer"),
        ([event("m", {"content": " "}), END, DONE], "an empty answer"),
    ],
)
async def test_useless_stream_is_an_error_that_does_not_quote_it(
    parts: list[bytes], message: str
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        await said(*parts)
    assert "canary" not in str(caught.value)


async def test_stream_without_an_end_has_broken_off() -> None:
    pieces: list[str] = []
    with pytest.raises(Unavailable, match="broke off"):
        await said(HELLO, HELLO, into=pieces)
    assert pieces == ["Hello", "Hello"]


@given(
    st.lists(st.text(min_size=1), min_size=1).filter(lambda words: "".join(words).strip()),
    st.data(),
)
async def test_pieces_are_the_same_however_the_stream_is_cut(
    words: list[str], data: st.DataObject
) -> None:
    sent = b"".join(event("m", {"content": word}) for word in words) + END + DONE
    cuts = sorted(data.draw(st.sets(st.integers(0, len(sent)), max_size=20)))
    parts = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    assert await said(*parts) == await said(sent)
    assert "".join(await said(sent)) == "".join(words).replace("\x00", "\ufffd")


@given(st.lists(st.binary(max_size=50) | st.sampled_from([HELLO, END, DONE, b"data:", b"\n\n"])))
async def test_no_stream_ends_in_any_other_error(parts: Iterable[bytes]) -> None:
    with suppress(ModelError, Unavailable):
        assert "".join(await said(*parts)).strip()


def test_key_is_read_when_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ChatServer(ServedModel("m", "http://x", "LLM_KEY"))
    monkeypatch.delenv("LLM_KEY", raising=False)
    with pytest.raises(ConfigError, match="set LLM_KEY to the key of the language model"):
        server.headers()
    monkeypatch.setenv("LLM_KEY", " one\n")
    assert server.headers() == {"authorization": "Bearer one"}
    monkeypatch.setenv("LLM_KEY", "two")
    assert server.headers() == {"authorization": "Bearer two"}
