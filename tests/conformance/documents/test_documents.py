"""Documents, their versions, and search over them, on every store."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from penstock.adapters.sql.documents import DocumentStore
from penstock.errors import PenstockError
from penstock.model.document import DocumentState
from penstock.ports.documents import DocumentQuery, Scope
from tests.conformance.document_support import (
    DOCUMENT_STORES,
    MODEL,
    TENANT,
    accept,
    add,
    embed,
    find,
    nearest,
    publish,
    ref_of,
    staged_of,
    texts,
    there,
    upload_of,
    vector_of,
    wanted,
)


class Place:
    """Where a document store is stored; opens it as another process would."""

    def __init__(self, name: str, folder: Path) -> None:
        self._open, self._folder = DOCUMENT_STORES[name], folder

    def open(self) -> AbstractAsyncContextManager[DocumentStore]:
        return self._open(self._folder)


@pytest.fixture(params=sorted(DOCUMENT_STORES))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


@pytest.fixture
async def documents(place: Place) -> AsyncIterator[DocumentStore]:
    async with place.open() as documents:
        yield documents


async def test_document_goes_from_accepted_to_found(documents: DocumentStore) -> None:
    ref = ref_of("weather")
    version = await accept(documents, ref, "x", title="Weather", metadata={"year": 2026})
    accepted = await there(documents, ref)
    assert (accepted.state, accepted.phase, accepted.progress) == ("processing", "waiting", 0.0)
    assert not accepted.searchable
    assert await documents.mark(
        version, state=DocumentState.PROCESSING, phase="parse", progress=0.1
    )
    assert (await there(documents, ref)).started_at is not None
    assert await publish(documents, version, "sun and rain", "moon and tide")

    document = await there(documents, ref)
    assert (document.state, document.progress, document.searchable) == ("completed", 1.0, True)
    assert (document.chunks, document.title, document.mime) == (2, "a title", "text/plain")
    assert (document.masked, document.metadata) == ({"email": 2}, {"year": 2026})
    assert document.finished_at is not None
    found = await find(documents, "moon")
    assert texts(found) == ["moon and tide"]
    assert nearest(found)[0] == "moon and tide"
    (hit,) = found.text
    assert found.places[hit.chunk].document == document


async def test_nothing_is_found_before_it_is_published(documents: DocumentStore) -> None:
    version = await accept(documents, ref_of("a"))
    await documents.stage(version, staged_of(["sun"]))
    await embed(documents, version)

    found = await find(documents, "sun")
    assert (found.text, found.vector, found.places) == ([], [], {})
    assert await documents.chunks(version.ref) == []
    assert await documents.text(version.ref) is None


async def test_chunks_and_text_are_those_that_were_staged(documents: DocumentStore) -> None:
    version = await add(documents, ref_of("a"), "sun ", "moon 月 ", "rain")
    chunks = await documents.chunks(version.ref)

    assert [chunk.text for chunk in chunks] == ["sun ", "moon 月 ", "rain"]
    assert [chunk.ordinal for chunk in chunks] == [0, 1, 2]
    text = await documents.text(version.ref)
    assert text == "sun moon 月 rain"
    assert [text[chunk.start : chunk.end] for chunk in chunks] == [chunk.text for chunk in chunks]
    assert {(chunk.pages, chunk.section) for chunk in chunks} == {((1, 2), ("top",))}
    assert [chunk.page_starts for chunk in chunks] == [(chunk.end - 1,) for chunk in chunks]


async def test_new_version_replaces_the_old_one_at_once(documents: DocumentStore) -> None:
    ref = ref_of("a")
    await add(documents, ref, "sun sun", "sun rain")
    newer = await accept(documents, ref, "new")
    await documents.stage(newer, staged_of(["moon"]))
    await embed(documents, newer)
    assert sorted(texts(await find(documents, "sun"))) == ["sun rain", "sun sun"], "until then"
    assert (await there(documents, ref)).searchable
    assert await documents.publish(newer, MODEL)

    assert texts(await find(documents, "sun")) == []
    assert nearest(await find(documents, "moon")) == ["moon"]
    assert [chunk.text for chunk in await documents.chunks(ref)] == ["moon"]


async def test_slow_first_version_never_publishes_over_the_second(documents: DocumentStore) -> None:
    ref = ref_of("a")
    slow = await accept(documents, ref, "one")
    await documents.stage(slow, staged_of(["sun"]))
    fast = await add(documents, ref, "moon")
    assert fast.generation > slow.generation
    await documents.put_vectors(TENANT, MODEL, {"of": vector_of("sun")})

    assert not await documents.publish(slow, MODEL)
    assert not await documents.stage(slow, staged_of(["sun"]))
    assert await documents.to_embed(slow, MODEL) is None
    assert not await documents.mark(slow, state=DocumentState.FAILED, phase="embed", progress=0.5)
    assert (await there(documents, ref)).state is DocumentState.COMPLETED
    assert texts(await find(documents, "sun moon")) == ["moon"]


async def test_a_generation_tells_when_and_not_how_much_others_upload(
    documents: DocumentStore,
) -> None:
    """It was a count over all tenants."""
    versions = [await accept(documents, ref_of("a"), "one")]
    for number in range(20):
        await accept(documents, ref_of(f"{number}", tenant="other"), "theirs")
    versions.append(await accept(documents, ref_of("a"), "two"))
    for version in versions:
        assert version.generation / 1e6 == pytest.approx(time.time(), abs=120)
    assert versions[1].generation > versions[0].generation


async def test_slow_version_never_publishes_over_a_delete_or_what_came_after_it(
    documents: DocumentStore,
) -> None:
    ref = ref_of("a")
    slow = await accept(documents, ref, "one")
    await documents.stage(slow, staged_of(["sun"]))
    assert await documents.delete(ref) is not None
    assert not await documents.publish(slow, "")
    assert await documents.get(ref) is None

    again = await accept(documents, ref, "two")
    assert again.generation > slow.generation
    assert not await documents.publish(slow, "")
    assert await publish(documents, again, "moon")
    assert texts(await find(documents, "sun moon")) == ["moon"]


async def test_the_same_upload_again_changes_nothing(documents: DocumentStore) -> None:
    ref = ref_of("a")
    first = await accept(documents, ref, "same")
    again = await documents.accept(upload_of(ref, "same"))
    assert (again.new, again.document.generation) == (False, first.generation)
    await publish(documents, first, "sun")
    again = await documents.accept(upload_of(ref, "same"))
    assert (again.new, again.document.state) == (False, DocumentState.COMPLETED)


async def test_the_same_upload_again_is_a_new_try_where_it_failed_and_one_is_asked_for(
    documents: DocumentStore,
) -> None:
    ref = ref_of("a")
    version = await accept(documents, ref, "same")
    error = {"type": "ParserError", "message": "encrypted"}
    await documents.mark(
        version, state=DocumentState.FAILED, phase="parse", progress=0.2, error=error
    )
    failed = await there(documents, ref)
    assert (failed.state, failed.error, failed.searchable) == (DocumentState.FAILED, error, False)

    assert await documents.accept(upload_of(ref, "same")) == (failed, False)
    again = await documents.accept(upload_of(ref, "same", retry=True))
    assert again.new
    assert (await documents.accept(upload_of(ref, "same", retry=True))).new is False, (
        "it is under way"
    )
    assert (again.document.state, again.document.error) == (DocumentState.PROCESSING, None)


async def test_failed_second_version_leaves_the_first_to_be_found(documents: DocumentStore) -> None:
    ref = ref_of("a")
    await add(documents, ref, "sun")
    version = await accept(documents, ref, "new")
    await documents.stage(version, staged_of(["moon"]))
    await documents.mark(version, state=DocumentState.FAILED, phase="embed", progress=0.5)

    assert texts(await find(documents, "sun moon")) == ["sun"]
    assert (await there(documents, ref)).searchable


async def test_publishing_without_all_vectors_is_refused(documents: DocumentStore) -> None:
    version = await accept(documents, ref_of("a"))
    await documents.stage(version, staged_of(["sun", "moon"]))
    missing = await documents.to_embed(version, MODEL)
    assert missing is not None
    await documents.put_vectors(TENANT, MODEL, {missing[0].hash: vector_of("sun")})

    with pytest.raises(PenstockError, match="1 chunks of a have no vector"):
        await documents.publish(version, MODEL)
    assert texts(await find(documents, "sun")) == []
    assert await documents.to_embed(version, MODEL) == missing[1:]


async def test_text_that_was_embedded_before_is_not_embedded_again(
    documents: DocumentStore,
) -> None:
    await add(documents, ref_of("a"), "sun", "moon")
    version = await accept(documents, ref_of("b"), "other")
    await documents.stage(version, staged_of(["moon", "rain", "rain"]))
    missing = await documents.to_embed(version, MODEL)
    assert missing is not None
    assert [one.text for one in missing] == ["rain"]
    other = await documents.to_embed(version, "toy-2")
    assert other is not None
    assert [one.text for one in other] == ["moon", "rain"], "by another model all are new"


async def test_vectors_of_another_tenant_are_not_reused(documents: DocumentStore) -> None:
    """Whether somebody else has the same text is nobody's business."""
    await add(documents, ref_of("a"), "sun")
    version = await accept(documents, ref_of("a", tenant="other"))
    await documents.stage(version, staged_of(["sun"]))
    missing = await documents.to_embed(version, MODEL)
    assert missing is not None
    assert [one.text for one in missing] == ["sun"]


