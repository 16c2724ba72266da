"""The port to a language model, asked by a job in the lane of its phase."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, NamedTuple, Protocol

from penstock.ports.provider import ProviderContext

Effort = Literal["low", "medium"]


class Message(NamedTuple):
    role: Literal["system", "user", "assistant"]
    content: str


class LanguageModel(Protocol):
    """One model, for one phase. Each request takes a permit in its lane (`llm.plan`, `llm.search`,
    `llm.answer`) and ends by the lane's timeout and the job's deadline.

    Raises what `ctx.http` raises; ModelError where the answer is of no use; ConfigError where a key
    is wanted and its variable is not set.
    """

    @property
    def name(self) -> str:
        """What the server calls it."""
        ...

    @property
    def lane(self) -> str: ...

    def check(self) -> None:
        """ConfigError where it could not be asked for want of a key."""
        ...

    async def complete(
        self,
        asking: ProviderContext,
        messages: Sequence[Message],
        *,
        most: int,
        effort: Effort = "low",
    ) -> str:
        """The model's whole answer, of at most so many tokens; CutShort where they did not do."""
        ...

    def stream(
        self,
        asking: ProviderContext,
        messages: Sequence[Message],
        *,
        most: int,
        effort: Effort = "low",
    ) -> AsyncGenerator[str, None]:
        """The answer as it comes, in pieces. What goes wrong is raised behind those that came:
        CutShort where the tokens did not do, Unavailable where it breaks off.

        Who may not read to the end closes it, with `contextlib.aclosing`: that ends the request.
        """
        ...
