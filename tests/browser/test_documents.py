"""Documents on the dashboard: they come in, are followed, found, tried again and deleted."""

import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from playwright.sync_api import expect

from penstock.documents.parse.sniff import Mime
from penstock.server.dashboard.screens.documents import ACCEPTED, PICTURES, accepted
from tests.support.counting_server import Answer, CountingServer
from tests.support.dashboard import Board, Device, Look
from tests.support.dashboard_screens import (
    DEVICES,
    HOSTILE,
    LOOKS,
    NAME,
    from_elsewhere,
    harmless,
    posted,
    signed_in,
)
from tests.support.document_app import LANE
from tests.support.sampling import some_of
from tests.support.serve_process import Served
from tests.support.waiting import PATIENCE

LONG = " ".join(f"Sentence {n} of the long report is about sluices and weirs." for n in range(400))
DROP = """([names, size]) => {
  const data = new DataTransfer();
  const text = (name) => `The dropped text of ${name}. `.repeat(size);
  for (const name of names) data.items.add(new File([text(name)], name));
  const form = document.querySelector("#upload");
  form.dispatchEvent(new DragEvent("dragover", {dataTransfer: data, bubbles: true}));
  form.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
}"""


@pytest.fixture(scope="module")
def site() -> Iterator[CountingServer]:
    with CountingServer() as site:
        site.answers["/eels"] = Answer(
            headers={"content-type": "text/plain"}, body=b"Eels pass the mill by night."
        )
        yield site


@pytest.fixture(scope="module")
def served(board: Board, site: CountingServer) -> Served:
    hosts = {**LANE, "min_interval_seconds": 0.0}
    board.host.others |= {
        "lanes": {"embedder": {**LANE, "timeout_seconds": 2 * PATIENCE}, "host:*": hosts},
        "fetch_allow": [f"127.0.0.1:{site.port}"],
        "chunk_tokens": 50,
        "chunk_overlap": 12,
        "document_bytes": 200_000,
        "max_retries": 1,
    }
    return board.serve()


@pytest.fixture(autouse=True)
def _embedder_well(board: Board) -> Iterator[None]:
    yield
    board.host.embedder.fault, board.host.embedder.poison = None, ""
    board.host.embedder.gate = None


def put(served: Served, name: str, text: str, **more: Any) -> None:
    """A document that can be searched."""
    where = f"?collection={more.pop('collection')}" if "collection" in more else ""
    answer = httpx.put(
        f"{served.url}/v1/index/{name}{where}", json={"text": text, **more}, timeout=PATIENCE
    )
    assert answer.status_code == 200, answer.text


def row(look: Look, name: str) -> str:
    """The text of a document's row in the list."""
    return look.find("#live tbody tr").filter(has_text=name).first.inner_text()


def test_files_are_chosen_and_sent_one_by_one_each_with_what_came_of_it(
    board: Board, served: Served, tmp_path: Path
) -> None:
    (tmp_path / "wheel.txt").write_text("An overshot wheel is turned by the weight of water.")
    (tmp_path / "石臼.md").write_text("# 石臼\n\n石臼は麦を挽く。")
    (tmp_path / "huge.txt").write_bytes(b"w" * 300_000)
    look = board.look("/documents").live()
    look.says("Up to 200 kB per file; without JavaScript, up to 100 files and 500 MB per upload")
    look.find("#upload input[type=file]").set_input_files(sorted(tmp_path.iterdir()))
    look.find("#upload input[name=collection]").fill("mills")
    look.press("Upload")
    rows = look.find("#uploads li")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="wheel.txt")).to_contain_text("accepted")
    expect(rows.filter(has_text="石臼.md")).to_contain_text("accepted")
    expect(rows.filter(has_text="huge.txt")).to_contain_text("upload failed: larger than 200 kB")
    for name in ("wheel.txt", "石臼"):
        look.says(re.compile(f"{name}.*mills.*completed.*1 chunk", re.S), "#live tbody tr")
    rows.filter(has_text="wheel.txt").get_by_role("link", name="Open").click()
    look.says("turned by the weight of water", "#chunk-0")
    look.fine()


def test_files_are_dropped_and_what_could_not_be_sent_is_tried_again(
    board: Board, served: Served
) -> None:
    look = board.look("/documents").live()
    look.page.route("**/documents", lambda route: route.abort())
    look.page.evaluate(DROP, [["one.txt", "two.txt"], 3])
    rows = look.find("#uploads li")
    expect(rows).to_have_count(2)
    for one in (rows.first, rows.last):
        expect(one).to_contain_text("upload failed: the server could not be reached")
    look.page.unroute("**/documents")
    look.complaints.clear()  # the browser tells of what was cut
    for one in (rows.first, rows.last):
        one.get_by_role("button", name="Try again").click()
        expect(one.locator(".badge")).to_have_text("accepted")
    look.says(re.compile("two.txt.*completed", re.S), "#live tbody tr")
    look.fine()


