"""Questions on the dashboard: asked, answered as one watches, and founded on what one can read."""

import re
import signal
import threading
from collections.abc import Iterator

import httpx2 as httpx
import pytest
from playwright.sync_api import expect

from tests.support.answers import DOCUMENTS, ENOUGH, QUESTION, content
from tests.support.answers_config import MANY_WORDS, settings
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
from tests.support.model_server import ANSWER, SEARCH, ModelServer, Reply
from tests.support.sampling import some_of
from tests.support.serve_process import Served
from tests.support.waiting import PATIENCE

GATE = threading.Event()
"""What the end of a slow answer waits for."""
SLOWLY = Reply(MANY_WORDS, pause=0.05, until=GATE.is_set)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as model:
        yield model


@pytest.fixture(autouse=True)
def _content(model: ModelServer) -> None:
    GATE.clear()
    content(model)


@pytest.fixture(scope="module")
def served(board: Board, model: ModelServer) -> Served:
    content(model)
    board.host.others |= settings(model)
    served = board.serve()
    for name, text in DOCUMENTS.items():
        put(served, name, text, f"About the {name}")
    return served


def put(served: Served, name: str, text: str, title: str) -> None:
    """A document that can be searched."""
    body = {"text": text, "title": title}
    answer = httpx.put(f"{served.url}/v1/index/{name}", json=body, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text


def over(served: Served, answer: str) -> None:
    """Wait until it is."""
    known, since = f"{served.url}/v1/answers/{answer}", 0
    while (seen := httpx.get(f"{known}?wait=20&since={since}", timeout=PATIENCE).json())[
        "next_poll"
    ]:
        since = seen["version"]


def ask(look: Look, question: str = QUESTION) -> Look:
    look.open("/ask")
    look.page.get_by_role("textbox", name="Question").fill(question)
    look.page.get_by_role("button", name="Ask", exact=True).click()
    look.page.wait_for_url("**/ask/*")
    return look


def test_an_answer_is_written_as_one_watches_and_its_citations_open_their_passage(
    board: Board, served: Served, model: ModelServer
) -> None:
    model.script[ANSWER] = SLOWLY
    look = ask(board.look(None)).live()
    look.says("Word 1 is", "#answer-text[aria-busy]")
    look.page.reload()  # in the middle
    look.live().says("Word 4 is", "#answer-text[aria-busy]")
    tab = board.another(look, "/ask").live()
    tab.says(re.compile(f"{re.escape(QUESTION)}.*running", re.S))
    GATE.set()
    look.says("Word 11 is", "#answer-text:not([aria-busy])")
    tab.says(re.compile(f"{re.escape(QUESTION)}.*completed", re.S))
    passage = look.find("#passage-1")
    expect(passage).to_be_hidden()
    look.find("#answer-text a.cite").first.click()
    expect(passage).to_be_visible()
    text = passage.locator("blockquote").inner_text()
    assert text.split("\n")[0] in "\n".join(DOCUMENTS.values())
    look.find("#how summary").click()
    look.says("overshot wheel; weight of water", "#how")
    look.says("looking, round 1", "#how")
    look.fine()
    tab.fine()


def test_the_keyboard_is_enough(board: Board, served: Served) -> None:
    look = board.look("/ask").live()
    look.page.get_by_role("textbox", name="Question").focus()
    look.page.keyboard.type(QUESTION)
    for _ in range(4):
        look.page.keyboard.press("Tab")
    look.page.keyboard.press("Enter")
    look.page.wait_for_url("**/ask/*")
    look.find("#answer-text:not([aria-busy]) a.cite").first.focus()
    look.page.keyboard.press("Enter")
    expect(look.find("#passage-1")).to_be_visible()
    look.page.keyboard.press("Tab")  # on from the passage, into it
    assert look.page.evaluate("document.activeElement.closest('#passage-1') !== null")
    look.fine()


def test_without_scripts_one_asks_and_reads_the_answer(board: Board, served: Served) -> None:
    look = ask(board.look(None, script=False))
    over(served, look.page.url.rpartition("/")[2])
    look.page.reload()
    said = look.find("#answer-text").inner_text().split(".")[0].removesuffix(" [1]")
    look.find("#answer-text a.cite").first.click()
    assert look.page.url.endswith("#passage-1")
    expect(look.find("#passage-1")).to_be_visible()
    expect(look.find("#passage-1")).to_contain_text(said)


def test_a_question_is_given_up_after_it_was_confirmed(
    board: Board, served: Served, model: ModelServer
) -> None:
    model.script[ANSWER] = Reply(MANY_WORDS, pause=0.05, stall_after=40)
    look = ask(board.look(None)).live()
    look.says("Word 1 is", "#answer-text")
    look.press("Cancel")
    assert look.ask("Confirm") == "Cancel this question?"
    look.says("Question cancelled.")
    look.says("cancelled")
    assert look.find("button").filter(has_text="Cancel").count() == 0
    look.press("Ask again")
    expect(look.page.get_by_role("textbox", name="Question")).to_have_value(QUESTION)
    look.fine()
    plain = ask(board.look(None, script=False))
    plain.press("Cancel")
    plain.says("Cancel this question?")
    plain.press("Confirm")
    plain.says("cancelled")
    plain.open("/actions")
    plain.says("answer.cancel")


def test_what_was_not_found_and_what_is_extractive_is_said(
    board: Board, served: Served, model: ModelServer
) -> None:
    model.script[SEARCH] = '{"enough": true, "missing": ["the price of a wheel"], "queries": []}'
    look = ask(board.look(None)).live()
    look.says(re.compile("Not found.*the price of a wheel", re.S))
    model.script[SEARCH], model.script[ANSWER] = ENOUGH, Reply(hang=True)
    look.open("/ask")
    look.page.get_by_role("textbox", name="Question").fill(QUESTION)
    look.page.get_by_label("Time limit in seconds").fill("8")
    look.page.get_by_role("button", name="Ask", exact=True).click()
    look.says("extractive: quoted from the sources")
    look.says("Notes")
    look.fine()


def test_what_is_asked_wrongly_is_said_on_the_form_which_keeps_it(
    board: Board, served: Served
) -> None:
    look = board.look("/ask", script=False)
    look.page.get_by_role("textbox", name="Question").fill("물레방아는 누가 썼나?")
    look.page.get_by_label("Collections").fill("mills, rivers")
    look.page.get_by_label("Time limit in seconds").fill("0.1")
    look.page.get_by_role("button", name="Ask", exact=True).click()
    look.says(re.compile(r"seconds must be 1 to \d+"), "[role=alert]")
    expect(look.page.get_by_role("textbox", name="Question")).to_have_value("물레방아는 누가 썼나?")
    expect(look.page.get_by_label("Collections")).to_have_value("mills, rivers")
    look.page.get_by_label("Time limit in seconds").fill("soon")
    look.page.get_by_role("button", name="Ask", exact=True).click()
    look.says("Seconds: 'soon' is not a number", "[role=alert]")


@pytest.mark.parametrize(
    ("question", "word"),
    [("水車は何で回りますか", "川の流れ"), ("물레방아는 무엇으로 돌리나요", "물의 힘")],
)
def test_questions_are_asked_in_japanese_and_korean(
    board: Board, served: Served, model: ModelServer, question: str, word: str
) -> None:
    model.script[ANSWER] = f"{word} [1]."
    look = ask(board.look(None), question).live()
    look.says(word, "#answer-text")
    look.says(question, "h1")
    look.fine()


def test_hostile_text_is_text_in_questions_answers_and_passages(
    board: Board, served: Served, model: ModelServer
) -> None:
    put(served, "hostile", f"A hostile sluice. {HOSTILE}", HOSTILE[:1000])
    model.script[ANSWER] = f"So [1]. {HOSTILE} [1]."
    model.script[SEARCH] = (
        '{"enough": true, "missing": ["<img src=x onerror=window.pwned=1>"], "queries": []}'
    )
    look = ask(board.look(None), f"hostile sluice? {HOSTILE}").live()
    look.says("<script>window.pwned=1</script>", "#answer-text:not([aria-busy])")
    look.find("#answer-text a.cite").first.click()
    look.find("#how summary").click()
    harmless(look)
    look.accessible()
    look.open("/ask").live().says("<script>window.pwned=1</script>")
    harmless(look)
    phone = board.look("/ask", device=DEVICES["phone"]).live()
    harmless(phone)


def test_an_answer_goes_on_where_the_server_was_restarted(
    board: Board, served: Served, model: ModelServer
) -> None:
    model.script[ANSWER] = SLOWLY
    first = board.host.serve(app="board:app")
    look = board.look(None, served=first)
    ask(look).live().says("Word 1 is", "#answer-text[aria-busy]")
    port = int(first.url.rsplit(":", 1)[1])
    first.send(signal.SIGKILL)
    first.running.process.wait(PATIENCE)
    look.says("reconnecting")
    GATE.set()
    second = board.host.serve(app="board:app", port=port)
    look.live().says("Word 11 is", "#answer-text:not([aria-busy])")
    second.stop()


def test_who_may_only_read_reads_and_does_not_ask(board: Board, served: Served) -> None:
    reader = board.host.key("ask-reader", scopes="read")
    stranger = board.host.key("ask-stranger", tenant="others", scopes="read write")
    asked = httpx.post(f"{served.url}/v1/answers", json={"question": QUESTION}, timeout=PATIENCE)
    answer = str(asked.json()["answer_id"])
    locked = board.host.serve("--no-workers", app="board:app", require_key=True)
    look = signed_in(board, locked, reader)
    look.open("/ask").live()
    assert look.find("main button:visible").all_inner_texts() == ["Pause updates"]
    look.open(f"/ask/{answer}").live().says("[1]", "#answer-text")
    assert look.find("main button:visible").all_inner_texts() == ["Pause updates"]
    look.fine()
    question = {"question": "what?", "confirmed": "yes"}
    assert posted(locked, "/ask", question, reader) == 403
    assert posted(locked, f"/ask/{answer}/cancel", question, reader) == 403
    assert posted(locked, f"/ask/{answer}/cancel", question, stranger) == 404
    assert from_elsewhere(served, "/ask", question) == 403
    locked.stop()


@pytest.mark.parametrize("look_of", some_of(LOOKS, "phone-dark"))
def test_the_screens_are_accessible_and_fit(
    board: Board, served: Served, model: ModelServer, look_of: str
) -> None:
    name, _, scheme = look_of.partition("-")
    model.script[SEARCH] = '{"enough": true, "missing": ["the price of a wheel"], "queries": []}'
    model.script[ANSWER] = (
        "An overshot wheel is turned by the weight of water in its buckets [1]. It needs a fall of"
        " three metres or more [1]. Many think it beautiful.\n\nThe stones are dressed every two"
        " weeks [2]."
    )
    device: Device = DEVICES[name]
    look = board.look(None, device=device, scheme=scheme)
    ask(look).live().says("Many think it beautiful", "#answer-text:not([aria-busy])")
    look.accessible()
    look.picture("answer")
    look.find("#answer-text a.cite").first.click()
    look.find("#how summary").click()
    look.accessible()
    look.fits()
    look.picture("answer-open")
    look.open("/ask").live()
    look.accessible()
    look.fits()
    look.picture("ask")
    look.fine()
