"""Names of people, places and organizations, masked by Presidio with a spaCy model."""

import asyncio
import logging
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.documents.mask import Masker
from penstock.documents.pii.presidio import OVERLAP, PIECE, PresidioNames, pieces
from penstock.engine.run import current
from penstock.errors import ConfigError, JobTimeout
from penstock.model.name_masking import NAME_KINDS, NamesConfig
from tests.support.document_app import SOON, Shelf, completed
from tests.support.toy_names import FIRM, KOREAN, PERSON, PLACE, make_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("models") / "toy")


@pytest.fixture(scope="module")
def mask(model: str) -> Masker:
    return masker(model)


def masker(model: str, kinds: tuple[str, ...] = ("person",), **labels: str) -> Masker:
    return Masker(labels, [PresidioNames(NamesConfig({"xx": model}, kinds, labels))])


def with_names(shelf: Shelf, model: str, kinds: str = "[person]") -> None:
    path = Path(shelf.farm.settings["config_file"])
    text = path.read_text().partition("names:")[0]
    path.write_text(f"{text}names:\n  models: {{xx: {model}}}\n  kinds: {kinds}\n")


def test_only_people_are_masked_unless_more_is_asked_for(mask: Masker, model: str) -> None:
    text = f"{PERSON} of {FIRM} in {PLACE}, mail to jane@example.com, seven times."
    masked = mask(text)
    assert masked.text == f"[PERSON] of {FIRM} in {PLACE}, mail to [EMAIL], seven times."
    assert masked.counts == {"person": 1, "email": 1}

    every = masker(model, NAME_KINDS)(text)
    assert every.text == ("[PERSON] of [ORGANIZATION] in [LOCATION], mail to [EMAIL], seven times.")
    assert every.counts == {"person": 1, "organization": 1, "location": 1, "email": 1}


def test_label_is_the_one_that_is_configured(model: str) -> None:
    mask = masker(model, person="<somebody>")
    once = mask(f"{PERSON} writes to {PERSON}.").text
    assert once == "<somebody> writes to <somebody>."
    with pytest.raises(ConfigError, match="the label of person"):
        masker(model, person="person 1")


def test_names_that_other_models_label_otherwise_are_masked(mask: Masker) -> None:
    assert mask(f"{KOREAN} 씨").text == "[PERSON] 씨"


@pytest.mark.parametrize(
    "name",
    [
        "/home/{}/CV.pdf",
        "letters/{}.pdf",
        "CV_of_{}_2026.DOCX",
        "C:\\{}\\cv.md",
        "{}.txt",
        "https://example.org/people/{}/",
    ],
)
def test_names_are_masked_in_names_of_files(mask: Masker, name: str) -> None:
    first, last = PERSON.split()
    for written in (PERSON, f"{first}_{last}"):
        assert mask(name.format(written)).text == name.format("[PERSON]")


def test_text_that_was_masked_is_not_masked_again(mask: Masker) -> None:
    once = mask(f"{PERSON}, jane@example.com").text
    assert mask(once).text == once


def test_label_in_a_span_is_left_and_the_rest_of_it_masked() -> None:
    mask = Masker(finders=[lambda text: [(0, len(text), "person")]])  # type: ignore[list-item]
    assert mask("Jane[EMAIL]Doe").text == "[PERSON][EMAIL][PERSON]"
    assert mask("[PERSON]").text == "[PERSON]"


