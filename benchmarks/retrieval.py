"""How well documents are found: by words, by vectors, and by both.

`python -m benchmarks.retrieval [folder]` prints every figure for the sets in a folder and below it,
ours if none is named: `documents.<language>.jsonl` with lines {"id", "text"}, and
`questions.<name>.jsonl` with lines {"question", "relevant": [id]}. Questions named as a language
are put to its documents alone and to all; others, such as `cross`, to all documents and to those of
the answer's language alone. Ours are three sets, each with documents enough to be asked alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from rich.console import Console
from rich.table import Table

from benchmarks.report import AtLeast, Better, Figure, Result
from benchmarks.sizes import Sizes
from penstock.adapters.models.offline_embedder import OfflineEmbedder
from penstock.retrieval import stop_words
from penstock.retrieval.fusion import DEPTH, RankedHit, fuse
from penstock.retrieval.query import WeighedQuery, match_expression, query_terms, weigh
from penstock.retrieval.relevance import Cutoff, relevant
from penstock.retrieval.terms import FTS5_TOKENIZER, index_terms, script

DATA = Path(__file__).parent / "data" / "retrieval"
UNANSWERED = {
    "foreign to all documents": "unanswered.foreign.txt",
    "off the subject": "unanswered.off.txt",
    "near the subject": "unanswered.near.txt",
    "of both kinds, seen before": "unanswered.txt",
}
"""Files of questions, a line each, to which no document of ours has an answer. Near the subject:
there is a document about what they ask about, but it does not say what they ask. Foreign: there is
none about anything like it."""
OTHER_LANGUAGE = "other_language.jsonl"
"""Questions in German, French and Spanish that English documents answer."""
LANGUAGES = {"latin": "en", "han": "ja", "hangul": "ko"}
LOSS = 0.005
"""How much worse than the better of its parts fusion may be in nDCG@10."""
KEPT = 0.95
"""What of the vectors' nDCG@10 must be left for questions in another language."""
RESAMPLED = 1000
"""How often questions are drawn anew, to see how much a figure owes to them."""


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Task:
    """Questions and the documents they are put to."""

    name: str
    cross: bool
    """The questions are in another language than their answers."""
    documents: Sequence[Document]
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True)
class Figures:
    each: tuple[float, ...]
    """nDCG@10 of each question."""
    first: float
    """Share of questions with a relevant document in the first place."""
    ten: float
    """The same for the first ten."""

    @property
    def ndcg(self) -> float:
        return sum(self.each) / len(self.each)


class Vectors:
    """The vector of each text, computed once."""

    def __init__(self) -> None:
        self._embedder = OfflineEmbedder()
        self._known: dict[str, bytes] = {}

    def of(self, texts: Sequence[str]) -> numpy.ndarray:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            found = asyncio.run(self._embedder.embed(missing))
            self._known.update(zip(missing, found, strict=True))
        return numpy.frombuffer(b"".join(self._known[text] for text in texts), "<f4").reshape(
            len(texts), self._embedder.dimensions
        )

    def close(self) -> None:
        self._embedder.close()


class Corpus:
    """What a store does, in memory: FTS5 for the words, a matrix for the vectors."""

    def __init__(self, documents: Sequence[Document], vectors: Vectors) -> None:
        self._documents = documents
        self._terms = {document.id: set(index_terms(document.text)) for document in documents}
        self._scripts = [script(document.text) for document in documents]
        self._languages = {one.id: stop_words.language(one.text) for one in documents}
        self._vectors = vectors
        self._matrix = vectors.of([document.text for document in documents])
        self._database = sqlite3.connect(":memory:")
        self._database.execute(
            f'create virtual table chunks using fts5(scope, terms, tokenize="{FTS5_TOKENIZER}")'
        )
        self._database.execute("create virtual table vocabulary using fts5vocab(chunks, col)")
        self._database.executemany(
            "insert into chunks (rowid, scope, terms) values (?, '', ?)",
            [(at, " ".join(index_terms(doc.text))) for at, doc in enumerate(documents)],
        )

    def weigh(self, question: str) -> WeighedQuery:
        query = query_terms(question)
        rows = self._database.execute(
            "select term, doc from vocabulary where col = 'terms' and term in "
            f"({', '.join('?' * len(query.terms))})",
            query.terms,
        )
        return weigh(query, dict(rows.fetchall()), len(self._documents))

    def by_words(self, query: WeighedQuery) -> list[RankedHit]:
        expression = match_expression(query)
        if expression is None:
            return []
        rows = self._database.execute(
            "select rowid, -bm25(chunks, 0, 1) as score from chunks where chunks match ? "
            "order by score desc limit ?",
            (expression, DEPTH),
        )
        return [self._hit(at, score) for at, score in rows]

    def by_vectors(self, question: str) -> list[RankedHit]:
        scores = self._matrix @ self._vectors.of([question])[0]
        return [self._hit(int(at), float(scores[at])) for at in numpy.argsort(-scores)[:DEPTH]]

    def terms_of(self, id_: str) -> set[str]:
        return self._terms[id_]

    def language_of(self, id_: str) -> str:
        return self._languages[id_]

    def _hit(self, at: int, score: float) -> RankedHit:
        return RankedHit(self._documents[at].id, score, self._scripts[at])


