"""Research tasks over HTTP: from a question to results, stopped and resumed, and kept apart."""

import asyncio
import json
import time

import pytest

from penstock.model.ids import new_id
from tests.support.counting_server import Answer
from tests.support.database_servers import redis_url
from tests.support.postgres import new_url
from tests.support.research import ResearchSite
from tests.support.research_config import add, finished, new_task, settings
from tests.support.serve_process import Host

pytestmark = pytest.mark.timeout(120)
NOBODY = "0" * 32


@pytest.fixture
def host(host: Host, library_site: ResearchSite) -> Host:
    host.others |= settings(library_site) | {"provider_seconds": 60.0, "page_seconds": 60.0}
    return host


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def anywhere(request: pytest.FixtureRequest, host: Host) -> Host:
    """On each queue; tasks and pages are in the same database, but for Redis."""
    environment = host.cli.environment
    if request.param == "postgres":
        environment["PENSTOCK_QUEUE"] = new_url()
        environment["PENSTOCK_BLOBS"] = str(host.cli.folder / "blobs")
    elif request.param == "redis":
        environment["PENSTOCK_QUEUE"] = f"{redis_url('redis')}?namespace={new_id()}"
        environment["PENSTOCK_STORE"] = f"sqlite:///{host.cli.folder}/store.db"
    return host


async def test_a_question_becomes_results_whose_text_can_be_had(anywhere: Host) -> None:
    served = anywhere.serve()
    async with served.client() as client:
        budget = {"budget_pages": 5, "budget_seconds": 600}
        made = await client.post("/v1/tasks", json={"question": "How do wheels turn?", **budget})
        task = made.json()
        assert (made.status_code, task["status"], task["progress"]) == (201, "running", "0/0")
        path = made.headers["location"]
        assert path == f"/v1/tasks/{task['task_id']}"
        assert (task["budget"]["pages"], task["budget"]["seconds"]) == (5, 600)

        queued = await add(client, task["task_id"], "wheels", "mills", "Wheels")
        assert (queued["queued"], queued["skipped"]) == (2, 1)
        assert len(queued["search_ids"]) == 2
        done = await finished(client, task["task_id"])
        assert (done["status"], done["progress"], done["errors"]) == ("completed", "2/2", [])
        assert sorted(one["title"] for one in done["results"]) == ["Work 0", "Work 1", "Work 2"]
        assert {one["page"] for one in done["results"]} == {"read"}
        assert [one["number"] for one in done["searches"]] == [1, 2]

        first = await client.get(f"{path}?limit=2")
        rest = await client.get(f"{path}?limit=2&cursor={first.json()['cursor']}")
        assert first.json()["results"] + rest.json()["results"] == done["results"]
        assert (first.json()["total_results"], rest.json()["cursor"]) == (3, None)

        where = {name: done["results"][0][name] for name in ("document", "collection")}
        page = (await client.get("/v1/pages", params=where)).json()
        assert "tells how the water wheel of mill" in page["text"]
        assert page["untrusted"] is True
        by_address = {"document": done["results"][0]["url"], "limit": 50}
        part = (await client.get("/v1/pages", params=by_address)).json()
        assert part["text"] == page["text"][:50]
        following = {**by_address, "cursor": part["cursor"]}
        assert (await client.get("/v1/pages", params=following)).json()["start"] == 50
        missing = await client.get("/v1/pages", params={"document": "https://nowhere.example/"})
        assert (missing.status_code, missing.json()["code"]) == (404, "not-found")


