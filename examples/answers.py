"""A question is answered from documents, with where each sentence is from."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock import Penstock

TEXT = """An overshot wheel is turned by the weight of water in its buckets.
It needs a fall of three metres or more."""


async def main() -> None:
    with TemporaryDirectory() as folder:
        app = Penstock(f"sqlite:///{Path(folder)}/mill.db")
        answers = app.use("answers").answers
        async with app.running():
            await app.documents.add(TEXT, id="wheels", title="On wheels")
            await app.documents.wait("wheels", timeout=60)
            asked = await answers.ask("What turns an overshot wheel, and who invented it?")
            answer = await answers.wait(asked.id, timeout=60)
            print(answer.text)
            assert answer.mode == "extractive"  # no model is configured here
            assert "the weight of water in its buckets. [1]" in answer.text
            cited = answer.evidence[answer.citations[0].number - 1]
            assert (cited.document, cited.title) == ("wheels", "On wheels")
            assert answer.missing == ("invented",)


asyncio.run(main())
