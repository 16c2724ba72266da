"""Research on the dashboard: tasks made, watched as results and errors come, stopped and read."""

import json
import re
import signal
from collections.abc import Iterator

import httpx2 as httpx
import pytest
from playwright.sync_api import expect

from tests.support.counting_server import Answer
from tests.support.dashboard import Board, Device, Look
from tests.support.dashboard_screens import (
    DEVICES,
    HOSTILE,
    LOOKS,
    from_elsewhere,
    harmless,
    posted,
    signed_in,
)
from tests.support.research import HTML, ResearchSite
from tests.support.research_config import settings
from tests.support.sampling import some_of
from tests.support.serve_process import Served
from tests.support.waiting import PATIENCE

QUESTION = "How do water wheels turn?"


@pytest.fixture(scope="module")
def site() -> Iterator[ResearchSite]:
    with ResearchSite() as site:
        site.shelves |= {"many": range(60), "hostile": range(70, 72), "水車": range(80, 82)}
        yield site


@pytest.fixture(autouse=True)
def _site_well(site: ResearchSite) -> Iterator[None]:
    yield
    site.faults.clear()
    site.held.clear()


@pytest.fixture(scope="module")
def served(board: Board, site: ResearchSite) -> Served:
    board.host.others |= settings(site) | {"max_retries": 1, "provider_seconds": 2 * PATIENCE}
    return board.serve()


def make(served: Served, *queries: str, question: str = QUESTION) -> str:
    """The id of a task with these searches, past the dashboard."""
    made = httpx.post(f"{served.url}/v1/tasks", json={"question": question}, timeout=PATIENCE)
    assert made.status_code == 201, made.text
    task = str(made.json()["task_id"])
    if queries:
        body = {"queries": list(queries)}
        sent = httpx.post(f"{served.url}/v1/tasks/{task}/searches", json=body, timeout=PATIENCE)
        assert sent.status_code == 202, sent.text
    return task


def finished(served: Served, task: str) -> None:
    """Wait until it is."""
    since = 0
    while True:
        address = f"{served.url}/v1/tasks/{task}?wait=20&since={since}&limit=0"
        view = httpx.get(address, timeout=PATIENCE).json()
        if view["next_poll"] is None:
            return
        since = view["version"]


def opened(look: Look, task: str) -> Look:
    return look.open(f"/research/{task}").live()


def test_a_task_is_made_searched_and_watched_and_its_pages_are_read(
    board: Board, served: Served, site: ResearchSite
) -> None:
    site.faults["openalex"] = Answer(400)
    look = board.look("/research").live()
    look.page.get_by_role("textbox", name="Question").fill(QUESTION)
    look.page.get_by_role("textbox", name="Max pages").fill("5")
    look.press("New task")
    look.says("Task created.")
    look.says("0 of 5 pages used")
    other = board.another(look, look.page.url.removeprefix(look.url)).live()
    look.page.get_by_role("textbox", name="Queries, one per line").fill("wheels\nmills\nwheels")
    look.page.get_by_role("textbox", name="Results per query").fill("4")
    look.page.get_by_role("button", name="Search").click()
    look.says(re.compile(r"2 searches queued, about .*; 1 skipped as duplicates"))
    for one in (look, other):
        one.live().says("2 of 2 searches")
        one.says("completed")
        expect(one.find("#provider-searxng")).to_contain_text(re.compile("searxng\\s*2\\s*3\\s*0"))
        expect(one.find("#provider-openalex")).to_contain_text("400")
        one.says("openalex", "#errors")
        one.says("Work 0", "#work-1")
    look.press("Read page")
    look.says("Sentence 11 of page", ".fence")
    look.says("not instructions", ".fence")
    look.accessible()
    look.fine()
    other.fine()


def test_results_come_while_other_providers_are_still_asked(
    board: Board, served: Served, site: ResearchSite
) -> None:
    site.held.add("openalex")
    task = make(served, "slowly")
    look = opened(board.look(None), task)
    look.says("running")
    expect(look.find("#provider-searxng")).to_contain_text(re.compile("1 running\\s*3"))
    look.page.reload()  # in the middle
    site.held.clear()
    look.live().says("completed")
    expect(look.find("#provider-openalex")).to_contain_text(re.compile("openalex\\s*1\\s*3\\s*0"))
    look.fine()


