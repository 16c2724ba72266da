"""What all screens of the dashboard share: who may look and act, what a browser is told, how a page
stays live."""

import hashlib
import json
import re
import subprocess
import sys

import httpx2 as httpx
import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Route, expect

from penstock.server.dashboard.assets import FOLDER, assets
from penstock.server.dashboard.pages import CSP
from tests.support.dashboard import SHORT, Board
from tests.support.serve_process import Served
from tests.support.waiting import PATIENCE

PAGES = ("/", "/jobs", "/lanes", "/documents", "/research", "/ask")


@pytest.fixture(scope="module")
def served(board: Board) -> Served:
    return board.serve()


def get(served: Served, path: str, **headers: str) -> httpx.Response:
    return httpx.get(served.url + path, headers=headers, timeout=PATIENCE)


def post(served: Served, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(served.url + path, data=fields, headers=named, timeout=PATIENCE)


@pytest.mark.parametrize("path", [*PAGES, "/sign-in", "/nowhere", "/jobs/nobody"])
def test_every_page_has_the_policy_that_lets_it_load_only_its_own(
    served: Served, path: str
) -> None:
    answer = get(served, path, Accept="text/html")
    assert answer.headers["content-security-policy"] == CSP
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["content-type"].startswith("text/html")
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", answer.text)


def test_what_is_not_there_is_told_on_a_page_to_people_and_as_a_problem_to_programs(
    served: Served,
) -> None:
    page = get(served, "/nowhere", Accept="text/html")
    assert (page.status_code, "no such page" in page.text) == (404, True)
    assert get(served, "/nowhere").headers["content-type"] == "application/problem+json"
    assert get(served, "/v1/jobs/nobody", Accept="text/html").json()["code"] == "not-found"


def test_who_comes_to_the_wrong_host_is_told_on_a_page(served: Served) -> None:
    page = get(served, "/", Host="elsewhere.example", Accept="text/html")
    assert (page.status_code, page.headers["content-type"][:9]) == (421, "text/html")
    assert "this server is not elsewhere.example" in page.text
    assert page.headers["content-security-policy"] == CSP
    assert get(served, "/v1/jobs", Host="elsewhere.example").json()["code"] == "wrong-host"


def test_files_are_kept_by_browsers_and_have_an_address_by_their_content(served: Served) -> None:
    page = get(served, "/").text
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
        answer = get(served, address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        again = get(served, address, **{"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert get(served, "/static/0000/dashboard.css").status_code == 404
    assert get(served, "/static/x/..%2F..%2Fpages.py").status_code == 404


def test_what_others_have_made_is_as_they_made_it() -> None:
    vendor = FOLDER / "vendor"
    manifest = json.loads((vendor / "manifest.json").read_text())
    here = {path.name for path in vendor.iterdir() if path.suffix in (".js", ".css")}
    assert here == set(manifest)
    for name, about in manifest.items():
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == about["sha256"], name
        assert about["licence"] in ("MIT", "0BSD")
    assert sum(len(asset.body) for asset in assets().values()) < 130_000


def test_a_page_of_another_site_cannot_do_anything(served: Served) -> None:
    fields = {"key": "pk_x"}
    ours = {"Origin": served.url}
    assert post(served, "/sign-out", fields, **ours).status_code == 303
    assert post(served, "/sign-out", fields, Sec_Fetch_Site="same-origin").status_code == 303
    for theirs in (
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Origin": served.url},
        {},
    ):
        refused = post(served, "/sign-out", fields, **theirs)
        assert refused.status_code == 403, theirs
        assert "set-cookie" not in refused.headers


CALLS = """async ([url, key]) => {
  const sent = { Authorization: `Bearer ${key}` };
  const json = { ...sent, "Content-Type": "application/json", "Idempotency-Key": "one" };
  const body = JSON.stringify({ id: "a", text: "The sluice opens at dawn." });
  const made = await fetch(`${url}/v1/documents`, { method: "POST", headers: json, body });
  const follow = (headers) => fetch(`${url}/v1/documents/a/events`, { headers });
  const told = await (await follow(sent)).text();
  const ids = [...told.matchAll(/^id: (.*)$/gm)].map((one) => one[1]);
  const seen = await follow({ ...sent, "Last-Event-ID": ids.at(-1) });
  const nobody = await fetch(`${url}/v1/jobs`);
  const cookies = fetch(`${url}/v1/jobs`, { headers: sent, credentials: "include" });
  return {
    made: [made.status, made.headers.get("Location")],
    ended: told.includes("event: done"),
    seen: seen.status,
    nobody: [nobody.status, (await nobody.json()).code],
    cookies: await cookies.then(() => "sent", () => "refused"),
  };
}"""


def test_a_page_of_a_named_origin_calls_and_follows_with_a_key(
    board: Board, served: Served
) -> None:
    """The page is an answer of another server, which has no policy of its own."""
    key = board.host.key("page")
    other = board.host.serve(origins=[served.url])
    page = board.look("/healthz", served=served).page
    assert page.evaluate(CALLS, [other.url, key]) == {
        "made": [202, "/v1/documents/a"],
        "ended": True,
        "seen": 204,
        "nobody": [401, "unauthorized"],
        "cookies": "refused",
    }
    page.goto(served.url.replace("127.0.0.1", "localhost") + "/healthz")
    with pytest.raises(PlaywrightError, match="Failed to fetch"):
        page.evaluate(CALLS, [other.url, key])
    other.stop()


def test_the_cookie_is_no_key_for_the_api(board: Board) -> None:
    key = board.host.key("cookie")
    locked = board.host.serve("--no-workers", require_key=True)
    cookie = {"Cookie": f"penstock_key={key}"}
    assert get(locked, "/", **cookie).status_code == 200
    assert get(locked, "/v1/jobs", **cookie).status_code == 401
    locked.stop()


def test_who_has_a_key_signs_in_and_out(board: Board) -> None:
    key = board.host.key("person", scopes="read write admin")
    locked = board.host.serve("--no-workers", require_key=True)
    look = board.look("/jobs?kind=add", served=locked)
    assert look.page.url.startswith(locked.url + "/sign-in")
    look.find("input[name=key]").fill("pk_wrong")
    look.press("Sign in")
    look.says("unknown or revoked API key")
    look.accessible()
    look.complaints.clear()  # the browser tells of the 401
    look.find("input[name=key]").fill(key)
    look.press("Sign in")
    look.live()
    assert look.page.url == locked.url + "/jobs?kind=add"
    (cookie,) = look.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Strict", False)
    look.press("Sign out")
    look.says("You are signed out")
    assert look.open("/").page.url.startswith(locked.url + "/sign-in")
    look.fine()
    locked.stop()


def test_a_page_that_is_open_when_its_key_is_revoked_asks_for_another(board: Board) -> None:
    key = board.host.key("leaver", scopes="read")
    locked = board.host.serve("--no-workers", require_key=True, heartbeat_seconds=0.5)
    look = board.look(None, served=locked).sign_in(key).open("/jobs").live()
    board.cli("keys", "revoke", key.split("_")[1])
    look.page.wait_for_url("**/sign-in?next=%2Fjobs")
    locked.stop()


def test_the_cookie_is_for_tls_only_where_the_browser_uses_it(board: Board) -> None:
    key = board.host.key("tls")
    locked = board.host.serve("--no-workers", require_key=True, hosts=["board.example"])
    answer = post(
        locked,
        "/sign-in",
        {"key": key, "next": "//elsewhere.example/"},
        Host="board.example",
        Origin="https://board.example",
    )
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    assert "; Secure" in answer.headers["set-cookie"]
    assert "HttpOnly" in answer.headers["set-cookie"]
    locked.stop()


def test_a_page_whose_stream_is_refused_at_first_asks_again(board: Board, served: Served) -> None:
    look = board.look(None)
    refused: list[bool] = []

    def answer(route: Route) -> None:
        refused.append(True)
        route.fulfill(status=503, body="{}")

    look.page.route("**/live/**", answer)
    look.open("/jobs").says("reconnecting")
    look.page.unroute("**/live/**")
    look.live()
    # The browser's and ours, of each 503.
    assert len(look.complaints) == 2 * len(refused), look.complaints


def test_a_page_changes_while_it_is_open(board: Board, served: Served) -> None:
    look = board.look("/jobs?kind=look.*").live()
    look.says("No jobs match these filters.")
    board.enqueue("look.up")
    look.says("look.up", "#live")
    look.says("completed", "#live")
    look.fine()


def test_a_paused_page_shows_what_has_come_when_it_goes_on(board: Board, served: Served) -> None:
    look = board.look("/jobs?kind=fail").live()
    look.press("Pause updates")
    board.enqueue("fail")
    look.says("paused, updates waiting")
    look.says("No jobs match these filters.")
    look.press("Resume updates")
    look.says("ValueError", "#live")
    look.fine()


def test_focus_place_and_what_is_ticked_stay(board: Board, served: Served) -> None:
    ids = [board.enqueue("add") for _ in range(3)]
    board.finished(*ids)
    look = board.look("/jobs?kind=add", device=SHORT).live()
    link, box = look.find(f"#job-{ids[0]} a"), look.find(f"#pick-{ids[1]}")
    box.check()
    link.focus()
    before = link.bounding_box()
    board.enqueue("add")
    look.says("Show 1 newer")
    expect(link).to_be_focused()
    expect(box).to_be_checked()
    after = link.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 3  # though something was put in above it
    look.fine()


def test_nothing_changes_under_a_text_that_is_selected(board: Board, served: Served) -> None:
    job_id = board.enqueue("add", delay=3600)
    look = board.look(f"/jobs/{job_id}").live()
    look.page.evaluate("getSelection().selectAllChildren(document.querySelector('#live .mono'))")
    board.do(lambda app: app.cancel(job_id))
    board.another(look, f"/jobs/{job_id}").says("cancelled")  # it can be seen elsewhere
    look.until("held !== null")
    assert look.page.evaluate("getSelection().toString()") == job_id
    assert look.find(".badge.queued").count() == 1
    look.page.evaluate("getSelection().removeAllRanges()")
    look.says("cancelled")
    look.fine()


def test_pages_go_on_after_a_restart_of_the_server(board: Board) -> None:
    first = board.host.serve()
    port = int(first.url.rsplit(":", 1)[1])
    look = board.look("/jobs?kind=block", served=first).live()
    first.stop()
    look.says("reconnecting")
    board.enqueue("block", {"seconds": 0})
    second = board.host.serve(port=port)
    look.says("block", "#live table")
    look.live()
    second.stop()


def test_an_open_page_does_not_hold_up_a_stop(board: Board) -> None:
    served = board.host.serve("--no-workers", shutdown_seconds=600.0)
    board.look("/jobs", served=served).live()
    assert served.stop().code == 0


def test_pages_can_be_read_without_scripts(board: Board, served: Served) -> None:
    look = board.look(None, script=False)
    for path in PAGES:
        look.open(path)
        expect(look.find("h1")).to_be_visible()
        expect(look.find("#live")).not_to_be_empty()


def test_the_theme_is_kept(board: Board, served: Served) -> None:
    look = board.look("/")
    for expected in ("light", "dark"):
        look.find("#theme").click()
        assert look.find("html").get_attribute("data-theme") == expected
    look.page.reload()
    assert look.find("html").get_attribute("data-theme") == "dark"
    look.fine()


def test_a_server_that_shows_no_page_does_not_load_what_makes_them() -> None:
    program = "import sys, penstock.server.run; sys.exit('jinja2' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)