async def test_a_task_is_exported_as_a_file_of_each_format(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        task_id = await new_task(client, "wheels")
        done = await finished(client, task_id)
        expected = {
            "markdown": ("text/markdown; charset=utf-8", "md", "# How do water wheels turn?"),
            "json": ("application/json", "json", "{"),
            "bibtex": ("application/x-bibtex; charset=utf-8", "bib", "@article{"),
        }
        for name, (media, ending, begins) in expected.items():
            answer = await client.get(f"/v1/tasks/{task_id}/export?format={name}")
            assert answer.status_code == 200
            assert answer.headers["content-type"] == media
            file = f'attachment; filename="{task_id}.{ending}"'
            assert answer.headers["content-disposition"] == file
            assert answer.text.startswith(begins)
            if name == "json":
                assert json.loads(answer.text)["results"] == done["results"]
        assert (await client.get(f"/v1/tasks/{task_id}/export")).text.startswith("# ")
        refused = await client.get(f"/v1/tasks/{task_id}/export?format=docx")
        assert refused.status_code == 422


async def test_what_went_wrong_is_told_beside_what_was_found(
    host: Host, library_site: ResearchSite
) -> None:
    library_site.faults["openalex"] = Answer(400)
    library_site.answers["/page/1"] = Answer(404)
    served = host.serve()
    async with served.client() as client:
        done = await finished(client, await new_task(client, "wheels"))
        assert done["status"] == "completed"
        assert len(done["results"]) == 3
        told = {(one["provider"], one["url"]) for one in done["errors"]}
        assert told == {("openalex", None), (None, library_site.page_url(1))}


async def test_tasks_are_listed_the_newest_first_in_pages(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        ids = []
        for number in range(3):  # with a key, so that their ids tell nothing of the time
            client.headers["Idempotency-Key"] = f"key {number}"
            ids.append(await new_task(client))
        first = (await client.get("/v1/tasks?limit=2")).json()
        assert [one["task_id"] for one in first["tasks"]] == ids[:0:-1]
        rest = (await client.get(f"/v1/tasks?limit=2&before={first['next']}")).json()
        assert [one["task_id"] for one in rest["tasks"]] == ids[:1]
        assert rest["next"] is None


async def test_a_stopped_task_takes_no_searches_until_it_is_resumed(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        task_id = await new_task(client, "wheels", "mills")
        stopped = await client.post(f"/v1/tasks/{task_id}/stop", json={"mode": "graceful"})
        told = stopped.json()
        assert (stopped.status_code, told["status"], told["resumable"]) == (200, "paused", True)
        assert (told["cancelled"], told["searches_left"]) == (2, 2)
        refused = await client.post(f"/v1/tasks/{task_id}/searches", json={"queries": ["locks"]})
        assert (refused.status_code, refused.json()["code"]) == (409, "task-stopped")
        assert "resume" in refused.json()["detail"]

        again = await client.post(f"/v1/tasks/{task_id}/resume")
        assert (again.status_code, again.json()["queued"]) == (200, 2)
        assert (await client.post(f"/v1/tasks/{task_id}/resume")).json()["queued"] == 0
        assert (await add(client, task_id, "locks"))["queued"] == 1
        nobody = await client.post("/v1/tasks/ask@example.org/resume")
        assert nobody.status_code == 404
        logged = (await client.get("/v1/actions")).json()["actions"]
        assert [(one["action"], one["subject"], one["outcome"]) for one in logged] == [
            ("task.resume", "?", "failed"),
            ("task.resume", task_id, "done"),
            ("task.resume", task_id, "done"),
            ("task.stop", task_id, "done"),
        ]
    working = host.serve()
    async with working.client() as client:
        done = await finished(client, task_id)
        assert (done["status"], done["progress"]) == ("completed", "3/3")


async def test_an_immediate_stop_ends_what_runs(host: Host, library_site: ResearchSite) -> None:
    library_site.faults["searxng"] = Answer(hang=True)
    library_site.faults["openalex"] = Answer(hang=True)
    served = host.serve()
    async with served.client() as client:
        task_id = await new_task(client, "wheels")

        async with asyncio.timeout(60):
            while not library_site.asked("searxng"):
                await client.get(f"/v1/tasks/{task_id}?wait=0.1")
        stopped = await client.post(f"/v1/tasks/{task_id}/stop", json={"mode": "immediate"})
        assert (stopped.json()["status"], stopped.json()["running"]) == ("paused", 0)
        library_site.faults.clear()
        assert (await client.post(f"/v1/tasks/{task_id}/resume")).json()["queued"] == 1
        assert (await finished(client, task_id))["total_results"] == 3


async def test_the_same_idempotency_key_is_the_same_task_and_the_same_searches(host: Host) -> None:
    served, other = host.serve("--no-workers"), host.serve("--no-workers")
    async with served.client() as client, other.client() as second:
        for one in (client, second):
            one.headers["Idempotency-Key"] = "once"
        body = {"question": "How do wheels turn?"}
        answers = await asyncio.gather(
            *(one.post("/v1/tasks", json=body) for one in (client, second) for _ in range(10))
        )
        made = {one.json()["task_id"] for one in answers if one.status_code == 201}
        told = {one.json()["id"] for one in answers if one.status_code == 409}
        assert len(made) == 1
        assert told <= made, "who comes meanwhile is told its id"
        (task_id,) = made
        reused = await client.post("/v1/tasks", json={"question": "Another"})
        assert (reused.status_code, reused.json()["code"]) == (422, "key-reused")

        path, queries = f"/v1/tasks/{task_id}/searches", {"queries": ["wheels"]}
        first = await client.post(path, json=queries)
        again = await second.post(path, json=queries)
        assert (first.status_code, first.json()["queued"]) == (202, 1)
        assert again.json() == first.json()
        assert again.headers["idempotency-replayed"] == "true"
        assert (await client.get(f"/v1/tasks/{task_id}")).json()["progress"] == "0/1"
        assert len((await client.get("/v1/tasks")).json()["tasks"]) == 1


async def test_what_is_asked_of_an_unknown_task_is_answered_at_once(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        begun = time.monotonic()
        for path in ("?wait=300", "?wait=300&since=7", "/events", "/export"):
            answer = await client.get(f"/v1/tasks/{NOBODY}{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "task-not-found"), path
        for path, body in (
            ("searches", {"queries": ["wheels"]}),
            ("stop", {"mode": "immediate"}),
            ("resume", None),
        ):
            answer = await client.post(f"/v1/tasks/{NOBODY}/{path}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (404, "task-not-found"), path
        assert time.monotonic() - begun < 60


REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("", {"question": " \n "}, "a question must be 1 to"),
    ("", {"question": "x", "budget_pages": -1}, "budget_pages"),
    ("", {"question": "x", "budget_seconds": 0}, "budget_seconds"),
    ("", {"question": "x", "budget": 1}, "there is no such field"),
    ("/{id}/searches", {"queries": []}, "queries"),
    ("/{id}/searches", {"queries": ["x"] * 101}, "queries"),
    ("/{id}/searches", {"queries": [" "]}, "a query must be 1 to"),
    ("/{id}/searches", {"queries": ["x"], "max_results_per_query": 0}, "max_results_per_query"),
    ("/{id}/searches", {"queries": ["x"], "priority": "urgent"}, "priority"),
    ("/{id}/searches", {"queries": ["x"], "providers": ["altavista"]}, "there are: openalex"),
    ("/{id}/stop", {"mode": "now"}, "mode"),
]


async def test_what_cannot_be_right_is_refused_with_a_sentence(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        task_id = await new_task(client)
        for path, body, says in REFUSED:
            answer = await client.post("/v1/tasks" + path.format(id=task_id), json=body)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), body
            assert says in answer.json()["detail"]
        for query in ("wait=-1", "since=x", "limit=1001", "cursor=x"):
            assert (await client.get(f"/v1/tasks/{task_id}?{query}")).status_code == 422, query
        assert len((await client.get("/v1/tasks")).json()["tasks"]) == 1
        assert (await client.get(f"/v1/tasks/{task_id}")).json()["progress"] == "0/0"


async def test_jobs_and_logs_of_research_are_made_by_research_only(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        for body in (
            {"kind": "research.search", "payload": {"task": "a", "search": "b", "run": 1}},
            {"kind": "add", "log": f"research:{NOBODY}"},
        ):
            answer = await client.post("/v1/jobs", json=body)
            assert answer.status_code == 422
            assert "research tasks" in answer.json()["detail"]