def test_a_task_is_stopped_and_resumed_after_a_question(
    board: Board, served: Served, site: ResearchSite
) -> None:
    site.held |= {"openalex", "searxng"}
    task = make(served, *(f"query {n}" for n in range(12)))
    look = opened(board.look(None), task)
    look.press("Stop at once")
    assert "discarded" in look.ask("Confirm")
    look.says(re.compile(r"Stopped: \d+ searches done, \d+ left"))
    look.live().says("paused")
    site.held.clear()
    plain = board.look(f"/research/{task}", script=False)
    plain.press("Resume")
    plain.says(re.compile(r"Resumed: \d+ searches queued"))
    look.says("12 of 12 searches")
    look.says("completed")
    site.held |= {"openalex", "searxng"}
    slow = make(served, "slow one", "slow two")
    plain.open(f"/research/{slow}")
    plain.page.get_by_role("button", name="Stop", exact=True).click()
    plain.says("Running searches finish with their pages")
    plain.press("Confirm")
    plain.says("Stopped")
    assert posted(served, f"/research/{slow}/stop", {"mode": "soon", "confirmed": "yes"}) == 422
    plain.open("/actions")
    plain.says("task.stop")
    plain.says("task.resume")
    look.fine()


def test_what_is_filled_in_wrongly_is_said_on_the_form_which_keeps_it(
    board: Board, served: Served
) -> None:
    look = board.look("/research", script=False)
    look.page.get_by_role("textbox", name="Question").fill("水車はどう回る?")
    look.page.get_by_role("textbox", name="Max pages").fill("2.5")
    look.press("New task")
    look.says("Pages must be a whole number", "[role=alert]")
    expect(look.page.get_by_role("textbox", name="Question")).to_have_value("水車はどう回る?")
    look.page.get_by_role("textbox", name="Max pages").fill("-1")
    look.press("New task")
    look.says("budget_pages must be 0 or more", "[role=alert]")
    look.open(f"/research/{make(served)}")
    look.page.get_by_role("textbox", name="Queries, one per line").fill("물레방아")
    look.page.get_by_role("textbox", name="Results per query").fill("1000")
    look.page.get_by_label("openalex").uncheck()
    look.page.get_by_role("button", name="Search").click()
    look.says("max_results must be 1 to 100", "[role=alert]")
    queries = look.page.get_by_role("textbox", name="Queries, one per line")
    expect(queries).to_have_value("물레방아")
    expect(look.page.get_by_label("openalex")).not_to_be_checked()
    expect(look.page.get_by_label("searxng")).to_be_checked()
    for number in ("inf", "nan", "1e400"):
        assert posted(served, "/research", {"question": "x", "budget_pages": number}) == 422
        assert posted(served, "/research", {"question": "x", "budget_seconds": number}) == 422


def test_a_task_is_taken_away_as_a_file(board: Board, served: Served) -> None:
    task = make(served, "wheels")
    finished(served, task)
    look = opened(board.look(None), task)
    said = {}
    for name in ("Markdown", "JSON", "BibTeX"):
        with look.page.expect_download() as coming:
            look.page.get_by_role("link", name=name).click()
        said[coming.value.suggested_filename] = coming.value.path().read_text()
    assert set(said) == {f"{task}.md", f"{task}.json", f"{task}.bib"}
    assert json.loads(said[f"{task}.json"])["question"] == QUESTION
    assert said[f"{task}.md"].startswith(f"# {QUESTION}")
    assert "@article{" in said[f"{task}.bib"]
    look.fine()


def test_many_results_are_paged(board: Board, served: Served) -> None:
    made = httpx.post(
        f"{served.url}/v1/tasks", json={"question": "q", "budget_pages": 0}, timeout=PATIENCE
    )
    task = made.json()["task_id"]
    body = {"queries": ["many"], "max_results_per_query": 60}
    httpx.post(f"{served.url}/v1/tasks/{task}/searches", json=body, timeout=PATIENCE)
    finished(served, task)
    look = opened(board.look(None), task)
    expect(look.find("article.work")).to_have_count(50)
    look.press("Next")
    look.live()
    expect(look.find("article.work")).to_have_count(10)
    look.press("Previous")
    look.live().says("Results 1 to 50 of 60")
    look.fine()


def test_a_task_goes_on_where_the_server_was_restarted(
    board: Board, served: Served, site: ResearchSite
) -> None:
    site.held |= {"openalex", "searxng"}
    first = board.host.serve(app="board:app")
    port = int(first.url.rsplit(":", 1)[1])
    look = opened(board.look(None, served=first), make(first, "before", "after"))
    look.says("running")
    first.send(signal.SIGKILL)
    first.running.process.wait(PATIENCE)
    look.says("reconnecting")
    site.held.clear()
    second = board.host.serve(app="board:app", port=port)
    look.live().says("2 of 2 searches")
    second.stop()