async def test_a_tenant_finds_only_its_own(documents: DocumentStore) -> None:
    await add(documents, ref_of("a", tenant="ada"), "sun of ada")
    await add(documents, ref_of("a", tenant="bob"), "sun of bob")

    for tenant in ("ada", "bob"):
        found = await find(documents, "sun", tenant=tenant)
        assert texts(found) == nearest(found) == [f"sun of {tenant}"]
        assert [one.ref.tenant for one in await documents.documents(tenant)] == [tenant]
    assert await documents.documents("eve") == []
    assert await documents.get(ref_of("a", tenant="eve")) is None
    assert await documents.delete(ref_of("a", tenant="eve")) is None


async def test_search_is_narrowed_by_collection_document_and_metadata(
    documents: DocumentStore,
) -> None:
    for name, collection, metadata in (
        ("one", "red", {"year": 2024, "tag": "x"}),
        ("two", "red", {"year": 2025, "tag": "x"}),
        ("three", "blue", {"year": 2025, "deep": {"a": [1]}, "地域: [x]": "서울 é"}),
    ):
        ref = ref_of(name, collection=collection)
        await add(documents, ref, f"sun {name}", metadata=metadata)

    async def names(**filters: object) -> set[str]:
        found = await find(documents, "sun", **filters)  # type: ignore[arg-type]
        assert set(texts(found)) == set(nearest(found))
        return {text.split()[1] for text in texts(found)}

    assert await names() == {"one", "two", "three"}
    assert await names(collections=["red"]) == {"one", "two"}
    assert await names(collections=["red", "blue"]) == {"one", "two", "three"}
    assert await names(collections=[]) == set()
    assert await names(collections=["green"]) == set()
    assert await names(documents=["two", "three"]) == {"two", "three"}
    assert await names(metadata={"year": 2025}) == {"two", "three"}
    assert await names(metadata={"year": 2025, "tag": "x"}) == {"two"}
    assert await names(metadata={"deep": {"a": [1]}}) == {"three"}
    assert await names(metadata={"地域: [x]": "서울 é"}) == {"three"}
    assert await names(metadata={"year": "2025"}) == set()
    assert await names(collections=["blue"], metadata={"year": 2025}) == {"three"}


