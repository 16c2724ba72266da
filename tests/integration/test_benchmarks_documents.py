"""Benchmarks of documents: we are measured, and a peer that is not there is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.documents import hundred, search, shelf, speed, texts
from benchmarks.report import Result, Verdict
from benchmarks.served import peers
from benchmarks.sizes import TINY
from penstock.documents.tokens import count_tokens

SMALL = replace(TINY, documents=3, pdfs=1, chunks=100, questions=3)


def by_name(results: list[Result]) -> dict[str, Result]:
    return {result.what: result for result in results}


def test_documents_are_measured_where_the_peer_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "versions", dict)
    found = by_name(speed.run(SMALL, tmp_path))
    for store in ("stored in files", "stored in PostgreSQL"):
        rate = found[f"documents made searchable, {store}"]
        assert rate.ours is not None
        assert rate.ours.value > 0
        assert rate.peers["LlamaIndex"] == "not measured: not installed"
        assert rate.verdict is Verdict.NOT_MEASURED
        spent = found[f"processor time a document, {store}"].ours
        assert spent is not None
        assert spent.value > 1
        peak = found[f"memory of all processes at its peak, {store}"].ours
        assert peak is not None
        assert peak.value > 50, "a parser's child is counted, too"
    in_memory = found["documents made searchable, LlamaIndex in memory only"]
    assert in_memory.verdict is Verdict.NO_TARGET, "it keeps nothing: no target is judged by it"


def test_ten_times_as_many_pdfs_are_completed(tmp_path: Path) -> None:
    found = by_name(hundred.run(SMALL, tmp_path))
    every = found["completed of 10 times as many"]
    assert every.ours is not None
    assert every.ours.value == 10
    memory = found["memory with 10 times the documents"]
    assert memory.ours is not None
    assert memory.ours.value > 0.5
    course = memory.series["10 documents"]
    assert all(megabytes > 50 for _, megabytes in course)
    assert [documents for documents, _ in course] == sorted(documents for documents, _ in course)


def test_search_is_measured_in_every_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "EMBEDDED", 2)
    results = search.run(SMALL, tmp_path)
    assert len(results) == 6, "p50 and p99: quiet, filtered, beside ingestion"
    assert all(result.ours is not None and result.ours.value > 0 for result in results)


@pytest.mark.parametrize("number", range(3))
def test_made_up_documents_are_as_long_as_they_are_said_to_be(number: int) -> None:
    writer = texts.Writer(texts.languages()[number], 1)
    assert count_tokens(texts.markdown(writer)) == pytest.approx(5000, rel=0.1)
    assert (
        texts.Writer(texts.languages()[number], 1).question()
        == texts.Writer(texts.languages()[number], 1).question()
    )