def text(documents: Corpus, question: str) -> list[str]:
    return [hit.id for hit in documents.by_words(documents.weigh(question))]


def vector(documents: Corpus, question: str) -> list[str]:
    return [hit.id for hit in documents.by_vectors(question)]


def rrf(documents: Corpus, question: str) -> list[str]:
    """Reciprocal ranks with equal weights: what is usually done, for comparison."""
    scores: dict[str, float] = defaultdict(float)
    for ranking in (text(documents, question), vector(documents, question)):
        for rank, id_ in enumerate(ranking, 1):
            scores[id_] += 1 / (60 + rank)
    return sorted(scores, key=lambda id_: -scores[id_])


def hybrid(documents: Corpus, question: str, cutoff: Cutoff | None = None) -> list[str]:
    query = documents.weigh(question)
    ranked = fuse(documents.by_words(query), documents.by_vectors(question), query, 2 * DEPTH)
    looks = documents.terms_of, documents.language_of
    return [hit.id for hit in relevant(ranked, query, *looks, cutoff or Cutoff())]


Search = Callable[[Corpus, str], list[str]]
SEARCHES: tuple[Search, ...] = (text, vector, rrf, hybrid)


def tasks(folder: Path) -> list[Task]:
    documents = [
        Document(line["id"], path.name.split(".")[1], line["text"])
        for path in sorted(folder.rglob("documents.*.jsonl"))
        for line in _lines(path)
    ]
    language_of = {document.id: document.language for document in documents}
    languages = sorted(set(language_of.values()))
    asked: dict[str, list[Question]] = defaultdict(list)
    for path in sorted(folder.rglob("questions.*.jsonl")):
        asked[path.name.split(".")[1]] += [
            Question(line["question"], frozenset(line["relevant"])) for line in _lines(path)
        ]
    found = []
    for name, questions in sorted(asked.items()):
        cross = name not in languages
        for language in languages if cross else [name]:
            own = [q for q in questions if language in {language_of[id_] for id_ in q.relevant}]
            among = [document for document in documents if document.language == language]
            label = f"{name}, to {language} alone" if cross else f"{name}, alone"
            found.append(Task(label, cross, among, own))
        found.append(Task(f"{name}, to all", cross, documents, questions))
    return [task for task in found if task.questions]


def _lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measure(task: Task, vectors: Vectors) -> dict[str, Figures]:
    """The figures of every search, by its name."""
    documents = Corpus(task.documents, vectors)
    return {
        search.__name__: figures_of(
            [
                (search(documents, question.text)[:10], question.relevant)
                for question in task.questions
            ]
        )
        for search in SEARCHES
    }


def figures_of(answers: Sequence[tuple[list[str], frozenset[str]]]) -> Figures:
    """Of what was found for each question, the first ten, and what should have been."""
    return Figures(
        each=tuple(_ndcg(found, relevant) for found, relevant in answers),
        first=sum(bool(set(found[:1]) & relevant) for found, relevant in answers) / len(answers),
        ten=sum(bool(set(found) & relevant) for found, relevant in answers) / len(answers),
    )


def _ndcg(found: Sequence[str], relevant: frozenset[str]) -> float:
    gain = sum(1 / math.log2(at + 2) for at, id_ in enumerate(found) if id_ in relevant)
    return gain / sum(1 / math.log2(at + 2) for at in range(min(10, len(relevant))))


def target(task: Task, figures: dict[str, Figures]) -> float:
    if task.cross:
        return KEPT * figures["vector"].ndcg
    return max(figures["text"].ndcg, figures["vector"].ndcg) - LOSS