async def test_what_another_process_publishes_and_deletes_is_seen_by_the_next_search(
    place: Place, documents: DocumentStore
) -> None:
    await add(documents, ref_of("a"), "sun", "sun leaf")
    assert len(nearest(await find(documents, "sun"))) == 2
    async with place.open() as other:
        await add(other, ref_of("b"), "sun rain", "sun snow")
        found = await find(documents, "sun")
        assert sorted(texts(found)) == sorted(nearest(found))
        assert len(nearest(found)) == 4
        await add(other, ref_of("a"), "sun tide")
        assert sorted(nearest(await find(documents, "sun"))) == ["sun rain", "sun snow", "sun tide"]
        await other.delete(ref_of("b"))
        found = await find(documents, "sun")
        assert texts(found) == nearest(found) == ["sun tide"]


async def test_search_while_others_publish_sees_one_version_by_text_and_vector(
    place: Place, documents: DocumentStore
) -> None:
    ref, size = ref_of("a"), 7
    done = asyncio.Event()
    seen: set[str] = set()

    async def publishing(other: DocumentStore) -> None:
        version = 0
        while version < 20 or len(seen) <= 2:  # on a busy machine searches take their time
            await add(other, ref, *(f"sun v{version} c{n}" for n in range(size)))
            version += 1
        done.set()

    async def looking() -> None:
        while not done.is_set():
            found = await find(documents, "sun")
            versions = {text.split()[1] for text in (*texts(found), *nearest(found))}
            assert len(versions) <= 1
            assert len(found.text) == len(found.vector) == size * len(versions)
            seen.update(versions)

    async with place.open() as other, asyncio.TaskGroup() as group:
        for work in (looking(), looking(), publishing(other)):
            group.create_task(work)


async def test_many_changes_in_any_order_leave_what_is_there(documents: DocumentStore) -> None:
    """The vectors in memory follow by increments; they must not drift from what is stored."""
    alive: dict[str, str] = {}
    for step in range(60):
        name = f"d{step * 7 % 13}"
        if step % 5 == 4:
            await documents.delete(ref_of(name))
            alive.pop(name, None)
        else:
            await add(documents, ref_of(name), f"sun {name} {step}")
            alive[name] = f"sun {name} {step}"
        if step % 3 == 0:
            found = await find(documents, "sun", limit=100)
            assert sorted(texts(found)) == sorted(nearest(found)) == sorted(alive.values())


