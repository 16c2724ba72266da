"""A process that publishes documents into documents in PostgreSQL: url, its name, how many."""

from __future__ import annotations

import asyncio
import sys

from tests.conformance.document_support import add, ref_of
from tests.support.postgres import documents_at


async def main(url: str, name: str, count: int) -> None:
    """Every document twice; every third is deleted again."""
    async with documents_at(url) as documents:
        for n in range(count):
            for version in ("first", "second"):
                await add(documents, ref_of(f"{name}{n}"), f"sun {name} {version}", f"moon {n}")
            if n % 3 == 0:
                await documents.delete(ref_of(f"{name}{n}"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
