"""A language model on loopback that answers from a script: OpenAI's `/v1/chat/completions`, whole
or streamed as it is asked. Its phases are told apart by the model's name.

    with ModelServer() as model:
        model.script[PLAN] = '{"queries": ["sluice"]}'            # always that
        model.script[SEARCH] = ["one", Reply(status=500), "two"]  # in turn, the last one for ever
        model.script[ANSWER] = lambda asked: f"You said {asked.user}"  # of what it was asked
        model.script[ANSWER] = [lambda asked: "...", Reply("so [1]. ", cut_after=1)]  # all together

        model.config()              # the `llm` section of a config file that names it

        model.asked(PLAN)           # each request: messages, stream, key, when it came and went
        model.most_at_once(SEARCH)  # how many were being answered at a moment

What is not in the script is answered with "OK." by every model. `Reply` says how it fails.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.counting_server import Answer, CountingServer, Hit
from tests.support.rate_windows import most_at_once

PLAN, SEARCH, ANSWER = "plan-model", "search-model", "answer-model"
PATH = "/v1/chat/completions"
DONE = b"data: [DONE]\n\n"


@dataclass(slots=True, frozen=True)
class Reply:
    """One answer. In a stream, each word of the text is a token."""

    text: Any = "OK."
    delay: float = 0.0
    """Seconds before it begins."""
    pause: float = 0.0
    """Seconds between two tokens of a stream."""
    finish: str | None = "stop"
    """The finish_reason; `length`: the text ends for want of tokens."""
    status: int = 200
    """Others are answered with an error object."""
    retry_after: float | None = None
    hang: bool = False
    """Takes the request and never answers."""
    reset: bool = False
    """Hangs up instead of answering."""
    cut_after: int | None = None
    """Hangs up behind so many tokens of a stream."""
    stall_after: int | None = None
    """Sends so many tokens of a stream, and then nothing."""
    until: Callable[[], bool] | None = None
    """Its end is not sent before this is true; of a whole answer, all of it."""
    raw: bytes | None = None
    """This instead of the answer, whatever was asked for."""
    leaves: bool = False
    """Hangs up behind it, as late as can be: on the next request over the same connection."""
    tail: bytes = DONE
    """What comes behind the last token of a stream, in place of [DONE]."""


@dataclass(slots=True, frozen=True)
class Asked:
    """One request, as the server saw it."""

    model: str
    messages: list[dict[str, Any]]
    stream: bool
    body: dict[str, Any]
    hit: Hit = field(repr=False)
    """When it came and went, and its headers."""

    @property
    def user(self) -> str:
        """The last thing that was said to it."""
        return str(self.messages[-1]["content"])

    @property
    def system(self) -> str:
        return "\n".join(str(one["content"]) for one in self.messages if one["role"] == "system")

    @property
    def span(self) -> tuple[float, float]:
        """From when to when it was there, on time.monotonic(); until now if it still is."""
        return self.hit.arrived, self.hit.answered or self.hit.lost or time.monotonic()

    @property
    def key(self) -> str:
        return self.hit.headers.get("authorization", "").removeprefix("Bearer ")


Turn = str | Reply | Callable[[Asked], str | Reply]
Script = Turn | Sequence[Turn]


class ModelServer(CountingServer):
    def __init__(self) -> None:
        super().__init__()
        self.script: dict[str, Script] = {}
        self._turns: Counter[str] = Counter()

    def asked(self, model: str | None = None) -> list[Asked]:
        """Every request so far, of one model or of all."""
        every = [_asked(hit) for hit in self.at(PATH)]
        return [one for one in every if model in (None, one.model)]

    def most_at_once(self, model: str | None = None) -> int:
        """Of those requests, how many shared a moment."""
        return most_at_once([one.span for one in self.asked(model)])

    def config(self, key_variable: str = "") -> str:
        """The section of a config file, with a model for each phase."""
        key = f"\n  key_variable: {key_variable}" if key_variable else ""
        models = f"{{plan: {PLAN}, search: {SEARCH}, answer: {ANSWER}}}"
        return f"llm:\n  base_url: {self.url('/v1')}\n  models: {models}{key}\n"

    def answer(self, path: str) -> Answer:
        if path != PATH:
            return Answer(404)
        asked = _asked(self.hits[-1])
        reply = self._reply(asked)
        if reply.hang or reply.reset:
            return Answer(hang=reply.hang, reset=reply.reset, delay=reply.delay)
        if reply.status != 200:
            wait = {} if reply.retry_after is None else {"retry-after": f"{reply.retry_after:g}"}
            body = reply.raw or json.dumps({"error": {"message": str(reply.text)}}).encode()
            return Answer(reply.status, headers=wait, body=body, delay=reply.delay)
        if asked.stream:
            return _streamed(asked, reply)
        body = _whole(asked, reply) if reply.raw is None else reply.raw
        headers = {"content-type": "application/json"}
        return Answer(headers=headers, body=body, delay=reply.delay, until=reply.until)

    def _reply(self, asked: Asked) -> Reply:
        script = self.script.get(asked.model, Reply())
        if not isinstance(script, str | Reply) and not callable(script):
            number = self._turns[asked.model]
            self._turns[asked.model] += 1
            script = script[min(number, len(script) - 1)]
        said = script(asked) if callable(script) else script
        return Reply(said) if isinstance(said, str) else said


def _asked(hit: Hit) -> Asked:
    body = json.loads(hit.body)
    return Asked(body["model"], body["messages"], bool(body.get("stream")), body, hit)


def _whole(asked: Asked, reply: Reply) -> bytes:
    message = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    known = {"id": "c1", "object": "chat.completion", "model": asked.model, "choices": [choice]}
    return json.dumps(known).encode()


def _streamed(asked: Asked, reply: Reply) -> Answer:
    tokens = re.findall(r"\s*\S+\s*$|\s*\S+", reply.text) if isinstance(reply.text, str) else []
    events = [event(asked.model, {"role": "assistant", "content": ""})]
    kept = min((at for at in (reply.cut_after, reply.stall_after) if at is not None), default=None)
    events += [event(asked.model, {"content": token}) for token in tokens[:kept]]
    if reply.raw is not None:
        events = [reply.raw]
    elif kept is None:
        events.append(event(asked.model, {}, reply.finish) + reply.tail)
    return Answer(
        headers={"content-type": "text/event-stream"},
        parts=events,
        delay=reply.delay,
        pause=reply.pause,
        cut=reply.cut_after is not None,
        stalls=reply.stall_after is not None,
        leaves=reply.leaves,
        until=reply.until,
    )


def event(model: str, delta: Any, finish: str | None = None) -> bytes:
    """One event of a stream, as it is sent."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    known = {"id": "c1", "object": "chat.completion.chunk", "model": model, "choices": [choice]}
    return b"data: " + json.dumps(known).encode() + b"\n\n"
