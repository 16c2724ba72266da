"""Documents in, passages out: `app.documents`."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock import Penstock

TEXT = """\
# Notes

## Sluice

The sluice opens at dawn. Questions: kim@example.com, 010-1234-5678.
"""


async def main(folder: Path) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")
    documents = app.use("documents").documents

    async with app.running():  # workers in this process; `penstock worker` would do as well
        await documents.add(TEXT, id="notes.md", metadata={"year": 2026})
        document = await documents.wait("notes.md", timeout=60)
        print(document.state, document.chunks, dict(document.masked))
        assert document.masked == {"email": 1, "phone": 1}

        again = await documents.add(TEXT, id="notes.md", metadata={"year": 2026})
        assert again.generation == document.generation, "the same content changes nothing"

        result = await documents.search("When does the sluice open?", metadata={"year": 2026})
        best = result.passages[0]
        print(best.title, best.section, best.snippet.strip().split("\n")[-1])
        assert "[EMAIL], [PHONE]" in best.text

        await documents.delete("notes.md")
        assert not (await documents.search("sluice")).passages


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
