"""Where LlamaIndex keeps what its pipeline made: as its users would, so that a search could follow.

    memory      the nodes; after SIGKILL there is nothing
    files       its document store and its vector store, written whole after each batch, synced, and
                put in the place of those before at once: after SIGKILL a batch is there or not
    postgres    its table of pgvector, a transaction for each batch: the same

None of them keeps the documents that are still to come: who was killed has to know which to give
again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore


class Store(Protocol):
    async def add(self, nodes: Sequence[BaseNode]) -> int:
        """Keep nodes with their embeddings; how many. Once this returns they are as safe as they
        will be."""
        ...

    async def count(self) -> int:
        """How many nodes would be found by someone who comes later."""
        ...


def open_store(folder: Path, settings: Mapping[str, Any]) -> Store:
    match settings["store"]:
        case "files":
            return Files(folder)
        case "postgres":
            return Postgres(settings["url"], settings["embedder"]["dimensions"])
        case _:
            return InMemory()


def _checked(nodes: Sequence[BaseNode]) -> Sequence[BaseNode]:
    if any(node.embedding is None for node in nodes):
        raise RuntimeError("a node was not embedded")
    return nodes


class InMemory:
    def __init__(self) -> None:
        self._nodes: list[BaseNode] = []

    async def add(self, nodes: Sequence[BaseNode]) -> int:
        self._nodes += _checked(nodes)
        return len(nodes)

    async def count(self) -> int:
        return len(self._nodes)


class Files:
    """`current` links to the folder that counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._documents = SimpleDocumentStore()
        self._vectors = SimpleVectorStore()
        self._written = 0

    async def add(self, nodes: Sequence[BaseNode]) -> int:
        self._vectors.add(list(_checked(nodes)))
        # As its index does it: the vector is in the other store already.
        self._documents.add_documents(
            [node.model_copy(update={"embedding": None}) for node in nodes]
        )
        self._write()
        return len(nodes)

    def _write(self) -> None:
        self._written += 1
        folder = self._folder / f"stored-{self._written}"
        folder.mkdir()
        self._documents.persist(str(folder / "documents.json"))
        self._vectors.persist(str(folder / "vectors.json"))
        for path in (*folder.iterdir(), folder):
            _to_disk(path)
        link = self._folder / "next"
        link.symlink_to(folder.name)
        link.rename(self._folder / "current")
        _to_disk(self._folder)
        before = self._folder / f"stored-{self._written - 1}"
        if before.exists():
            for path in before.iterdir():
                path.unlink()
            before.rmdir()

    async def count(self) -> int:
        folder = self._folder / "current"
        documents = SimpleDocumentStore.from_persist_path(str(folder / "documents.json"))
        vectors = SimpleVectorStore.from_persist_path(str(folder / "vectors.json"))
        return len(vectors.data.embedding_dict.keys() & documents.docs.keys())


def _to_disk(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Postgres:
    """With an index of vectors like ours: pgvector's own figures, half precision. Without its full
    text, which it leaves out unless asked for."""

    def __init__(self, url: str, dimensions: int) -> None:
        # Here, because it is a package of its own.
        from llama_index.vector_stores.postgres import PGVectorStore

        rest = url.partition("://")[2]
        self._store = PGVectorStore.from_params(
            connection_string=f"postgresql+psycopg2://{rest}",
            async_connection_string=f"postgresql+asyncpg://{rest}",
            table_name="chunks",
            embed_dim=dimensions,
            use_halfvec=True,
            hnsw_kwargs={"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 40},
        )

    async def add(self, nodes: Sequence[BaseNode]) -> int:
        await self._store.async_add(list(_checked(nodes)))
        return len(nodes)

    async def count(self) -> int:
        with self._store.client.connect() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM data_chunks").scalar())
