"""The dashboard's other screens for operators: how it goes, lanes, dead letters, what was done."""

import re

import httpx2 as httpx
import pytest
from playwright.sync_api import expect

from penstock import Penstock
from tests.support.dashboard import LAPTOP, PHONE, Board, Device
from tests.support.sampling import some_of
from tests.support.serve_process import Served
from tests.support.waiting import PATIENCE

LOOKS = ("laptop-light", "laptop-dark", "phone-light", "phone-dark")
DEVICES = {"laptop": LAPTOP, "phone": PHONE}


@pytest.fixture(scope="module")
def served(board: Board) -> Served:
    """With jobs of all sorts, and a lane that has been used."""
    served = board.serve()
    ids = [board.enqueue("add", {"a": n}) for n in range(5)]
    ids += [board.enqueue("fail", {"message": f"no water in mill {n}"}) for n in range(3)]
    ids += [board.enqueue("lose"), board.enqueue("look.up", {"word": "sluice"})]
    board.enqueue("nobody.knows", priority="high")
    board.enqueue("add", delay=3600)
    board.finished(*ids)
    return served


def settle(board: Board, lane: str) -> int:
    """How many of a lane may be in flight."""

    async def find(app: Penstock) -> int:
        return next(one.max_parallel for one in await app.lane_infos() if one.name == lane)

    return board.do(find)


def test_the_overview_tells_what_needs_attention_and_what_to_do(
    board: Board, served: Served
) -> None:
    look = board.look("/").live()
    look.says(re.compile("kind without a worker.*nobody.knows.*start a worker process", re.S))
    look.says(re.compile("dead letters.*fail: ValueError.*redrive or discard", re.S))
    shown = [one.inner_text().split("\n", 1) for one in look.find(".figure").all()]
    figures = {name: count for count, name in shown}
    assert (figures["failed"], figures["completed"], figures["queued"]) == ("4", "6", "2")
    row = look.find("tr").filter(has_text="add, ")
    expect(row).to_contain_text("running")
    expect(row).to_contain_text(re.compile(r"\d+ s ago|now"))
    look.says("catalogue")
    look.fine()


def test_the_overview_follows_and_draws_what_happens(board: Board, served: Served) -> None:
    look = board.look("/").live()
    board.finished(board.enqueue("add"))
    completed = look.find(".figure").filter(has_text="completed").locator("b")
    board.finished(board.enqueue("add"))
    expect(completed).not_to_have_text("6")
    expect(look.find("#speed canvas")).to_be_visible()
    expect(look.find("#times canvas")).to_be_visible()
    look.fine()


def test_the_history_is_for_admins(board: Board) -> None:
    reader = board.host.key("history", scopes="read")
    locked = board.host.serve("--no-workers", app="board:app", require_key=True)
    headers = {"Authorization": f"Bearer {reader}"}
    assert (
        httpx.get(f"{locked.url}/v1/history", headers=headers, timeout=PATIENCE).status_code == 403
    )
    cookie = {"Cookie": f"penstock_key={reader}"}
    page = httpx.get(locked.url, headers=cookie, timeout=PATIENCE).text
    assert "Worker processes" not in page
    assert "data-chart" not in page
    assert 'href="/actions"' not in page
    for path in ("/lanes/catalogue/control", "/lanes/catalogue/limits"):
        sent = {**cookie, "Origin": locked.url}
        fields = {"what": "pause"}
        refused = httpx.post(locked.url + path, data=fields, headers=sent, timeout=PATIENCE)
        assert refused.status_code == 403, path
    locked.stop()


def test_a_lane_is_paused_and_resumed(board: Board, served: Served) -> None:
    look = board.look("/lanes").live()
    row = look.find("tr").filter(has_text="catalogue")
    row.get_by_role("button", name="Pause").click()
    look.says("Lane catalogue paused")
    waiting = board.enqueue("look.up")
    look.live().says(re.compile(r"Waiting\s*1 jobs"))
    other = board.look("/").live()
    other.says(re.compile("paused.*catalogue.*1 job waiting", re.S))
    look.press("Resume")
    look.says("Lane catalogue resumed.")
    board.finished(waiting)
    look.live().says(re.compile(r"Waiting\s*0 jobs"))
    look.fine()
    other.fine()


def test_limits_of_a_lane_are_changed_and_given_back(board: Board, served: Served) -> None:
    look = board.look("/lanes/catalogue").live()
    look.says("as configured")
    look.page.get_by_label("Max parallel").fill("5")
    look.press("Override limits")
    look.says("Limits updated")
    look.says("overridden")
    assert settle(board, "catalogue") == 5
    look.page.get_by_label("Max parallel").fill("0")
    look.press("Override limits")
    look.says("Limits not changed")
    assert settle(board, "catalogue") == 5
    look.press("Reset to configured")
    look.says("reset to the configured values")
    assert settle(board, "catalogue") == 2
    look.fine()


