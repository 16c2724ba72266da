"""Docstrings in the three styles say the same."""

import pytest

from penstock.text.docstrings import read_docstring

GOOGLE = """Price an
    item.

    It asks the supplier.

    Args:
        item (str): What it is called,
            in any language.
        pieces: How many: at most 10.

    Returns:
        The price.
    """
NUMPY = """Price an
    item.

    It asks the supplier.

    Parameters
    ----------
    item : str
        What it is called,
        in any language.
    pieces
        How many: at most 10.

    Returns
    -------
    float
        The price.
    """
SPHINX = """Price an
    item.

    It asks the supplier.

    :param str item: What it is called,
        in any language.
    :param pieces: How many: at most 10.
    :returns: The price.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_every_style_is_read(text: str) -> None:
    about, said = read_docstring(text)
    assert about == "Price an item.\n\nIt asks the supplier."
    assert said == {
        "item": "What it is called, in any language.",
        "pieces": "How many: at most 10.",
    }


def test_what_is_no_section_stays() -> None:
    assert read_docstring(None) == ("", {})
    assert read_docstring("Note: one thing.\nAnd: another.")[0] == "Note: one thing. And: another."
    text = "Do.\n\n    Args:\n        a: One.\n\n    After it."
    assert read_docstring(text) == ("Do.\n\nAfter it.", {"a": "One."})
