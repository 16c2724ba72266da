"""What people are not shown of payloads, results and errors."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.access import new_key
from penstock.model.job import Job, JobState, Record
from penstock.model.redact import HIDDEN, MAX_DEEP, NAMES, hidden, hidden_job

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc xyz.", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "name",
    [
        *("password", "PASSWORD", "db_password", "dbPassword", "user-password", "password_hash"),
        *("client_secret", "token", "access_token", "accessToken", "X-Auth-Token"),
        *("api_key", "API-Key", "apiKey", "x_api_key", "apikey", "OPENAI_API_KEY", "privateKey"),
        *("Authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "credentials"),
    ],
)
def test_value_under_a_secret_name_is_hidden_at_any_depth(name: str) -> None:
    for value in ("hunter2", 1234, ["a", "b"], {"user": "kim"}):
        told = {"deep": [{"er": {name: value, "url": "cat.jpg"}}]}
        assert hidden(told) == {"deep": [{"er": {name: HIDDEN, "url": "cat.jpg"}}]}
    assert hidden({name: None}) == {name: None}, "that there is none is no secret"


@pytest.mark.parametrize(
    "name", ["tokens", "max_tokens", "key", "monkey", "compass", "spinning", "author", "secretary"]
)
def test_value_under_a_harmless_name_is_shown(name: str) -> None:
    assert hidden({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://kim:hunter2@example.org/a", "https://***@example.org/a"),
        ("see postgresql://u:p%40ss@db:5432/x now", "see postgresql://***@db:5432/x now"),
        ("https://ghp_abc@example.org", "https://***@example.org"),
        ("https://a.example/?q=1&api_key=abc#x", "https://a.example/?q=1&api_key=***#x"),
        ("https://a.example/?access_token=abc&q=1", "https://a.example/?access_token=***&q=1"),
        ("Authorization: Bearer abc.D3f-ghi", "Authorization: Bearer ***"),
        ("mail kim@example.org", "mail kim@example.org"),
        ("https://example.org/@kim?q=a@b", "https://example.org/@kim?q=a@b"),
        ("basic dXNlcjpwYXNz", "basic ***"),
        ("a basic example, bearer bonds.", "a basic example, bearer bonds."),
    ],
)
def test_credentials_in_texts_are_hidden(text: str, shown: str) -> None:
    assert hidden({"text": text}) == {"text": shown}


def test_keys_of_the_server_are_hidden() -> None:
    _, secret = new_key("test")
    assert hidden(f"use {secret.reveal()}.") == "use pk_***."


def test_names_can_be_added() -> None:
    told = {"shoe_size": 44, "shoeSize": 44, "shoe": "left"}
    assert hidden(told, ["shoe_size"]) == {"shoe_size": HIDDEN, "shoeSize": HIDDEN, "shoe": "left"}


def test_what_lies_very_deep_is_hidden() -> None:
    value: Any = "bottom"
    for _ in range(900):
        value = [value]
    told = hidden(value)
    for _ in range(MAX_DEEP + 1):
        (told,) = told
    assert told == HIDDEN


@pytest.mark.parametrize("part", ["a.", "a-://", "?a", "basic ", "?token=", "pk_", "bearer aA"])
def test_time_follows_the_length_of_a_text(part: str) -> None:
    begun = time.process_time()
    hidden({"text": "://" + part * (1_000_000 // len(part))})
    assert time.process_time() - begun < 10


def test_all_of_a_job_is_looked_at() -> None:
    url = "https://kim:hunter2@example.org/"
    error = Record(type="Boom", message=f"cannot reach {url}", retryable=True)
    record = Record(attempt=1, outcome="failed", error=error, traceback=f"get({url!r})")
    job = Job(
        "id", "work", {"token": "hunter2", "url": url}, JobState.COMPLETED, message=url, error=error
    )
    job.result, job.history = {"cookie": "hunter2"}, [record]

    told = hidden_job(job)
    assert "hunter2" not in str(told.as_dict())
    assert told.error is not None
    assert told.error.type == "Boom"
    assert told.history[0].outcome == "failed"
    assert job.payload["token"] == "hunter2", "the job itself is as it was"


@given(JSON)
def test_what_holds_no_secret_is_as_it_was(value: Any) -> None:
    if not any(name.split()[0] in str(value).lower() for name in NAMES):
        assert hidden(value) == value
