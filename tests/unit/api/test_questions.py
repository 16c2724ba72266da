"""Answers of a form: what the person leaves alone is left to the type."""

import pytest

from penstock.api.questions import filled
from penstock.errors import ValidationError
from penstock.model.question import check_answer

SCHEMA = {
    "type": "object",
    "properties": {
        "gift": {"type": "boolean", "default": True},
        "sure": {"type": "boolean"},
        "boxes": {"type": "integer"},
    },
    "required": ["sure"],
}


def test_empty_fields_are_left_out() -> None:
    empty = {"answer.gift": [""], "answer.boxes": [" "]}
    assert filled(SCHEMA, {**empty, "answer.sure": ["true"]}) == {"sure": True}
    assert filled(SCHEMA, {"answer.gift": ["false"]}) == {"gift": False}
    with pytest.raises(ValidationError, match="sure is missing"):
        check_answer(SCHEMA, filled(SCHEMA, empty))
