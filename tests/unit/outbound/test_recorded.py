"""What a receipt is told of a request and of its answer."""

import pytest

from penstock.outbound.recorded import request_of
from penstock.ports.receipts import Usage, usage_in

VECTORS = b'{"data": [{"embedding": [0.5, 0.25]}], "model": "usage", '


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        (VECTORS + b'"usage": {"prompt_tokens": 9, "total_tokens": 9}}', Usage(9)),
        (
            b'{"usage" : {"prompt_tokens":3,"cost":0.5,"details":{"cached":1}},"a":1}',
            Usage(3, None, 0.5),
        ),
        (VECTORS + b'"usage": null}', Usage()),
        (VECTORS[:-2] + b"}", Usage()),
        (b'{"says": "\\"usage\\": {\\"prompt_tokens\\": 7}"}', Usage()),
        (b'"usage": {"prompt_tokens": 1', Usage()),
        (b'"usage"' + b"[" * 5000, Usage()),
        (b"", Usage()),
    ],
)
def test_tokens_are_told_without_reading_the_whole_answer(body: bytes, usage: Usage) -> None:
    assert usage_in(body) == usage


def test_keys_in_headers_and_parameters_are_no_part_of_a_request() -> None:
    def request(key: str, query: str) -> object:
        headers = {"authorization": f"Bearer {key}", "accept": "text/plain"}
        params = {"api_key": key, "search": query}
        return request_of("GET", "http://a.example/", "a", {"headers": headers, "params": params})

    assert request("one", "rain") == request("two", "rain")
    assert request("one", "rain") != request("one", "snow")
