"""Client of embedders with OpenAI's `/v1/embeddings`.

It is given the function that makes the request: `ctx.http.post` inside a job, so that each request
takes its permit in the lane and knows the deadline; an `httpx2.AsyncClient().post` elsewhere. Both
end in the same errors.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Awaitable, Callable, Sequence
from itertools import repeat
from operator import truediv
from typing import TYPE_CHECKING, Any

from penstock.adapters.models.authorization import authorization
from penstock.errors import AuthenticationError, EmbedderError, HttpError, RateLimited, Unavailable
from penstock.text.normalize import storable
from penstock.text.retry_after import retry_after

if TYPE_CHECKING:
    import httpx2

Post = Callable[..., Awaitable["httpx2.Response"]]
"""`await post(url, json=..., headers=...)`"""


class OpenAIEmbedder:
    """One request for each call, so that each has its permit: batches are the caller's.

    `url` is that of the API, such as `http://localhost:8080/v1`. The key is read from the
    environment variable `key_variable` at each call, and is in no message and no log.
    """

    def __init__(
        self, url: str, model: str, dimensions: int, post: Post, key_variable: str | None = None
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        self._url = f"{url.rstrip('/')}/embeddings"
        self._post = post
        self._key_variable = key_variable

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        import httpx2  # here, because many processes make no requests

        headers = authorization(self._key_variable, "embedder")
        question = {"model": self.model, "input": [storable(text) for text in texts]}
        try:
            response = await self._post(self._url, json=question, headers=headers)
        except httpx2.TransportError as error:
            what = f"{self.model}: {type(error).__name__}: {error}".rstrip(": ")
            raise Unavailable(what) from error
        self._raise_for_status(response)
        return self._vectors(response.content, len(texts))

    def _raise_for_status(self, response: httpx2.Response) -> None:
        """As `ctx.http` has done already, if it made the request. Bodies may repeat the texts, so
        they are not quoted."""
        status = response.status_code
        if status < 300:
            return
        where = f"{self.model}: HTTP {status}"
        if status == 429:
            raise RateLimited(where, retry_after(response.headers.get("retry-after")))
        if status >= 500:
            problem = Unavailable(where)
            problem.status = status
            raise problem
        if status in (401, 403):
            raise AuthenticationError(f"{where}: check the credentials")
        raise HttpError(where, status)

    def _vectors(self, body: bytes, count: int) -> list[bytes]:
        from pydantic_core import from_json  # thousands of numbers in a quarter of json's time

        try:
            rows = {row["index"]: row["embedding"] for row in from_json(body)["data"]}
        except (ValueError, TypeError, KeyError) as error:
            raise self._wrong("an answer that is not a list of embeddings") from error
        if len(rows) != count or set(rows) != set(range(count)):
            raise self._wrong(f"{len(rows)} embeddings for {count} texts, or not theirs")
        return [self._vector(rows[index]) for index in range(count)]

    def _vector(self, values: Any) -> bytes:
        if not isinstance(values, list) or len(values) != self.dimensions:
            size = len(values) if isinstance(values, list) else "no"
            raise self._wrong(f"{size} dimensions where {self.dimensions} are configured")
        try:
            numbers = array("d", values)
        except (TypeError, OverflowError) as error:
            raise self._wrong("an embedding that is not numbers") from error
        length = math.hypot(*numbers)
        if not math.isfinite(length) or length == 0:
            raise self._wrong("an embedding that is not finite, or zero")
        unit = array("f", map(truediv, numbers, repeat(length)))
        if sys.byteorder == "big":
            unit.byteswap()
        return unit.tobytes()

    def _wrong(self, what: str) -> EmbedderError:
        return EmbedderError(f"{self.model} gave {what}")