def test_what_the_server_does_not_take_is_told_at_the_file(board: Board, served: Served) -> None:
    look = board.look("/documents").live()
    look.find("#upload input[name=collection]").fill("w" * 300)
    look.page.evaluate(DROP, [["one.txt"], 1])
    expect(look.find("#uploads li")).to_contain_text("upload failed: body.collection")
    assert len(look.complaints) == 1  # the browser tells of the 422


def test_without_scripts_files_texts_and_addresses_come_in_by_forms(
    board: Board, served: Served, site: CountingServer, tmp_path: Path
) -> None:
    look = board.look("/documents", script=False)
    files = [tmp_path / "plain-1.txt", tmp_path / "plain-2.txt"]
    for file in files:
        file.write_text(f"The text of {file.name}.")
    look.find("#upload input[type=file]").set_input_files(files)
    look.press("Upload")
    look.says("2 documents accepted.")
    look.says("plain-2.txt")
    look.find("#by-text summary").click()
    text = look.find("#by-text")
    text.get_by_role("textbox", name="Text").fill("Ducks live below the weir.")
    text.get_by_role("textbox", name="Id").fill("ducks")
    text.get_by_role("button", name="Add text").click()
    look.says("Document accepted.")
    wait(served, "ducks")
    look.page.reload()
    look.says("Ducks live below the weir.", "#chunk-0")
    look.open("/documents").find("#by-url summary").click()
    look.find("#by-url input[name=url]").fill(site.url("/eels"))
    look.press("Fetch")
    look.says("Document accepted.")
    wait(served, site.url("/eels"))
    look.page.reload()
    look.says("Eels pass the mill by night.", "#chunk-0")


def wait(served: Served, name: str) -> None:
    """Until a document is completed; its stream ends then."""
    path = name.replace("/", "%2F").replace(":", "%3A")
    with httpx.stream("GET", f"{served.url}/v1/documents/{path}/events", timeout=PATIENCE) as told:
        assert '"state":"completed"' in "".join(told.iter_text())


def test_what_is_filled_in_wrongly_is_said_on_the_form_which_keeps_it(
    board: Board, served: Served
) -> None:
    look = board.look("/documents", script=False)
    look.find("#by-url summary").click()
    look.find("#by-url input[name=url]").fill("ftp://elsewhere.example/물레방아")
    look.find("#by-url input[name=title]").fill("水車")
    look.press("Fetch")
    look.find("[role=alert]").wait_for()
    expect(look.find("#by-url input[name=url]")).to_have_value("ftp://elsewhere.example/물레방아")
    expect(look.find("#by-url input[name=title]")).to_have_value("水車")
    look.find("#by-text summary").click()
    look.find("#by-text textarea").fill(" \n ")
    look.press("Add text")
    look.says("the text is empty", "[role=alert]")
    look.open("/documents").find("#upload input[name=collection]").fill("w" * 300)
    look.find("#upload input[type=file]").set_input_files(
        {"name": "a.txt", "mimeType": "text/plain", "buffer": b"A file."}
    )
    look.press("Upload")
    look.says("body.collection: String should have at most 240 characters", "[role=alert]")
    expect(look.find("#upload input[name=collection]")).to_have_value("w" * 300)
    assert posted(served, "/documents", {"what": "url", "url": "http://10.0.0.1/"}) == 422


def test_a_document_is_followed_while_it_is_worked_on_and_in_two_tabs(
    board: Board, served: Served
) -> None:
    board.host.embedder.gate = threading.Event()
    sent = httpx.post(
        f"{served.url}/v1/documents",
        json={"text": "A slow sluice.", "id": "slow"},
        timeout=PATIENCE,
    )
    assert sent.status_code == 202
    one = board.look("/documents/slow").live()
    other = board.another(one, "/documents?state=processing").live()
    one.says("processing")
    one.says(re.compile(r"embed \d+ %"), "#phase")
    other.says("slow", "#live tbody")
    one.page.reload()  # in the middle
    board.host.embedder.gate = None
    one.live().says("A slow sluice.", "#chunk-0")
    one.says("completed")
    other.says("No documents match these filters.")
    one.find("#history summary").click()
    one.says(re.compile("queued ingest.parse.*completed ingest.embed", re.S), "#history")
    one.find("#live .notes a").first.click()
    one.says("Timeline")
    one.fine()
    other.fine()


