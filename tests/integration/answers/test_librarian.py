"""Answers whose search is made by `penstock librarian`, a process of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.adapters.postgres.database import COMMAND_SECONDS
from penstock.librarian.client import RemoteLibrarian
from penstock.model.answer import Answer, AnswerState
from tests.support.answers import QUESTION, Study, answered, check_citations
from tests.support.cli import Cli, Running, wait_until
from tests.support.database_servers import free_port
from tests.support.document_app import Shelf, completed, shelf_in
from tests.support.librarian_callers import Counter, counter_at
from tests.support.model_server import SEARCH, ModelServer, Reply
from tests.support.postgres import Psql, psql
from tests.support.waiting import until

SOON = 60.0
TRIES = 5
"""A machine that stands still is late; five times it is not."""
MORE = '{"enough": false, "missing": ["the fall"], "queries": ["how high the fall is"]}'
LANE = {"breaker_first_seconds": 0.1, "breaker_cap_seconds": 0.5, "probe_seconds": 0.2}


class Branch:
    """The command, on the queue of a study whose answers ask it."""

    def __init__(self, cli: Cli, study: Study) -> None:
        self._cli = cli
        self._study = study
        port = free_port()
        lanes = study.farm.settings["lanes"]
        lanes["librarian"] = {"min_interval_seconds": 0.0, "max_parallel": 8, **LANE}
        alive = "keepalive_seconds: 60"  # a process that stands still is not dead
        study.add_config(f"librarian: {{address: '127.0.0.1:{port}', port: {port}, {alive}}}")
        self.config = study.farm.folder / "librarian.yaml"
        base = (study.farm.folder / "answers.yaml").read_text()
        self.config.write_text(f"{base}\nlanes: {json.dumps(lanes)}\n")
        self.running = self.start()

    def start(self) -> Running:
        url = {"PENSTOCK_QUEUE": self._study.farm.url}
        arguments = ("librarian", "--json", "--config", str(self.config))
        self.running = self._cli.start(*arguments, environment=url)
        wait_until(lambda: '"started"' in self.running.out, f"it to start: {self.running.err}")
        return self.running

    def kill(self) -> None:
        self.running.send(signal.SIGKILL)
        self.running.process.wait(SOON)


@pytest.fixture
def branch(cli: Cli, study: Study) -> Branch:
    return Branch(cli, study)


async def until_round(app: Any, answer: Answer, number: int) -> None:
    async def there() -> bool:
        return len((await app.answers.get(answer.id)).answer.rounds) >= number

    await until(there, f"round {number}", patience=SOON)


async def over(app: Any, answer: Answer) -> Answer:
    async def ended() -> Answer | None:
        now: Answer = (await app.answers.get(answer.id)).answer
        return now if now.over else None

    return await until(ended, "the answer", patience=SOON)


async def test_answer_is_the_same_as_without_the_service(
    study: Study, branch: Branch, model: ModelServer
) -> None:
    model.script[SEARCH] = [MORE, '{"enough": true, "missing": [], "queries": []}']
    async with study.running() as app:
        answer = await answered(app)
        assert (answer.state, answer.mode, answer.notes) == ("completed", "model", ())
        assert [turn.queries for turn in answer.rounds] == [
            ("overshot wheel", "weight of water"),
            ("how high the fall is",),
        ]
        check_citations(answer)

        async def all_slots_are_back() -> bool:
            lanes = {lane.name: lane for lane in await app.lane_infos()}
            return lanes["librarian"].in_flight == lanes["llm.search"].in_flight == 0

        await until(all_slots_are_back, "the slots to be given back", patience=SOON)
    assert len(model.asked(SEARCH)) == 2
    branch.running.send(signal.SIGTERM)
    done = branch.running.end(SOON)
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert [line["event"] for line in done.lines] == ["started", "stopping", "stopped"]


async def test_one_slot_of_the_model_serves_many_questions(
    study: Study, cli: Cli, model: ModelServer
) -> None:
    """None of them holds the slot that its own search waits for."""
    study.farm.settings["lanes"]["llm.search"] = {"min_interval_seconds": 0.0, "max_parallel": 1}
    Branch(cli, study)
    async with study.running() as app:
        answers = await asyncio.gather(*(answered(app, f"{QUESTION} ({n})") for n in range(6)))
    assert {answer.mode for answer in answers} == {"model"}
    assert {answer.notes for answer in answers} == {()}
    assert model.most_at_once(SEARCH) == 1


async def test_killed_in_the_middle_gives_an_answer_that_says_so(
    study: Study, branch: Branch, model: ModelServer
) -> None:
    model.script[SEARCH] = [MORE, Reply(hang=True)]
    async with study.running(search_loop_seconds=15.0) as app:
        answer = await app.answers.ask(QUESTION)
        await until_round(app, answer, 1)
        await until(lambda: len(model.asked(SEARCH)) == 2, "the second round")
        branch.kill()
        ended = await over(app, answer)
        assert ended.state is AnswerState.COMPLETED
        assert len(ended.rounds) == 1
        assert any("librarian" in note for note in ended.notes), ended.notes
        assert (ended.mode, ended.missing) == ("model", ("the fall",))
        check_citations(ended)


async def test_restarted_in_the_middle_goes_on_where_it_was(
    study: Study, branch: Branch, model: ModelServer
) -> None:
    enough = '{"enough": true, "missing": [], "queries": []}'
    model.script[SEARCH] = [MORE, Reply(hang=True), enough]
    async with study.running() as app:
        answer = await app.answers.ask(QUESTION)
        await until(lambda: len(model.asked(SEARCH)) == 2, "the second round", patience=SOON)
        branch.kill()
        branch.start()
        ended = await over(app, answer)
        assert [turn.number for turn in ended.rounds] == [1, 2]
        assert (ended.mode, ended.notes) == ("model", ())
    assert len(model.asked(SEARCH)) == 3, "the first round was not made again"


async def test_model_that_hangs_is_not_waited_for_beyond_the_search(
    study: Study, branch: Branch, model: ModelServer
) -> None:
    model.script[SEARCH] = Reply(hang=True)
    async with study.running() as app:
        answer = await app.answers.ask(QUESTION, seconds=20.0)
        ended = await over(app, answer)
        assert ended.state is AnswerState.COMPLETED
        assert any("in time" in note for note in ended.notes), ended.notes
        assert ended.evidence, "what was found until then is answered with"


async def test_cancelled_answer_stops_the_search(
    study: Study, branch: Branch, model: ModelServer
) -> None:
    model.script[SEARCH] = [MORE, Reply(hang=True)]
    async with study.running() as app:
        answer = await app.answers.ask(QUESTION)
        await until(lambda: len(model.asked(SEARCH)) == 2, "the second round", patience=SOON)
        await app.answers.cancel(answer.id)

        async def idle() -> bool:
            lanes = {lane.name: lane.in_flight for lane in await app.lane_infos()}
            return lanes["librarian"] == lanes["llm.search"] == 0

        await until(idle, "all permits to be given back", patience=SOON)
    assert len(model.asked(SEARCH)) == 2


AT_WORK = """
SELECT count(*) FROM pg_stat_activity
WHERE state = 'active' AND pid <> pg_backend_pid() AND position($1 in query) > 0
"""


@pytest.fixture
async def stuck(cli: Cli, shelf_on_postgres: Shelf) -> AsyncIterator[tuple[Counter, Psql]]:
    """The service on PostgreSQL, whose searches wait for a lock of the test's; and who asks it."""
    farm, port = shelf_on_postgres.farm, free_port()
    async with shelf_on_postgres.running() as app:
        await app.documents.add("The moon pulls the sea.", id="tides", tenant="acme")
        await completed(app, "tides", tenant="acme")
    command = cli.start(
        *("librarian", "--json", "--port", str(port), "--config", farm.settings["config_file"]),
        environment={"PENSTOCK_QUEUE": farm.url, "PENSTOCK_BLOBS": farm.settings["blobs"]},
    )
    wait_until(lambda: '"started"' in command.out, f"it to start: {command.err}")
    async with (
        counter_at(farm, remote=False) as counter,
        psql(farm.url) as mine,
        psql(farm.url) as locking,
    ):
        counter.port = port
        counter.librarian = RemoteLibrarian(counter.config(), counter.app.queue.now)
        async with locking.connection.transaction():
            await locking.execute("LOCK TABLE penstock.chunks IN ACCESS EXCLUSIVE MODE")
            yield counter, mine
        await counter.librarian.close()


