"""Ids of jobs and processes."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import runtime
from penstock.model import ids
from penstock.model.ids import child_id, new_id, new_ids, new_ref


def test_ids_are_32_hex_digits() -> None:
    assert re.fullmatch("[0-9a-f]{32}", new_id())
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in new_ids(100))


def test_ids_are_unique_and_sorted_by_time() -> None:
    made = [each for _ in range(300) for each in (new_id(), *new_ids(7))]

    assert made == sorted(set(made))


def test_ids_of_many_threads_are_unique() -> None:
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: new_ids(50), range(200)))

    made = [each for batch in batches for each in batch]
    assert len(set(made)) == len(made) == 10_000
    assert all(batch == sorted(batch) for batch in batches)


def test_ids_sort_even_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    before = new_ids(3)
    monkeypatch.setattr(runtime, "now", lambda: now - 3600.0)
    after = new_ids(3)

    assert before + after == sorted({*before, *after})


def test_no_ids_are_none() -> None:
    assert new_ids(0) == []
    assert new_id() < new_id()


def test_ids_of_two_processes_differ_though_made_in_the_same_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "now", lambda: 4e9)
    made = set()
    for _ in range(100):
        monkeypatch.setattr(ids, "_last", 0)  # as in a fresh process
        made.add(new_id())

    assert len(made) == 100


def test_child_id_is_the_same_in_every_run_and_every_release() -> None:
    assert child_id("p", "thumb", '{"url":"x"}', 1) == "331773a96b6f08e11f4e80cec18a1dc5"


@given(
    st.lists(
        st.tuples(st.text(), st.text(), st.text(), st.integers(1, 9)), unique=True, max_size=20
    )
)
def test_other_children_have_other_ids(children: list[tuple[str, str, str, int]]) -> None:
    without_separator = [c for c in children if not any("\x1f" in part for part in c[:3])]

    assert len({child_id(*child) for child in without_separator}) == len(without_separator)


def test_permits_of_all_processes_have_names_of_their_own() -> None:
    refs = {new_ref() for _ in range(10_000)}
    assert len(refs) == 10_000
    assert all(-(2**53) < ref < 0 for ref in refs), "what a double holds exactly"
