"""LlamaIndex's IngestionPipeline: documents split into chunks and embedded, and kept.

Where they are kept is `llamaindex_stores.py`. It runs under the peers' own Python and imports
nothing of Penstock.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from llama_index.core import set_global_tokenizer
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document

from benchmarks.contenders.llamaindex_stores import Store, open_store
from benchmarks.contenders.worker import until_told, wait_for_go

PATTERN = "PENSTOCK_BENCH_PATTERN"
"""The environment variable with the pattern of a token. Its worker processes make their splitter
anew and would count with tiktoken, which sees twice as many tokens in Japanese and Korean."""


def _tokens(text: str) -> list[str]:
    return _pattern().findall(text)


@functools.cache
def _pattern() -> re.Pattern[str]:
    return re.compile(os.environ[PATTERN])


class Splitter(SentenceSplitter):  # type: ignore[misc]
    """To be loaded from here, so that its worker processes count as we do, too."""


if PATTERN in os.environ:
    set_global_tokenizer(_tokens)


class LoopbackEmbedding(BaseEmbedding):  # type: ignore[misc]
    """As its packages for embedding services do it, without what they would add."""

    url: str

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        with httpx.Client(timeout=60) as client:
            return _vectors(client.post(**self._request(texts)))

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        client = _client(asyncio.get_running_loop())
        return _vectors(await client.post(**self._request(texts)))

    def _request(self, texts: list[str]) -> dict[str, Any]:
        question = {"model": self.model_name, "input": texts}
        return {"url": f"{self.url}/embeddings", "json": question}

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embeddings([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return (await self._aget_text_embeddings([query]))[0]


@functools.lru_cache(maxsize=1)
def _client(loop: asyncio.AbstractEventLoop) -> httpx.AsyncClient:
    """One for each event loop, and so for each of its processes: connections are kept."""
    return httpx.AsyncClient(timeout=60)


def _vectors(response: httpx.Response) -> list[list[float]]:
    response.raise_for_status()
    rows = sorted(response.json()["data"], key=lambda row: row["index"])
    return [row["embedding"] for row in rows]


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    """`processes`: none is the event loop of this one; `requests`: under way at most, of each;
    `together`: documents that are given to the pipeline, and then stored, at a time."""
    os.environ[PATTERN] = settings["token"]
    set_global_tokenizer(_tokens)
    pipeline = IngestionPipeline(
        transformations=[
            Splitter(chunk_size=settings["chunk_tokens"], chunk_overlap=settings["chunk_overlap"]),
            LoopbackEmbedding(
                model_name=settings["embedder"]["model"],
                url=settings["embedder"]["base_url"],
                embed_batch_size=settings["batch"],
                num_workers=settings["requests"],
            ),
        ],
        disable_cache=True,
    )
    first, *files = sorted(Path(settings["documents"]).iterdir())
    asyncio.run(_work(pipeline, open_store(folder, settings), first, files, settings))


async def _work(
    pipeline: IngestionPipeline,
    store: Store,
    first: Path,
    files: Sequence[Path],
    settings: Mapping[str, Any],
) -> None:
    warm = await store.add(await pipeline.arun(documents=_read([first])))
    wait_for_go()
    start = time.perf_counter()
    chunks = 0
    together = settings["together"] or len(files)
    for at in range(0, len(files), together):
        documents = _read(files[at : at + together])
        if settings["asynchronous"]:
            nodes = await pipeline.arun(documents=documents, num_workers=settings["processes"])
        else:
            nodes = pipeline.run(documents=documents, num_workers=settings["processes"])
        chunks += await store.add(nodes)
    print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
    if (found := await store.count()) != warm + chunks:
        raise RuntimeError(f"{found} chunks are stored of {warm + chunks}")
    print(json.dumps({"documents": len(files), "chunks": chunks}), flush=True)
    await asyncio.to_thread(until_told)


def _read(files: Sequence[Path]) -> list[Document]:
    return [Document(text=file.read_text(), id_=file.name) for file in files]