def test_dead_letters_are_redriven_and_discarded_by_what_they_died_of(
    board: Board, served: Served
) -> None:
    look = board.look("/dead-letters").live()
    row = look.find("tr").filter(has_text="KeyError")
    row.get_by_role("button", name="Discard").click()
    assert "with all history" in look.ask("Confirm")
    look.says("1 job discarded.")
    assert look.find("tr").filter(has_text="KeyError").count() == 0
    row = look.find("tr").filter(has_text="ValueError")
    expect(row).to_contain_text("no water in mill")
    row.get_by_role("button", name="Redrive").click()
    look.ask("Confirm")
    look.says("3 jobs queued again.")
    newest = look.find("tr").filter(has_text="ValueError").get_by_role("link", name="no water")
    newest.click()  # they have failed again, and what they died of before is still told
    look.says(re.compile("attempt 2.*failed.*redriven.*attempt 1", re.S))
    look.fine()


def test_the_log_tells_who_did_what_and_how_it_ended(board: Board, served: Served) -> None:
    key = board.host.key("Maria", scopes="read write admin")
    done, waiting = board.enqueue("add", log="log"), board.enqueue("add", log="log", delay=3600)
    board.finished(done)
    look = board.look(None).sign_in(key)
    look.open("/jobs?log=log").live()
    for job_id in (done, waiting):
        look.find(f"#pick-{job_id}").check()
    look.page.get_by_role("button", name="Cancel", exact=True).click()
    look.ask("Confirm")
    look.says("1 job cancelled. 1 skipped:")
    look.open("/actions").live()
    newest = look.find("tbody tr").first
    expect(newest).to_contain_text("jobs.cancel")
    expect(newest).to_contain_text("Maria")
    expect(newest).to_contain_text("partial")
    newest.locator("summary").click()
    expect(newest).to_contain_text(waiting)
    httpx.post(f"{served.url}/v1/lanes/nowhere/pause", timeout=PATIENCE)  # while the page is open
    expect(look.find("tbody tr").first).to_contain_text("lane.pause")
    expect(look.find("tbody tr").first).to_contain_text("failed")
    look.says(re.compile("key.sign-in"))
    look.fine()


def test_schedules_are_paused_resumed_and_run_now(board: Board, served: Served) -> None:
    async def make(app: Penstock) -> None:
        await app.schedules.set("nightly <b>", "add", {"a": 1}, cron="0 3 * * *")

    board.do(make)
    look = board.look("/schedules").live()
    row = look.find("tr").filter(has_text="nightly <b>")
    row.get_by_role("button", name="Pause").click()
    look.says("Schedule nightly <b> paused")
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="Run now").click()
    look.says(re.compile("Job [0-9a-f]{32} enqueued"))
    row.get_by_role("button", name="Resume").click()
    look.says("Schedule nightly <b> resumed")
    expect(row).to_contain_text(re.compile(r"in \d+"))
    look.fine()


@pytest.mark.parametrize("look_of", some_of(LOOKS, "laptop-light"))
def test_screens_are_accessible_fit_and_complain_about_nothing(
    board: Board, served: Served, look_of: str
) -> None:
    name, _, scheme = look_of.partition("-")
    dead = board.enqueue("fail", {"message": "no water"})
    board.finished(dead)
    waiting = board.enqueue("report")
    board.look(f"/jobs/{waiting}").live().says("Send signal")
    screens = {
        "overview": "/",
        "jobs": "/jobs",
        "job": f"/jobs/{dead}",
        "job-waiting": f"/jobs/{waiting}",
        "lanes": "/lanes",
        "lane": "/lanes/catalogue",
        "dead-letters": "/dead-letters",
        "schedules": "/schedules",
        "actions": "/actions",
    }
    device: Device = DEVICES[name]
    look = board.look(None, device=device, scheme=scheme)
    for screen, path in screens.items():
        look.open(path).live()
        look.accessible()
        look.fits()
        look.picture(screen)
        look.fine()
    look.open("/sign-in")
    look.accessible()
    look.picture("sign-in")
    look.fine()


def test_on_a_phone_the_screen_that_is_open_is_in_sight(board: Board, served: Served) -> None:
    last = board.look("/", device=PHONE).find("nav a").last.get_attribute("href")
    look = board.look(last, device=PHONE)
    look.page.keyboard.press("Tab")
    assert look.page.evaluate("document.activeElement.textContent") == "Skip to content"
    expect(look.find("nav a[aria-current]")).to_be_in_viewport(ratio=0.9)


def test_the_keyboard_is_enough(board: Board, served: Served) -> None:
    job_id = board.enqueue("add", delay=3600)
    look = board.look(f"/jobs/{job_id}").live()
    look.page.keyboard.press("Tab")
    assert look.page.evaluate("document.activeElement.textContent") == "Skip to content"
    look.page.keyboard.press("Enter")
    for _ in range(6):
        look.page.keyboard.press("Tab")
        if look.page.evaluate("document.activeElement.textContent") == "Cancel":
            break
    look.page.keyboard.press("Enter")
    look.find("#ask[open]").wait_for()
    look.page.keyboard.press("Escape")
    expect(look.find("#ask[open]")).to_have_count(0)
    look.page.keyboard.press("Enter")
    look.find("#ask[open]").wait_for()
    look.page.keyboard.press("Tab")
    look.page.keyboard.press("Enter")
    look.says("1 job cancelled.")
    look.fine()