def test_what_failed_stays_with_its_reason_and_is_tried_again(board: Board, served: Served) -> None:
    embedder = board.host.embedder
    embedder.fault, embedder.poison = "count", "poisoned"
    body = {"text": "A poisoned sluice.", "id": "bad", "collection": "odd one"}
    httpx.post(f"{served.url}/v1/documents", json=body, timeout=PATIENCE)
    look = board.look("/documents?state=failed").live()
    look.says(re.compile("bad.*failed.*failed at embed.*embeddings", re.S), "#live tbody tr")
    look.page.reload()
    look.find("#live tbody a").first.click()
    look.says("EmbedderError")
    embedder.fault = None
    look.press("Retry")
    look.says("Retrying.")
    look.live().says("A poisoned sluice.", "#chunk-0")
    expect(look.find("text=EmbedderError")).to_have_count(0)
    retry = {"collection": "odd one"}
    assert posted(served, "/documents/bad/retry", retry) == 303, "and says why not"
    look.open("/documents/bad?collection=odd%20one").says("completed")
    look.fine()


def test_a_document_is_deleted_in_any_state_after_a_question(board: Board, served: Served) -> None:
    board.host.embedder.gate = threading.Event()
    body = {"text": "To be deleted soon.", "id": "doomed"}
    httpx.post(f"{served.url}/v1/documents", json=body, timeout=PATIENCE)
    watcher = board.look("/documents/doomed").live()
    look = board.look("/documents?state=processing").live()
    doomed = look.find("#live tbody tr").filter(has_text="doomed")
    doomed.get_by_role("button", name="Delete").click()
    assert look.ask("Go back").startswith("Delete document doomed")
    assert doomed.count() == 1
    doomed.get_by_role("button", name="Delete").click()
    look.ask("Confirm")
    look.says("Document doomed deleted.")
    watcher.says("no document 'doomed'")
    look.open("/actions").live().says(re.compile("document.delete.*doomed", re.S))
    look.fine()
    board.host.embedder.gate = None
    put(served, "doomed", "Here again.")
    plain = board.look("/documents/doomed", script=False)
    plain.press("Delete")
    plain.says("Delete document doomed")
    plain.press("Confirm")
    plain.says("Document doomed deleted.")


def test_filters_are_kept_in_the_address(board: Board, served: Served) -> None:
    put(served, "here", "A text that is here.", collection="shelf")
    put(served, "there", "A text that is there.", collection="attic")
    look = board.look("/documents").live()
    look.find("[role=search] input[name=collection]").last.fill("attic")
    look.page.get_by_label("completed").check()
    look.press("Apply")
    look.page.wait_for_url(re.compile("collection=attic.*state=completed"))
    look.page.reload()
    expect(look.find("#live tbody tr")).to_have_count(1)
    assert "there" in row(look, "there")
    look.fine()


def test_chunks_are_paged_and_what_was_masked_is_marked(board: Board, served: Served) -> None:
    text = f"Write to anna@example.com, or call +49 30 901820. {LONG}"
    put(served, "report", text, metadata={"shelf": 7, "password": "open sesame"})
    look = board.look("/documents/report").live()
    masked = look.find("#chunk-0 .mask")
    assert masked.all_inner_texts()[:2] == ["[EMAIL]", "[PHONE]"]
    look.says(re.compile(r"Masked\s*1 \[EMAIL\], 1 \[PHONE\]"))
    assert "anna@" not in look.page.content()
    look.says('"shelf": 7')
    assert "sesame" not in look.page.content()
    expect(look.find(".chunk")).to_have_count(20)
    look.press("Next")
    look.live()
    expect(look.find("#chunk-20")).to_be_visible()
    look.press("Previous")
    expect(look.find("#chunk-0")).to_be_visible()
    look.fine()


def test_a_search_leads_to_the_chunk_that_answers(board: Board, served: Served) -> None:
    put(served, "far", f"{LONG} The miller keeps a heron named Konrad. {LONG}")
    look = board.look("/documents")
    look.page.get_by_role("searchbox", name="Search documents").fill("heron Konrad")
    look.page.get_by_role("button", name="Search").click()
    look.page.wait_for_url("**/search?q=heron+Konrad&collection=")
    look.says("heron", "mark")
    look.accessible()
    look.find("article h2 a").first.click()
    chunk = look.find(".chunk:target")
    expect(chunk).to_contain_text("a heron named Konrad")
    look.open("/search?q=heron&collection=nowhere").says("No results.")
    look.fine()
    board.host.embedder.fault = "500"
    look.open("/search?q=heron").says("Keyword search only")