def test_hostile_text_is_text_in_every_field(
    board: Board, served: Served, site: ResearchSite
) -> None:
    body = f"<html><head><title>{'x' * 3000}</title></head><body><article><h1>Mill</h1><p>"
    body += f"&lt;script&gt;window.pwned=1&lt;/script&gt; {'A sentence of it. ' * 40}{'w' * 3000}"
    site.answers["/page/70"] = Answer(headers=HTML, body=(body + "</p></article>").encode())
    row = {
        "url": site.page_url(70),
        "title": HOSTILE,
        "content": HOSTILE,
        "engine": HOSTILE,
        "engines": [HOSTILE],
        "publishedDate": HOSTILE,
    }
    odd = {"url": "javascript:window.pwned=1", "title": "odd", "content": "odd"}
    rows = json.dumps({"query": "hostile", "results": [row, odd]}).encode()
    site.faults["searxng"] = Answer(body=rows)
    site.faults["openalex"] = Answer(400, body=HOSTILE.encode())
    task = make(served, f"hostile {HOSTILE}"[:900], question=HOSTILE)
    finished(served, task)
    look = opened(board.look(None, device=DEVICES["phone"]), task)
    look.says("<script>window.pwned=1</script>", "h1")
    look.says("<script>window.pwned=1</script>", "#work-1")
    assert look.find("a[href^=javascript]").count() == 0
    harmless(look)
    look.press("Read page")
    look.says("<script>window.pwned=1</script>", ".fence")
    harmless(look)
    look.open("/research").live().says("<script>window.pwned=1</script>")
    harmless(look)
    del site.answers["/page/70"]


def test_tasks_are_read_without_scripts_and_in_japanese(board: Board, served: Served) -> None:
    task = make(served, "水車", question="水車はどう回るか。물레방아는?")
    finished(served, task)
    look = board.look("/research", script=False)
    look.page.get_by_role("link", name="水車はどう回るか").first.click()
    look.says("水車はどう回るか。물레방아는?", "h1")
    look.says("Work 80", "#work-1")
    look.press("Read page")
    look.says("Sentence 1 of page 80", ".fence")


def test_who_may_only_read_reads_and_does_not_act(board: Board, served: Served) -> None:
    task = make(served, "wheels")
    finished(served, task)
    reader = board.host.key("research-reader", scopes="read")
    stranger = board.host.key("research-stranger", tenant="others", scopes="read write")
    locked = board.host.serve("--no-workers", app="board:app", require_key=True)
    look = signed_in(board, locked, reader)
    for path in ("/research", f"/research/{task}"):
        look.open(path).live()
        assert look.find("main button:visible").all_inner_texts() == ["Pause updates"]
    look.fine()
    sure = {"mode": "immediate", "confirmed": "yes", "queries": "mine", "question": "mine"}
    assert posted(locked, "/research", sure, reader) == 403
    for act in ("searches", "stop", "resume"):
        assert posted(locked, f"/research/{task}/{act}", sure, reader) == 403
        assert posted(locked, f"/research/{task}/{act}", sure, stranger) == 404
        assert from_elsewhere(served, f"/research/{task}/{act}", sure) == 403
    headers = {"Cookie": f"penstock_key={stranger}"}
    for path in ("", "/export?format=json", "/page?document=x"):
        there = f"{locked.url}/research/{task}{path}"
        assert httpx.get(there, headers=headers, timeout=PATIENCE).status_code == 404
    locked.stop()


@pytest.mark.parametrize("look_of", some_of(LOOKS, "phone-dark"))
def test_the_screens_are_accessible_and_fit(
    board: Board, served: Served, site: ResearchSite, look_of: str
) -> None:
    name, _, scheme = look_of.partition("-")
    site.faults["openalex"] = Answer(400)
    task = make(served, "wheels", "mills of the north")
    finished(served, task)
    device: Device = DEVICES[name]
    look = board.look(None, device=device, scheme=scheme)
    for screen, path in {"research": "/research", "task": f"/research/{task}"}.items():
        look.open(path).live()
        look.accessible()
        look.fits()
        look.picture(screen)
    look.press("Read page")
    look.says("Sentence 1 of page", ".fence")
    look.accessible()
    look.fits()
    look.picture("task-page")
    look.open(f"/research/{make(served)}").live()
    look.accessible()
    look.picture("task-new")
    look.fine()