@pytest.mark.parametrize("gap", ["\n\n", "\n", ". ", "。", " "])
def test_every_name_of_a_long_text_is_masked(mask: Masker, gap: str) -> None:
    line = f"It was {PERSON} who opened the sluice{gap}"
    text = line * (4 * PIECE // len(line))
    masked = mask(text)
    assert PERSON not in masked.text
    assert masked.counts == {"person": text.count(PERSON)}
    assert masked.text == text.replace(PERSON, "[PERSON]")


@pytest.mark.parametrize("blank", [" ", "\n", ". "])
@pytest.mark.parametrize("shift", range(0, len(PERSON) + 3, 2))
def test_name_is_masked_where_a_text_is_cut_in_it(mask: Masker, shift: int, blank: str) -> None:
    """There is no other place to cut than around and in the name."""
    before, after = "x" * (PIECE - shift) + blank, blank + "x" * PIECE
    masked = mask(f"{before}{PERSON}{after}")
    assert masked.text == f"{before}[PERSON]{after}"
    assert masked.counts == {"person": 1}


@pytest.mark.parametrize("text", ["", "a", "ab\n" * 5000, "x" * 30_000, "\n" * 30_000])
def test_pieces_are_bounded_and_cover_the_text(text: str) -> None:
    found = list(pieces(text))
    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    assert all(end - start <= PIECE for start, end in found)
    for (_, end), (start, _) in pairwise(found):
        assert end - OVERLAP <= start <= end
    assert len(found) <= 1 + len(text) // (PIECE // 2 - OVERLAP)


def test_search_for_names_ends_with_the_time_of_its_job(mask: Masker) -> None:
    class Late:
        def left(self) -> float:
            return 0.0

    token = current.set(Late())  # type: ignore[arg-type]
    try:
        with pytest.raises(JobTimeout):
            mask("a text")
    finally:
        current.reset(token)


def test_nothing_that_is_read_is_kept_or_logged(
    mask: Masker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    (finder,) = mask._finders
    assert isinstance(finder, PresidioNames)
    mask(f"{PERSON} and seven others")
    assert finder._loaded is not None
    strings = finder._loaded.languages["xx"].vocab.strings
    before = len(strings)
    mask(" ".join(f"word{'x' * number}" for number in range(1, 50)))
    assert len(strings) == before
    assert PERSON not in caplog.text
    assert "not mapped" not in caplog.text


@pytest.mark.parametrize("package", ["presidio_analyzer", "spacy"])
def test_missing_extra_is_named(package: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=r"pip install 'penstock\[names\]'"):
        PresidioNames(NamesConfig({"xx": model}))


@pytest.mark.parametrize("name", ["en_core_web_nowhere", "/nowhere/model", "no name at all"])
def test_missing_model_is_named_and_not_downloaded(name: str) -> None:
    with pytest.raises(ConfigError, match=f"no spaCy model '{name}': `python -m spacy download"):
        PresidioNames(NamesConfig({"en": name}))


def test_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"cannot load {tmp_path}"):
        masker(str(tmp_path))("a text")


async def test_no_name_is_stored_or_sent_wherever_it_stands(shelf: Shelf, model: str) -> None:
    with_names(shelf, model)
    folder = shelf.farm.folder.parent / f"{shelf.farm.folder.name}-of {PERSON}"
    folder.mkdir()
    path = folder / f"CV of {PERSON}.md"
    path.write_text(f"# Life of {PERSON}\n\n{PERSON} lives in {PLACE}.\n")
    async with shelf.running() as app:
        added = await app.documents.add(
            path,
            title=f"For {PERSON}",
            collection=f"letters to {PERSON}",
            metadata={"author": PERSON, PERSON: [PERSON]},
        )
        document = await completed(app, path.name, collection=f"letters to {PERSON}")
        assert document.ref == added.ref, "it is found by the name it was given"
        assert document.masked == {"person": 2}
        assert document.title == "Life of [PERSON]"
        (chunk,) = await app.documents.chunks(path.name, collection=f"letters to {PERSON}")
        assert chunk.text == f"# Life of [PERSON]\n\n[PERSON] lives in {PLACE}.\n"
        assert chunk.section == ("Life of [PERSON]",)
        result = await app.documents.search(f"where does {PERSON} live")
        assert [one.text for one in result.passages] == [chunk.text]
        await app.drain(SOON)
        await app.documents.documents(collection=f"letters to {PERSON}")
    shelf.farm.query("PRAGMA wal_checkpoint(PASSIVE)")
    files = [one for one in shelf.farm.folder.rglob("*") if one.is_file()]
    assert [one.name for one in files if PERSON.encode() in one.read_bytes()] == []
    assert not any(PERSON.encode() in hit.body for hit in shelf.embedder.requests)


async def test_same_bytes_are_worth_another_look_when_the_setting_changes(
    shelf: Shelf, model: str
) -> None:
    content = f"{PERSON} lives in {PLACE}.".encode()
    generations, texts = [], []
    settings = (None, "[person]", "[person]", "[person, location]")
    for kinds in settings:
        if kinds is not None:
            with_names(shelf, model, kinds)
        async with shelf.running() as app:
            generations.append((await app.documents.add(content, id="a")).generation)
            await completed(app, "a")
            (chunk,) = await app.documents.chunks("a")
            texts.append(chunk.text)
    first, second, same, third = generations
    assert first < second == same < third
    assert texts[0] == f"{PERSON} lives in {PLACE}."
    assert texts[1] == f"[PERSON] lives in {PLACE}."
    assert texts[3] == "[PERSON] lives in [LOCATION]."


async def test_event_loop_goes_on_while_a_model_is_loaded_and_asked(
    shelf: Shelf, model: str
) -> None:
    with_names(shelf, model)
    app: Penstock = shelf.farm.app("documents")
    async with app:
        asked = asyncio.create_task(
            app.documents.search("a question", metadata={"said": f"{PERSON} wrote. " * 500})
        )
        turns = 0
        while not asked.done():
            await asyncio.sleep(0.002)
            turns += 1
        assert (await asked).passages == []
    assert turns >= 5, "a tenth of what there is time for"
