"""Answers without a model cite the passages that answer, on our own questions."""

from pathlib import Path

from benchmarks import answers, retrieval
from benchmarks.report import Verdict
from benchmarks.sizes import TINY


def test_answers_without_a_model_meet_their_targets(tmp_path: Path) -> None:
    for result in answers.run(TINY, tmp_path):
        assert result.verdict in (Verdict.MET, Verdict.NO_TARGET), result


def test_labels_are_in_the_documents() -> None:
    for language in answers.LANGUAGES:
        rows = answers._lines(retrieval.DATA / "first" / f"documents.{language}.jsonl")
        texts = {row["id"]: row["text"] for row in rows}
        asked = answers.labelled(language)
        assert len(asked) >= 10
        for one in asked:
            (document,) = one.documents
            assert one.holds in texts[document]
