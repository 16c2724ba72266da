"""A provider of models on loopback that enforces its limits as the large ones do.

It counts requests, tokens (together, input, output), requests at once and a day's money, answers
what is over any of them with a 429, and sends the headers of `openai`, `anthropic`, or nothing but
`retry-after` on a 429 (`bare`). A request counts with its input and `max_tokens` when it arrives,
and with what it has really used once it is answered.

    with MeteredProvider(Limits(tokens=60_000, seconds=6), dialect="openai") as provider:
        ...                                      # POST provider.url with a body as below
        provider.limits = Limits(tokens=20_000, seconds=6)
        provider.latency = 2.0                   # or a function of the requests that are there
        provider.status = 503                    # answers everything so; None: as usual
        provider.down(); provider.up()           # refuses connections; back on the same port
    provider.log                                 # every request, also those refused

The body is JSON, whatever the path: `messages`, `max_tokens`, and what else decides the answer:
`input_tokens` (otherwise one for four bytes of the body), `real` (`{"input": 5, "output": 9}`, or
otherwise the input and all of `max_tokens`), `seconds` (otherwise `latency`), `model` (its price),
`start` (when it was due: where the machine stood still, and it comes later than a lane allows for,
it counts as of the last moment that a lane does, and is told as `late`).
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from penstock.aio import end_tasks
from penstock.model.lane import SPARE
from tests.support.closing_server import stop_listening
from tests.support.meters import DayMeter, Entry, Meter, reset_text, time_text
from tests.support.waiting import PATIENCE

MICRO = 1_000_000


@dataclass(slots=True, frozen=True)
class Limits:
    """Of `seconds` each; None: not limited."""

    requests: int | None = None
    tokens: int | None = None
    input: int | None = None
    output: int | None = None
    seconds: float = 60.0
    window: str = "sliding"
    """Or `bucket`."""
    parallel: int | None = None
    cost_per_day: float | None = None


@dataclass(slots=True, eq=False)
class Seen:
    """One request, as the provider's log has it."""

    at: float
    """When it arrived, by the wall clock."""
    body: dict[str, Any]
    headers: dict[str, str]
    bound: dict[str, int]
    """Requests, tokens, input, output, cost: what it counts for until it is answered."""
    real: dict[str, int]
    over: str = ""
    """The limit it was refused for."""
    status: int = 0
    """0: not answered."""
    ended: float = 0.0

    @property
    def billed(self) -> dict[str, int]:
        return self.real if self.status == 200 else dict.fromkeys(self.real, 0)


