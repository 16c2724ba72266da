"""What was read on pages that are pictures is kept while their document is under way."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.ports.documents import DocumentStore, ScannedPage, Version
from tests.conformance.corpus_support import (
    CORPORA,
    MODEL,
    accept,
    add,
    embed,
    ref_of,
    staged_of,
    upload_of,
)

REF = ref_of("a")
ONE, TWO = ScannedPage("the first page", {}), ScannedPage("call [PHONE]", {"phone": 1})


@pytest.fixture(params=sorted(CORPORA))
async def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with CORPORA[request.param](tmp_path) as corpus:
        yield corpus


async def test_pages_are_found_by_what_was_read_and_by_whom(corpus: DocumentStore) -> None:
    version = await accept(corpus, REF)
    assert await corpus.scanned(version, "bytes by ocr") == {}
    assert await corpus.put_scan(version, "bytes by ocr", 7, TWO)
    assert await corpus.put_scan(version, "bytes by ocr", 1, ONE)
    assert await corpus.scanned(version, "bytes by ocr") == {1: ONE, 7: TWO}
    assert await corpus.scanned(version, "bytes by a model") == {}
    other = await accept(corpus, ref_of("a", tenant="other"))
    assert await corpus.scanned(other, "bytes by ocr") == {}


async def test_page_read_again_replaces_what_was_read(corpus: DocumentStore) -> None:
    version = await accept(corpus, REF)
    await corpus.put_scan(version, "old", 1, ONE)
    await corpus.put_scan(version, "new", 1, TWO)
    assert await corpus.scanned(version, "new") == {1: TWO}
    assert await corpus.scanned(version, "old") == {}


async def test_next_generation_finds_what_was_paid_for(corpus: DocumentStore) -> None:
    version = await accept(corpus, REF, "one")
    await corpus.put_scan(version, "bytes", 1, ONE)
    newer = await accept(corpus, REF, "two")
    assert await corpus.scanned(version, "bytes") is None
    assert not await corpus.put_scan(version, "bytes", 2, TWO)
    assert await corpus.scanned(newer, "bytes") == {1: ONE}


async def test_staged_document_keeps_its_pages_and_published_one_does_not(
    corpus: DocumentStore,
) -> None:
    version = await add(corpus, REF, "sun")
    version = await accept(corpus, REF, "two")
    await corpus.put_scan(version, "bytes", 1, ONE)
    assert await corpus.stage(version, staged_of(["moon"]))
    await embed(corpus, version)
    assert await corpus.scanned(version, "bytes") == {1: ONE}
    assert await corpus.publish(version, MODEL)
    assert await corpus.scanned(version, "bytes") == {}


async def test_deleted_document_leaves_no_pages(corpus: DocumentStore) -> None:
    version = await accept(corpus, REF)
    await corpus.put_scan(version, "bytes", 1, ONE)
    await corpus.delete(REF)
    assert await corpus.scanned(version, "bytes") is None
    accepted = await corpus.accept(upload_of(REF))
    again = Version(REF, accepted.document.generation)
    assert await corpus.scanned(again, "bytes") == {}
