"""What a request has used is read from its answer, whatever that is."""

import pytest

from penstock.ports.bill import Bill


@pytest.mark.parametrize(
    "body",
    [
        b'[{"usage": "a list of anything"}]',
        b'"usage"',
        b'{"usage": ' + b"[" * 5000,
        b'{"usage": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    ],
    ids=["list", "text", "deep", "deep and large"],
)
def test_an_answer_that_is_of_something_else_is_no_trouble(body: bytes) -> None:
    bill = Bill()
    bill.read(body)
    assert (bill.spent, bill.cost, bill.model) == (None, None, "")