def margin(task: Task, figures: dict[str, Figures], low: float = 0.05) -> float:
    """By how much fusion passes its target, at least, in all but `low` of a thousand draws of as
    many questions, with replacement. What is better, text or vectors, is drawn anew too."""
    text, vector, hybrid = (
        numpy.array(figures[name].each) for name in ("text", "vector", "hybrid")
    )
    drawn = numpy.random.default_rng(1).integers(0, len(hybrid), (RESAMPLED, len(hybrid)))
    text, vector, hybrid = (each[drawn].mean(axis=1) for each in (text, vector, hybrid))
    least = KEPT * vector if task.cross else numpy.maximum(text, vector) - LOSS
    return float(numpy.quantile(hybrid - least, low))


@dataclass(frozen=True, slots=True)
class Found:
    """What questions without an answer find."""

    own: float
    """Share of them that find something in documents of their language ..."""
    every: float
    """... and in those of three languages."""
    passages: float
    """How many in those of their language, at most ten each."""


def found_without_answer(name: str, vectors: Vectors, cutoff: Cutoff) -> Found:
    """For the questions of one file of `UNANSWERED`."""
    every = next(task.documents for task in tasks(DATA) if task.name.endswith("to all"))
    corpora = {
        language: Corpus([one for one in every if one.language == language], vectors)
        for language in LANGUAGES.values()
    }
    questions = (DATA / UNANSWERED[name]).read_text(encoding="utf-8").splitlines()
    own = [
        len(hybrid(corpora[LANGUAGES[script(question)]], question, cutoff)[:10])
        for question in questions
    ]
    among = Corpus(every, vectors)
    anywhere = [bool(hybrid(among, question, cutoff)) for question in questions]
    return Found(sum(map(bool, own)) / len(own), sum(anywhere) / len(anywhere), sum(own) / len(own))


def found_in_another_language(vectors: Vectors, cutoff: Cutoff) -> float:
    """nDCG@10 of questions in another language of the same script than their answers."""
    every = next(task.documents for task in tasks(DATA) if task.name.endswith("to all"))
    documents = Corpus([one for one in every if one.language == "en"], vectors)
    return figures_of(
        [
            (hybrid(documents, line["question"], cutoff)[:10], frozenset(line["relevant"]))
            for line in _lines(DATA / OTHER_LANGUAGE)
        ]
    ).ndcg


def run(sizes: Sizes, folder: Path) -> list[Result]:
    vectors = Vectors()
    results = []
    for task in tasks(DATA):
        figures = measure(task, vectors)
        better = max(("text", "vector"), key=lambda name: figures[name].ndcg)
        results.append(
            Result(
                "hybrid search, own questions",
                f"{task.name}: {len(task.questions)} questions, {len(task.documents)} documents; "
                f"drawn anew {margin(task, figures):+.3f}",
                "nDCG@10",
                Figure.of("penstock", [figures["hybrid"].ndcg]),
                Figure.of(f"{better} alone", [figures[better].ndcg]),
                Better.MORE,
                AtLeast(round(target(task, figures), 4), "nDCG@10"),
                "At least the better of text and vectors less 0.005; across languages at least "
                "0.95 of vectors. Drawn anew: to the target, in 95 % of draws of as many questions "
                "at least.",
            )
        )
    vectors.close()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", default=DATA)
    folder = parser.parse_args().folder
    columns = (search.__name__ for search in SEARCHES)
    table = Table("questions", "n", *columns, "target", "", "drawn anew")
    vectors = Vectors()
    for task in tasks(folder):
        figures = measure(task, vectors)
        least, reached = target(task, figures), figures["hybrid"].ndcg
        cells = [f"{f.ndcg:.3f} ({f.first:.2f} {f.ten:.2f})" for f in figures.values()]
        verdict = "met" if reached >= least else "MISSED"
        drawn = f"{margin(task, figures):+.3f}"
        table.add_row(task.name, str(len(task.questions)), *cells, f"{least:.3f}", verdict, drawn)
    console = Console()
    console.print(table)
    if folder == DATA:
        unanswered = Table("questions without an answer", "own language", "all", "passages")
        for name in UNANSWERED:
            found = found_without_answer(name, vectors, Cutoff())
            unanswered.add_row(
                name, f"{found.own:.2f}", f"{found.every:.2f}", f"{found.passages:.1f}"
            )
        console.print(unanswered)
        with_cutoff, without = (
            found_in_another_language(vectors, cutoff) for cutoff in (Cutoff(), Cutoff(coverage=0))
        )
        console.print(
            f"in German, French and Spanish, of English documents: nDCG@10 {with_cutoff:.3f}, "
            f"without the cutoff {without:.3f}"
        )
    vectors.close()
    console.print("nDCG@10 (R@1 R@10); drawn anew: to the target, in 95 % of draws at least")


if __name__ == "__main__":
    main()
