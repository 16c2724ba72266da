"""An embedder on loopback that can be told to fail: OpenAI's `/v1/embeddings`, eight dimensions."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.support.server import Answer, CountingServer, Hit, as_json

MODEL = "toy"
DIMENSIONS = 8
PATH = "/v1/embeddings"

FAULTS = ("429", "500", "count", "dimension", "nan", "reset", "hang")


class EmbedderServer(CountingServer):
    """`fault` is how it fails; `poison`: it fails so only where a text holds that word."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: str | None = None
        self.poison = ""
        self.delay = 0.0

    @property
    def requests(self) -> list[Hit]:
        return self.at(PATH)

    @property
    def received(self) -> list[str]:
        """Every text it has been sent."""
        return [text for hit in self.requests for text in json.loads(hit.body)["input"]]

    def config(self, folder: Path) -> str:
        """A config file whose embedder is this one."""
        path = folder / "penstock.yaml"
        path.write_text(
            f"embedder:\n  provider: openai\n  base_url: {self.url('/v1')}\n"
            f"  model: {MODEL}\n  dimensions: {DIMENSIONS}\n"
        )
        return str(path)

    def answer(self, path: str) -> Answer:
        texts = json.loads(self.hits[-1].body)["input"]
        fault = self.fault if any(self.poison in text for text in texts) else None
        vectors: list[Any] = [vector_of(text) for text in texts]
        match fault:
            case "429":
                return Answer(429, headers={"retry-after": "1"})
            case "500":
                return Answer(500)
            case "count":
                vectors.pop()
            case "dimension":
                vectors[-1] = vectors[-1][1:]
            case "nan":
                vectors[-1][0] = float("nan")
            case "reset":
                return Answer(reset=True)
            case "hang":
                return Answer(hang=True)
        rows = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        return Answer(body=as_json({"data": rows}).body, delay=self.delay)


def vector_of(text: str) -> list[float]:
    return [byte + 1.0 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]
