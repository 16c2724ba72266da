"""API keys as plain data: what is made, what is shown, what is refused."""

import logging
from dataclasses import fields

import pytest

from penstock.errors import ValidationError
from penstock.model.access import ApiKey, KeyScope, Secret, hash_of, new_key


def test_a_secret_names_its_key_and_is_new_each_time() -> None:
    made = [new_key("ci") for _ in range(100)]
    assert all(secret.reveal().startswith(f"pk_{key.id}_") for key, secret in made)
    assert len({secret.reveal().rpartition("_")[2] for _, secret in made}) == 100
    assert all(len(secret.reveal().rpartition("_")[2]) == 52 for _, secret in made)


def test_a_secret_is_shown_nowhere_unless_revealed(caplog: pytest.LogCaptureFixture) -> None:
    key, secret = new_key("ci")
    with caplog.at_level(logging.INFO):
        logging.getLogger("test").info("%s %r %s", secret, {"secret": secret}, key)
    shown = f"{secret} {secret!r} {key!r} {caplog.text}"
    assert secret.reveal() not in shown
    assert secret.reveal().rpartition("_")[2] not in shown
    assert repr(Secret("x")) == "Secret(...)"


def test_a_key_holds_neither_secret_nor_hash() -> None:
    names = {field.name for field in fields(ApiKey)}
    assert not names & {"secret", "hash"}


def test_hashes_differ_for_different_secrets_also_for_what_is_no_text() -> None:
    assert hash_of("a") != hash_of("b")
    assert len(hash_of("\udc80")) == 64  # a header may hold any bytes


def test_scopes_are_read_and_write_unless_said() -> None:
    key, _ = new_key("ci")
    assert key.scopes == frozenset({KeyScope.READ, KeyScope.WRITE})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"name": ""}, "name is"),
        ({"name": "x" * 241}, "name is"),
        ({"name": "a\nb"}, "name is"),
        ({"name": "ci", "tenant": ""}, "tenant is"),
        ({"name": "ci", "scopes": []}, "needs scopes"),
        ({"name": "ci", "requests_per_minute": 0}, "from 1 up"),
    ],
)
def test_what_makes_no_key_is_refused(arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        new_key(**arguments)  # type: ignore[arg-type]
