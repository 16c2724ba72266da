"""A process that publishes documents into a corpus in PostgreSQL: url, its name, how many."""

from __future__ import annotations

import asyncio
import sys

from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.corpus import PostgresCorpus
from penstock.adapters.postgres.database import Database
from tests.conformance.corpus_support import add, ref_of


async def main(url: str, name: str, count: int) -> None:
    """Every document twice; every third is deleted again."""
    corpus = PostgresCorpus(Database(parse(url)))
    await corpus.open()
    for n in range(count):
        for version in ("first", "second"):
            await add(corpus, ref_of(f"{name}{n}"), f"sun {name} {version}", f"moon {n}")
        if n % 3 == 0:
            await corpus.delete(ref_of(f"{name}{n}"))
    await corpus.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