@pytest.fixture
async def shelf_on_postgres(tmp_path: Any, embedder: Any) -> AsyncIterator[Shelf]:
    shelf = shelf_in("postgres", tmp_path, embedder)
    yield shelf
    await shelf.farm.close()


async def test_deadline_is_seen_by_the_innermost_query(stuck: tuple[Counter, Psql]) -> None:
    counter, mine = stuck
    for _ in range(TRIES):
        began = time.monotonic()
        rounds = await counter.ask("moon", seconds=2.0)
        assert time.monotonic() - began > 1.5
        await until(lambda: idle(mine), "the query to end on the server")
        if rounds and time.monotonic() - began < COMMAND_SECONDS - 1.0:
            break
    else:
        pytest.fail("no query has ended before it would have by itself")
    (turn,) = rounds
    assert (turn.evidence, turn.note) == ((), "the documents were not searched in time")


async def test_cancel_ends_the_innermost_query(stuck: tuple[Counter, Psql]) -> None:
    counter, mine = stuck
    for _ in range(TRIES):
        task = asyncio.create_task(counter.ask("moon", seconds=60.0, asking=counter.asking(60.0)))
        await until(lambda: busy(mine), "the query to be at work")
        began = time.monotonic()
        task.cancel()
        await until(lambda: idle(mine), "the query to end on the server")
        took = time.monotonic() - began
        await asyncio.gather(task, return_exceptions=True)
        if took < COMMAND_SECONDS / 2:
            break
    else:
        pytest.fail("no query has ended before it would have by itself")


async def busy(mine: Psql) -> bool:
    return bool(await mine.fetchval(AT_WORK, f"{mine.schema}.chunks"))


async def idle(mine: Psql) -> bool:
    return not await busy(mine)
