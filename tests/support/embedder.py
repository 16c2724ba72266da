"""An embedder on loopback that can be told to fail: OpenAI's `/v1/embeddings`, eight dimensions."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from penstock.model.embedder import EmbedderConfig
from tests.support.counting_server import Answer, CountingServer, Hit, as_json

MODEL = "toy"
DIMENSIONS = 8
PATH = "/v1/embeddings"

FAULTS = ("429", "500", "count", "dimension", "nan", "empty", "reset", "hang")


def toy(server: CountingServer) -> dict[str, Any]:
    """The `embedder` section of a config file whose embedder is this server. The offline one takes
    every process a second to load."""
    return {
        "provider": "openai",
        "base_url": server.url("/v1"),
        "model": MODEL,
        "dimensions": DIMENSIONS,
    }


def embedded(hit: Hit) -> Answer:
    """What a good embedder answers."""
    question = json.loads(hit.body)
    return answer_with([vector_of(text, question["model"]) for text in question["input"]])


def answer_with(vectors: list[Any], **options: Any) -> Answer:
    rows = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return Answer(body=as_json({"data": rows}).body, **options)


def identity(model: str = MODEL, dimensions: int = DIMENSIONS) -> str:
    """What its vectors are kept under."""
    return EmbedderConfig("openai", "http://x", model, dimensions).identity


class EmbedderServer(CountingServer):
    """`fault` is how it fails; `poison`: it fails so only where a text holds that word; while
    it is `held`, it does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: str | None = None
        self.poison = ""
        self.delay = 0.0
        self.gate: threading.Event | None = None
        """Answers wait until it is set."""
        self.dimensions = DIMENSIONS

    @property
    def requests(self) -> list[Hit]:
        return self.at(PATH)

    @property
    def received(self) -> list[str]:
        """Every text it has been sent."""
        return [text for text, _ in self.asked]

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Every text it has been sent, and the model that was asked for."""
        questions = [json.loads(hit.body) for hit in self.requests]
        return [(text, question["model"]) for question in questions for text in question["input"]]

    def config(self, folder: Path, model: str = MODEL) -> str:
        """A config file whose embedder is this one, as it answers now."""
        path = folder / f"{model}-{self.dimensions}.yaml"
        path.write_text(
            f"embedder:\n  provider: openai\n  base_url: {self.url('/v1')}\n"
            f"  model: {model}\n  dimensions: {self.dimensions}\n"
        )
        return str(path)

    def answer(self, path: str) -> Answer:
        question = json.loads(self.hits[-1].body)
        texts, model = question["input"], question["model"]
        fault = self.fault if any(self.poison in text for text in texts) else None
        vectors: list[Any] = [vector_of(text, model)[: self.dimensions] for text in texts]
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
            case "empty":
                return Answer()
            case "reset":
                return Answer(reset=True)
            case "hang":
                return Answer(hang=True)
        return answer_with(vectors, delay=self.delay, until=self._may_answer)

    def _may_answer(self) -> bool:
        return self.gate is None or self.gate.is_set()


def vector_of(text: str, model: str) -> list[float]:
    digest = hashlib.sha256(f"{model}: {text}".encode()).digest()
    return [byte + 1.0 for byte in digest[:DIMENSIONS]]
