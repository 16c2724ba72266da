"""A tiny spaCy pipeline that knows some names by heart: no model can be had without a network."""

from __future__ import annotations

from pathlib import Path

PERSON, PLACE, FIRM = "Jane Canary", "Seoul", "Penstock Works"
KOREAN = "카나리아"
KNOWN = {"PERSON": PERSON, "GPE": PLACE, "ORG": FIRM, "PS": KOREAN, "CARDINAL": "seven"}
"""spaCy's label -> what is found under it."""


def make_model(folder: Path) -> str:
    """A model in a folder, as `nlp.to_disk` writes it."""
    import spacy

    pipeline = spacy.blank("xx")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns(  # type: ignore[attr-defined]
        [{"label": label, "pattern": name} for label, name in KNOWN.items()]
    )
    pipeline.to_disk(folder)
    return str(folder)
