"""Name servers and a network that a test decides about, below the guard."""

from __future__ import annotations

from collections.abc import Iterable

import httpcore2

PUBLIC = "93.184.216.34"


class Names:
    """A name server that answers as it was told, each time with the next answer or error."""

    def __init__(self, *answers: list[str] | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked += 1
        answer = self.answers[min(self.asked, len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Wire(httpcore2.AsyncNetworkBackend):
    """Notes where connections go, and takes them all to one server."""

    def __init__(self, port: int, dead: Iterable[str] = ()) -> None:
        self.port = port
        self.dead = set(dead)
        self.reached: list[str] = []
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.reached.append(host)
        if host in self.dead:
            raise httpcore2.ConnectError("nobody there")
        return await self._network.connect_tcp("127.0.0.1", self.port, timeout)
