"""What was read on pages that are pictures is kept while their document is under way."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.adapters.sql.documents import DocumentStore
from penstock.ports.documents import ScannedPage, Version
from tests.conformance.document_support import (
    DOCUMENT_STORES,
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


@pytest.fixture(params=sorted(DOCUMENT_STORES))
async def documents(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with DOCUMENT_STORES[request.param](tmp_path) as documents:
        yield documents


async def test_pages_are_found_by_what_was_read_and_by_whom(documents: DocumentStore) -> None:
    version = await accept(documents, REF)
    assert await documents.scanned(version, "bytes by ocr") == {}
    assert await documents.put_scan(version, "bytes by ocr", 7, TWO)
    assert await documents.put_scan(version, "bytes by ocr", 1, ONE)
    assert await documents.scanned(version, "bytes by ocr") == {1: ONE, 7: TWO}
    assert await documents.scanned(version, "bytes by a model") == {}
    other = await accept(documents, ref_of("a", tenant="other"))
    assert await documents.scanned(other, "bytes by ocr") == {}


async def test_page_read_again_replaces_what_was_read(documents: DocumentStore) -> None:
    version = await accept(documents, REF)
    await documents.put_scan(version, "old", 1, ONE)
    await documents.put_scan(version, "new", 1, TWO)
    assert await documents.scanned(version, "new") == {1: TWO}
    assert await documents.scanned(version, "old") == {}


async def test_next_generation_finds_what_was_paid_for(documents: DocumentStore) -> None:
    version = await accept(documents, REF, "one")
    await documents.put_scan(version, "bytes", 1, ONE)
    newer = await accept(documents, REF, "two")
    assert await documents.scanned(version, "bytes") is None
    assert not await documents.put_scan(version, "bytes", 2, TWO)
    assert await documents.scanned(newer, "bytes") == {1: ONE}


async def test_staged_document_keeps_its_pages_and_published_one_does_not(
    documents: DocumentStore,
) -> None:
    version = await add(documents, REF, "sun")
    version = await accept(documents, REF, "two")
    await documents.put_scan(version, "bytes", 1, ONE)
    assert await documents.stage(version, staged_of(["moon"]))
    await embed(documents, version)
    assert await documents.scanned(version, "bytes") == {1: ONE}
    assert await documents.publish(version, MODEL)
    assert await documents.scanned(version, "bytes") == {}


async def test_deleted_document_leaves_no_pages(documents: DocumentStore) -> None:
    version = await accept(documents, REF)
    await documents.put_scan(version, "bytes", 1, ONE)
    await documents.delete(REF)
    assert await documents.scanned(version, "bytes") is None
    accepted = await documents.accept(upload_of(REF))
    again = Version(REF, accepted.document.generation)
    assert await documents.scanned(again, "bytes") == {}