async def test_best_come_first_and_no_more_than_asked_for(documents: DocumentStore) -> None:
    await add(documents, ref_of("a"), *(["sun"] * 1 + ["sun moon", "sun moon rain", "tide"]))
    found = await find(documents, "sun", limit=2)
    assert nearest(found) == ["sun", "sun moon"]
    assert len(texts(found)) == 2
    scores = [hit.score for hit in found.vector]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "query", ['"', "a OR b", "NEAR(x y)", "*", "(", "terms:sun", "-sun", "'; DROP TABLE"]
)
async def test_no_query_is_a_mistake(documents: DocumentStore, query: str) -> None:
    await add(documents, ref_of("a"), "sun")
    scope = Scope(TENANT)
    found = await documents.find(wanted(scope, [query], vector_of("sun")))
    assert nearest(found) == ["sun"]


async def test_search_without_terms_or_without_a_vector(documents: DocumentStore) -> None:
    await add(documents, ref_of("a"), "sun")
    neither = await documents.find(wanted(Scope(TENANT), [], None))
    assert (neither.text, neither.vector) == ([], [])
    text = await documents.find(wanted(Scope(TENANT), ["sun"], None))
    assert (len(text.text), len(text.vector)) == (1, 0)


async def test_vector_of_another_length_is_a_clear_error(documents: DocumentStore) -> None:
    await add(documents, ref_of("a"), "sun")
    with pytest.raises(PenstockError, match="3 dimensions"):
        await documents.find(wanted(Scope(TENANT), [], b"\0" * 12))


async def test_documents_are_listed_newest_first_page_by_page(documents: DocumentStore) -> None:
    for n in range(5):
        await accept(documents, ref_of(f"d{n}", collection="even" if n % 2 == 0 else "odd"))
    await add(documents, ref_of("d1", collection="odd"), "sun")

    listed = await documents.documents(TENANT, limit=3)
    assert [one.ref.id for one in listed] == ["d1", "d4", "d3"]
    rest = await documents.documents(TENANT, before=listed[-1].generation)
    assert [one.ref.id for one in rest] == ["d2", "d0"]
    even = await documents.documents(TENANT, collection="even")
    assert [one.ref.id for one in even] == ["d4", "d2", "d0"]
    done = await documents.documents(TENANT, states=[DocumentState.COMPLETED])
    assert [one.ref.id for one in done] == ["d1"]


async def test_collections_are_named_and_so_are_those_that_have_a_document(
    documents: DocumentStore,
) -> None:
    assert await documents.collections(TENANT) == []
    for name, collection in (("a", "mills"), ("b", "mills"), ("a", "weirs"), ("c", "")):
        await accept(documents, ref_of(name, collection=collection))
    await accept(documents, ref_of("a", tenant="other", collection="theirs"))
    assert await documents.collections(TENANT) == ["", "mills", "weirs"]
    assert await documents.collections(TENANT, "a") == ["mills", "weirs"]
    assert await documents.collections(TENANT, "c") == [""]
    assert await documents.collections(TENANT, "theirs") == []
    await documents.delete(ref_of("a", collection="weirs"))
    assert await documents.collections(TENANT) == ["", "mills"]


async def test_staging_again_after_a_crash_replaces_what_was_staged(
    documents: DocumentStore,
) -> None:
    version = await accept(documents, ref_of("a"))
    await documents.stage(version, staged_of(["sun", "moon"]))
    assert await publish(documents, version, "rain")
    assert [chunk.text for chunk in await documents.chunks(version.ref)] == ["rain"]


async def test_publishing_twice_is_harmless(documents: DocumentStore) -> None:
    version = await add(documents, ref_of("a"), "sun")
    assert await documents.publish(version, MODEL)
    found = await find(documents, "sun")
    assert texts(found) == nearest(found) == ["sun"]


async def test_uploads_of_many_at_once_take_generations_of_their_own(
    documents: DocumentStore,
) -> None:
    versions = await asyncio.gather(*(accept(documents, ref_of(f"d{n}")) for n in range(50)))
    assert len({version.generation for version in versions}) == 50


async def test_document_without_text_can_be_published_and_deleted(documents: DocumentStore) -> None:
    version = await accept(documents, ref_of("a"))
    assert await publish(documents, version)
    assert (await there(documents, version.ref)).chunks == 0
    assert await documents.text(version.ref) == ""
    assert await documents.delete(version.ref) is not None


async def test_terms_are_chosen_by_how_many_chunks_hold_them(documents: DocumentStore) -> None:
    await add(documents, ref_of("a"), "sun", "sun moon", "sun moon rain")
    told: list[tuple[dict[str, int], int]] = []

    def rarest(frequencies: Mapping[str, int], total: int) -> list[str]:
        told.append((dict(frequencies), total))
        return ["rain"]

    found = await documents.find(
        DocumentQuery(Scope(TENANT), ["sun", "moon", "rain", "snow"], rarest, None, MODEL, 10)
    )
    assert texts(found) == ["sun moon rain"]
    assert told == [({"sun": 3, "moon": 2, "rain": 1}, 3)]
