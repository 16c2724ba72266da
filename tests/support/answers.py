"""Questions about mills: the documents, a model on loopback, and who works on answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from penstock import Penstock
from penstock.model.answer import Answer
from penstock.model.change import Change
from tests.support.document_app import Shelf, completed
from tests.support.model_server import ANSWER, PLAN, SEARCH, Asked, ModelServer

SOON = 60.0
"""Seconds an answer may take; five times what it should."""
QUICK: dict[str, Any] = {
    "min_interval_seconds": 0.0,
    "max_parallel": 4,
    "breaker_first_seconds": 0.1,
    "breaker_cap_seconds": 1.0,
    "probe_seconds": 0.3,
    "parent": "llm",
}
ROOMY: dict[str, Any] = {
    "lease_seconds": 30.0,
    "answer_seconds": 600.0,
    "search_loop_seconds": 300.0,
    "question_seconds": 60.0,
}
"""So that nothing is given up where a machine stands still for seconds; a test whose subject is the
time gives its own."""
PATIENT = {"timeout_seconds": 600.0}
"""Of a lane: what ends in time was not ended by this."""
DOCUMENTS = {
    "wheel": "An overshot wheel is turned by the weight of water in its buckets. It needs a fall of"
    " three metres or more.\n\nAn undershot wheel is pushed by the current below it.",
    "stones": "Millstones are dressed with a mill bill every two weeks. The upper stone is called"
    " the runner, and it alone turns.",
    "eel": "Eels pass a mill by night, when the sluice is open.",
    "suisha": "水車は川の流れで回り、石臼を動かして米や麦を挽く。水車小屋は村の共有であった。",
    "mulle": "물레방아는 물의 힘으로 바퀴를 돌려 곡식을 찧는다. 마을 사람들이 함께 썼다.",
}
QUESTION = "How is an overshot wheel turned?"
ENOUGH = '{"enough": true, "missing": [], "queries": []}'
PLANNED = '{"queries": ["overshot wheel", "weight of water"], "enough": "what turns the wheel"}'


def passages(asked: Asked) -> list[dict[str, Any]]:
    """What the model was shown, out of its fence."""
    lines = asked.user.splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"number"')]


def citing(asked: Asked) -> str:
    """A model that says what the first passage says, and where it has it from."""
    first = passages(asked)[0]
    return f"{first['text'].split('.')[0]} [{first['number']}]."


def content(model: ModelServer) -> None:
    """A model that does all as it should."""
    model.script = {PLAN: PLANNED, SEARCH: ENOUGH, ANSWER: citing}


class Study:
    """Answers, who works on them, and what they are asked of."""

    def __init__(self, shelf: Shelf, model: ModelServer | None = None) -> None:
        self.shelf, self.farm = shelf, shelf.farm
        settings = shelf.farm.settings
        lanes = dict.fromkeys(("llm.plan", "llm.search", "llm.answer"), QUICK | PATIENT)
        lanes["llm"] = {"min_interval_seconds": 0.0, "max_parallel": 40, **_timing(QUICK)}
        lanes["embedder"] = settings["lanes"]["embedder"] | PATIENT
        settings |= ROOMY | {"lanes": settings["lanes"] | lanes, "max_retries": 2}
        if model is not None:
            content(model)
            self.add_config(model.config())

    def add_config(self, lines: str) -> None:
        """More of the file that configures it."""
        base = Path(self.farm.settings["config_file"])
        file = self.farm.folder / "answers.yaml"
        file.write_text(base.read_text() + "\n" + lines)
        self.farm.settings["config_file"] = str(file)

    @asynccontextmanager
    async def running(
        self, documents: Sequence[str] = ("wheel", "stones", "eel"), **settings: Any
    ) -> AsyncIterator[Penstock]:
        """An app that answers in the test's own process, and has these documents."""
        app = self.farm.app("answering", **settings)
        async with app.running():
            await add(app, documents)
            yield app

    @asynccontextmanager
    async def idle(self, **settings: Any) -> AsyncIterator[Penstock]:
        """An app that asks, and does not work."""
        async with self.farm.app("answering", **settings) as app:
            yield app

    async def filled(self, documents: Sequence[str] = ("wheel", "stones", "eel")) -> None:
        """Documents that are there before anybody works on answers."""
        async with self.running(documents):
            pass


def _timing(lane: dict[str, Any]) -> dict[str, Any]:
    return {name: lane[name] for name in lane if name.startswith(("breaker", "probe"))}


async def add(app: Penstock, documents: Sequence[str], **where: Any) -> None:
    for name in documents:
        await app.documents.add(DOCUMENTS[name], id=name, title=f"About the {name}", **where)
    for name in documents:
        await completed(app, name, **where)


async def answered(app: Penstock, question: str = QUESTION, **options: Any) -> Answer:
    """The answer, once it is over."""
    answer = await app.answers.ask(question, **options)
    tenant = options.get("tenant", "default")
    return await app.answers.wait(answer.id, timeout=SOON, tenant=tenant)


async def told(app: Penstock, answer_id: str) -> list[Change]:
    """All that the log of an answer tells, to its end."""
    changes: list[Change] = []
    while not changes or changes[-1].what not in ("done", "error"):
        since = changes[-1].version if changes else 0
        more = await app.answers.events(answer_id, since, wait=SOON)
        assert more, f"no end is told: {[one.what for one in changes]}"
        changes += more
    return changes


async def all_told(app: Penstock, answer_id: str) -> list[str]:
    """What is told until nothing is left to do for anybody."""
    await told(app, answer_id)
    await app.drain(SOON)
    return [one.what for one in await app.answers.events(answer_id)]


def check_citations(answer: Answer) -> None:
    """Each resolves, and stands where it says."""
    numbers = {one.number for one in answer.evidence}
    for one in answer.citations:
        assert one.number in numbers
        assert answer.text[one.start : one.end] == f"[{one.number}]"
