"""Names of people, places and organizations, found by language models: Presidio with spaCy.

A model reads a text in pieces that end at a line or sentence: its memory grows with the length of a
piece, it blocks the interpreter while it reads, and it handles one piece at a time.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from penstock.documents.pii.kinds import PiiSpan
from penstock.engine.run import current
from penstock.errors import ConfigError, JobTimeout
from penstock.model.name_masking import NamesConfig

PIECE = 5_000
"""Maximum characters that a model reads at a time."""
OVERLAP = 200
"""Maximum overlap of two pieces, in case a name was split."""

_KINDS = {"PERSON": "person", "LOCATION": "location", "ORGANIZATION": "organization"}
"""Presidio's name of each kind."""
_LABELS = {
    "PERSON": "PERSON PER PS persName",
    "LOCATION": "LOCATION LOC GPE FAC LC placeName geogName",
    "ORGANIZATION": "ORGANIZATION ORG OG orgName",
}
"""Names of each kind in spaCy's models: in most, and in the Korean and Polish ones."""
_ENDS = tuple(re.compile(end) for end in (r"\n\n", r"\n", r"[.!?]\s|[\u3002\uff01\uff1f]", r"\s"))
"""Places to split, best first."""
_BLANK = re.compile(r"\s")
_GLUE = re.compile(
    r"[/\\_]|\.(?=(?:pdf|docx?|pptx?|xlsx?|epub|html?|eml|md|csv|txt|json|xml|png|jpe?g)(?!\w))",
    re.IGNORECASE,
)
"""Separators between the words of a file name: a model would read them as one word."""


class _Loaded(NamedTuple):
    analyzer: Any
    languages: dict[str, Any]
    """language -> spaCy's pipeline"""
    entities: list[str]


class PresidioNames:
    """A finder, for `Masker`. ConfigError where the extra or a model is missing; the models are
    loaded when they are first needed, which takes seconds."""

    def __init__(self, config: NamesConfig) -> None:
        for package in ("presidio_analyzer", "spacy"):
            if find_spec(package) is None:
                raise ConfigError("masking names needs: pip install 'penstock[names]'")
        for model in config.models.values():
            if not _is_there(model):
                raise ConfigError(
                    f"names: there is no spaCy model {model!r}: `python -m spacy download {model}` "
                    "if that is its name, or give the folder it is in"
                )
        self._config = config
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def __call__(self, text: str) -> Iterator[PiiSpan]:
        for start, end in pieces(text):
            if not text[start:end].strip():
                continue
            run = current.get()
            if run is not None and run.left() <= 0:
                raise JobTimeout("the time limit was reached before all names were found")
            for span in self._find(_GLUE.sub(" ", text[start:end])):
                yield PiiSpan(start + span.start, start + span.end, span.kind)

    def _find(self, piece: str) -> list[PiiSpan]:
        found = []
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._config)
            analyzer, languages, entities = self._loaded
            for language, pipeline in languages.items():
                with pipeline.memory_zone():  # else it keeps every word it has ever seen
                    results = analyzer.analyze(piece, language, entities=entities)
                found += [PiiSpan(one.start, one.end, _KINDS[one.entity_type]) for one in results]
        return found


def pieces(text: str) -> Iterator[tuple[int, int]]:
    """Split a text into pieces that cover all of it. Only the end of a paragraph surely splits no
    name; after other cuts the next piece starts a little earlier, at the start of a word."""
    start = 0
    while len(text) - start > PIECE:
        end = _cut(text, start + PIECE // 2, start + PIECE)
        yield start, end
        start = end
        if not text.endswith("\n\n", 0, end):
            word = _BLANK.search(text, end - OVERLAP, end - 1)
            start = word.end() if word else end - OVERLAP
    yield start, len(text)


def _cut(text: str, least: int, most: int) -> int:
    """Find the best place to split in this range, after a break and as late as possible."""
    for pattern in _ENDS:
        last = None
        for match in pattern.finditer(text, least, most):
            last = match.end()
        if last is not None:
            return last
    return most


def _is_there(model: str) -> bool:
    if Path(model).exists():
        return True
    return model.isidentifier() and find_spec(model) is not None


def _load(config: NamesConfig) -> _Loaded:
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import SpacyRecognizer

    entities = [entity for entity, kind in _KINDS.items() if kind in config.kinds]
    mapping = {word: entity for entity, words in _LABELS.items() for word in words.split()}
    labels = NerModelConfiguration(model_to_presidio_entity_mapping=mapping)
    engine = SpacyNlpEngine(
        [{"lang_code": language, "model_name": model} for language, model in config.models.items()],
        labels,
    )
    try:
        engine.load()
    except (OSError, ValueError, ImportError) as error:
        models = ", ".join(config.models.values())
        raise ConfigError(f"names: cannot load {models}: {error}") from error
    languages = {language: engine.get_nlp(language) for language in config.models}
    known = {
        label
        for pipeline in languages.values()
        for names in pipeline.pipe_labels.values()
        for label in names
    }
    # It would log a line for each number, date and so on that it finds.
    labels.labels_to_ignore = sorted(known - set(mapping))
    registry = RecognizerRegistry(
        [
            SpacyRecognizer(supported_language=language, supported_entities=entities)
            for language in languages
        ],
        supported_languages=list(languages),
    )
    analyzer = AnalyzerEngine(registry, engine, supported_languages=list(languages))
    return _Loaded(analyzer, languages, entities)