def test_ingestion_goes_on_where_the_server_was_restarted(board: Board, served: Served) -> None:
    board.host.embedder.gate = threading.Event()
    first = board.host.serve(app="board:app")
    look = board.look("/documents", served=first).live()
    look.page.evaluate(DROP, [["interrupted.txt"], 3])
    look.says(re.compile("interrupted.txt.*processing", re.S), "#live tbody tr")
    port = int(first.url.rsplit(":", 1)[1])
    first.send(signal.SIGKILL)
    first.running.process.wait(PATIENCE)
    look.says("reconnecting")
    board.host.embedder.gate = None
    second = board.host.serve(app="board:app", port=port)
    look.live().says(re.compile("interrupted.txt.*completed", re.S), "#live tbody tr")
    second.stop()


def test_hostile_text_is_text_in_every_field(board: Board, served: Served) -> None:
    embedder = board.host.embedder
    put(served, "hostile", f"A hostile weir. {HOSTILE}", title=HOSTILE[:1000])
    embedder.fault, embedder.poison = "count", "window.pwned=2"
    body = {
        "text": "window.pwned=2",
        "id": NAME,
        "title": HOSTILE[:1000],
        "collection": NAME,
        "metadata": {"<script>window.pwned=1</script>": HOSTILE},
    }
    sent = httpx.post(f"{served.url}/v1/documents", json=body, timeout=PATIENCE)
    assert sent.status_code == 202, sent.text
    paths = ["/documents", "/documents/hostile", "/search?q=hostile+weir+%3Cscript%3E"]
    look = board.look("/documents?state=failed", device=DEVICES["phone"]).live()
    link = look.find("#live tbody a").first
    link.click()
    look.live().says("<script>window.pwned=1</script>")
    harmless(look)
    for path in paths:
        look.open(path).says("<script>window.pwned=1</script>")
        harmless(look)
    look = board.look("/documents").live()
    look.page.evaluate(DROP, [[f"{NAME}.txt"], 1])
    look.says("accepted", "#uploads .badge")
    harmless(look)
    look.page.evaluate(DROP, [["\u202etxt.\x1bpdf"], 1])
    look.says("upload failed: id must be 1 to 240 printable characters", "#uploads")
    look.complaints.clear()  # the browser tells of the 422
    harmless(look)


def test_who_may_only_read_reads_and_changes_nothing(board: Board, served: Served) -> None:
    put(served, "kept", "A text that is kept.")
    reader = board.host.key("documents-reader", scopes="read")
    stranger = board.host.key("documents-stranger", tenant="others", scopes="read write")
    locked = board.host.serve("--no-workers", app="board:app", require_key=True)
    look = signed_in(board, locked, reader)
    look.open("/documents").live()
    offered = ["Pause updates", "Search", "Apply"]
    assert look.find("main button:visible").all_inner_texts() == offered
    look.open("/documents/kept").live().says("A text that is kept.", "#chunk-0")
    assert look.find("main button:visible").all_inner_texts() == ["Pause updates"]
    look.fine()
    sure = {"collection": "default", "confirmed": "yes", "what": "text", "text": "mine"}
    assert posted(locked, "/documents", sure, reader) == 403
    assert posted(locked, "/documents/kept/delete", sure, reader) == 403
    assert posted(locked, "/documents/kept/delete", sure, stranger) == 404
    assert from_elsewhere(served, "/documents/kept/delete", sure) == 403
    look.open("/documents/kept").says("A text that is kept.")
    locked.stop()


def test_all_formats_that_are_read_are_named() -> None:
    assert {*ACCEPTED, *PICTURES} == {one.name for one in Mime}
    assert set(accepted("ocr")) - set(accepted("none")) == {"PNG", "JPEG", "TIFF"}


@pytest.mark.parametrize("look_of", some_of(LOOKS, "laptop-light"))
def test_the_screens_are_accessible_and_fit(board: Board, served: Served, look_of: str) -> None:
    name, _, scheme = look_of.partition("-")
    put(served, "letter", "Dear Anna, write to anna@example.com about the weir.", title="A letter")
    device: Device = DEVICES[name]
    look = board.look(None, device=device, scheme=scheme)
    for screen, path in {
        "documents": "/documents?state=completed&collection=default",
        "document": "/documents/letter",
    }.items():
        look.open(path).live()
        look.accessible()
        look.fits()
        look.picture(screen)
    look.open("/search?q=write+about+the+weir")
    look.accessible()
    look.fits()
    look.picture("search")
    look.fine()