class MeteredProvider:
    """`price` of a model is (input, output) in millionths of money for each token."""

    def __init__(
        self,
        limits: Limits,
        *,
        dialect: str = "openai",
        prices: Mapping[str, tuple[float, float]] | None = None,
        latency: float | Callable[[int], float] = 0.0,
        refuses: bool = True,
    ) -> None:
        self.dialect = dialect
        self.latency = latency
        self.status: int | None = None
        self.refuses = refuses
        """Otherwise it only looks on: `worst` says what came of it."""
        self.log: list[Seen] = []
        self.late = 0
        self.in_flight = self.most_in_flight = 0
        self.port = 0
        self._prices = prices or {}
        self._meters: dict[str, Meter | DayMeter] = {}
        self.limits = limits
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="metered-provider")
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/chat/completions"

    @property
    def limits(self) -> Limits:
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        """What was used of the limits before counts toward the new ones."""
        self._limits = limits
        for name in ("requests", "tokens", "input", "output"):
            limit, meter = getattr(limits, name), self._meters.get(name)
            if limit is None:
                self._meters.pop(name, None)
            elif isinstance(meter, Meter) and meter.refills == (limits.window == "bucket"):
                meter.limit, meter.seconds = limit, limits.seconds
            else:
                self._meters[name] = Meter(limit, limits.seconds, limits.window == "bucket")
        if limits.cost_per_day is None:
            self._meters.pop("cost", None)
        else:
            spent = self._meters.setdefault("cost", DayMeter(0))
            spent.limit = limits.cost_per_day * MICRO

    @property
    def worst(self) -> dict[str, float]:
        """The most that was used of each limit, as a share: above 1 it was exceeded."""
        return {name: meter.worst for name, meter in self._meters.items()}

    @property
    def refused(self) -> list[Seen]:
        """Those that were answered 429 for a limit."""
        return [one for one in self.log if one.over]

    def up(self) -> None:
        """Accept connections, always on the same port."""
        self._run(self._listen())

    def down(self) -> None:
        """Refuse connections, and drop those that are open."""
        self._run(self._hang_up())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(
                self._serve, "127.0.0.1", self.port, backlog=1024
            )
            self.port = self._server.sockets[0].getsockname()[1]

    async def _hang_up(self) -> None:
        if self._server is not None:
            await stop_listening(self._server)
            for writer in list(self._writers):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    async def _end(self) -> None:
        """Leave nothing under way: who asked may be dead, and its answer hours away."""
        await end_tasks(asyncio.all_tasks() - {asyncio.current_task()})

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await reader.readline():
                headers: dict[str, str] = {}
                while (line := (await reader.readline()).decode("latin-1")) not in ("\r\n", ""):
                    name, _, value = line.partition(":")
                    headers[name.lower()] = value.strip()
                text = await reader.readexactly(int(headers.get("content-length", "0")))
                status, said, body = await self._answer(headers, text)
                answer = json.dumps(body).encode()
                said |= {"content-type": "application/json", "content-length": str(len(answer))}
                lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
                writer.write(f"HTTP/1.1 {status} -\r\n{lines}\r\n".encode("latin-1") + answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the client has gone
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(
        self, headers: dict[str, str], text: bytes
    ) -> tuple[int, dict[str, str], dict[str, Any]]:
        now = time.time()
        one = self._seen(now, headers, json.loads(text or b"{}"), len(text))
        self.log.append(one)
        if self.status is not None:
            one.status, one.ended = self.status, now
            return self.status, self._room_left(now), {"error": {"message": "so it was set"}}
        waits = {name: meter.wait(now, one.bound[name]) for name, meter in self._meters.items()}
        if self.limits.parallel is not None and self.in_flight >= self.limits.parallel:
            waits["parallel"] = 1.0
        over, wait = max(waits.items(), key=lambda found: found[1], default=("", 0.0))
        if wait > 0 and self.refuses:
            one.over, one.status, one.ended = over, 429, now
            said = self._room_left(now) | {"retry-after": str(max(1, round(wait + 0.499)))}
            error = {"type": over, "code": "rate_limit_exceeded", "message": f"{over} are used up"}
            return 429, said, {"error": error}
        entries = self._take(one, now)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        lasts = self.latency(self.in_flight) if callable(self.latency) else self.latency
        try:
            await asyncio.sleep(one.body.get("seconds", lasts))
        finally:
            self.in_flight -= 1
        for name, entry in entries.items():
            if (meter := self._meters.get(name)) is not None:
                meter.correct(entry, one.real[name])
        one.status, one.ended = 200, time.time()
        return 200, self._room_left(one.ended), _said(self.dialect, one.real)

    def _seen(self, now: float, headers: dict[str, str], body: dict[str, Any], size: int) -> Seen:
        sent = int(body.get("input_tokens", size // 4))
        bound = {"input": sent, "output": int(body.get("max_tokens", 0))}
        real = {**bound, **body.get("real", {})}
        for part in (bound, real):
            price = self._prices.get(body.get("model", ""), (0.0, 0.0))
            part["requests"] = 1
            part["tokens"] = part["input"] + part["output"]
            part["cost"] = round(part["input"] * price[0] + part["output"] * price[1])
        return Seen(now, body, headers, bound, real)

    def _take(self, one: Seen, now: float) -> dict[str, Entry]:
        at = now
        if (start := one.body.get("start")) is not None:
            at = min(now, start + self.limits.seconds * (SPARE - 1))
            self.late += at < now
        return {name: meter.take(now, one.bound[name], at) for name, meter in self._meters.items()}

    def _room_left(self, now: float) -> dict[str, str]:
        """The headers that every answer has."""
        found: dict[str, str] = {}
        for name, meter in self._meters.items():
            left, resets = max(0, int(meter.left(now))), meter.empties(now)
            if self.dialect == "openai" and name in ("requests", "tokens"):
                found[f"x-ratelimit-limit-{name}"] = str(int(meter.limit))
                found[f"x-ratelimit-remaining-{name}"] = str(left)
                found[f"x-ratelimit-reset-{name}"] = reset_text(resets)
            elif self.dialect == "anthropic" and name != "cost":
                called = f"{name}-tokens" if name in ("input", "output") else name
                found[f"anthropic-ratelimit-{called}-limit"] = str(int(meter.limit))
                found[f"anthropic-ratelimit-{called}-remaining"] = str(left)
                found[f"anthropic-ratelimit-{called}-reset"] = time_text(now + resets)
        return found


def _said(dialect: str, real: Mapping[str, int]) -> dict[str, Any]:
    if dialect == "anthropic":
        usage = {"input_tokens": real["input"], "output_tokens": real["output"]}
        return {"content": [{"type": "text", "text": "So it is."}], "usage": usage}
    usage = {"prompt_tokens": real["input"], "completion_tokens": real["output"]}
    usage["total_tokens"] = real["tokens"]
    message = {"role": "assistant", "content": "So it is."}
    return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
