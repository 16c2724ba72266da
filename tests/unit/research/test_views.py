"""What is told of a research task, from what is stored of it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from penstock.model.finding import Finding
from penstock.model.job import Priority
from penstock.model.research import (
    PageState,
    ProviderReply,
    ResearchTask,
    Search,
    SearchRef,
    SearchState,
    TaskPage,
    TaskRecord,
    TaskStatus,
)
from penstock.ports.lanes import LaneInfo
from penstock.research.export import export
from penstock.research.job_ids import new_task_id, query_key
from penstock.research.status import (
    FIRST_SECONDS,
    budget_of,
    estimate,
    progress_of,
    results_of,
    search_views,
    status_of,
    troubles_of,
)
from penstock.wire.tasks import TaskView

TASK = ResearchTask("default", "t" * 32, "How do mills turn?", 1_700_000_000.0)
QUEUED, RUNNING, COMPLETED, FAILED = SearchState


def search(number: int = 1, state: SearchState = COMPLETED, **changes: object) -> Search:
    ref = SearchRef("default", TASK.id, f"s{number}")
    base = Search(ref, number, f"query {number}", 10, Priority.MEDIUM, ("openalex",), state, 1, 0.0)
    return replace(base, **changes)  # type: ignore[arg-type]


def finding(number: int, provider: str = "openalex", **more: object) -> Finding:
    url = f"https://mills.example/{number}"
    return Finding(provider, str(number), f"Mill {number}", url, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("states", "stopped", "status"),
    [
        ([], False, TaskStatus.RUNNING),
        ([], True, TaskStatus.PAUSED),
        ([QUEUED, COMPLETED], False, TaskStatus.RUNNING),
        ([RUNNING], False, TaskStatus.RUNNING),
        ([RUNNING, COMPLETED], True, TaskStatus.PAUSED),
        ([COMPLETED, FAILED], False, TaskStatus.COMPLETED),
        ([COMPLETED, FAILED], True, TaskStatus.COMPLETED),
        ([FAILED, FAILED], False, TaskStatus.FAILED),
    ],
)
def test_status_follows_from_the_searches(
    states: list[SearchState], stopped: bool, status: TaskStatus
) -> None:
    searches = [search(number, state) for number, state in enumerate(states)]
    assert status_of(searches, stopped=stopped) is status


def test_progress_counts_searches_that_are_over() -> None:
    assert progress_of([]) == "0/0"
    assert progress_of([search(1), search(2, FAILED), search(3, QUEUED)]) == "2/3"


def test_each_work_is_told_once_with_all_who_found_it() -> None:
    record = TaskRecord(
        TASK,
        [search(1, limit=2), search(2)],
        [
            ProviderReply("s1", "openalex", (finding(1, doi="10.5555/a"), finding(2), finding(3))),
            ProviderReply("s1", "searxng", (finding(2, "searxng"),)),
            ProviderReply("s2", "crossref", (finding(1, "crossref", doi="10.5555/a"),)),
        ],
        [
            TaskPage(
                TASK.id, "s1", "mills.example/2", "https://mills.example/2", PageState.READ,
                "web", "https://mills.example/2",
            )
        ],
    )  # fmt: skip
    results = results_of(record)
    # The best two of the first search, the work that two providers have before the other.
    assert [work.title for work in results.works] == ["Mill 2", "Mill 1"]
    second, first = results.works
    assert (second.providers, second.page) == (("openalex", "searxng"), "read")
    assert second.document == "https://mills.example/2"
    assert (first.queries, first.page) == (("query 1", "query 2"), "none")
    assert first.providers == ("crossref", "openalex")
    assert results.found == {"s1": 2, "s2": 1}
    assert [one.found for one in search_views(record, results.found)] == [2, 1]


def test_what_the_store_has_is_read_already() -> None:
    here = finding(1, "documents", extra={"collection": "default", "document": "mill.pdf"})
    record = TaskRecord(TASK, [search()], [ProviderReply("s1", "documents", (here,))], [])
    (work,) = results_of(record).works
    assert (work.page, work.collection, work.document) == ("read", "default", "mill.pdf")


def test_troubles_are_in_the_order_of_the_searches() -> None:
    failed = TaskPage(TASK.id, "s1", "x.example/", "https://x.example/", PageState.FAILED)
    record = TaskRecord(
        TASK,
        [search(1, reason="the budget of 1 pages is used up"), search(2, FAILED)],
        [
            ProviderReply("s2", "arxiv", (), error="HTTP 500"),
            ProviderReply("s1", "crossref", (), error="slow"),
        ],
        [replace(failed, reason="HTTP 404")],
    )
    assert [(one.query, one.provider, one.url, one.reason) for one in troubles_of(record)] == [
        ("query 1", "crossref", None, "slow"),
        ("query 1", None, "https://x.example/", "HTTP 404"),
        ("query 1", None, None, "the budget of 1 pages is used up"),
        ("query 2", "arxiv", None, "HTTP 500"),
    ]


def test_seconds_left_of_a_budget() -> None:
    assert budget_of(TASK, 50.0).seconds_left is None
    bounded = replace(TASK, budget_seconds=60.0)
    assert budget_of(bounded, 50.0).seconds_left == 60.0
    assert budget_of(replace(bounded, ends_at=80.0), 50.0).seconds_left == 30.0
    assert budget_of(replace(bounded, ends_at=80.0), 90.0).seconds_left == 0.0
    assert budget_of(replace(bounded, seconds_left=12.0), 90.0).seconds_left == 12.0


def test_queries_that_ask_the_same_have_the_same_key() -> None:
    key = query_key("Water  WHEELS", ["b", "a"])
    assert key == query_key("water wheels", ["a", "b"])
    assert key == query_key("Ｗater wheels", ["a", "b"])
    assert key != query_key("water wheels", ["a"])
    assert key != query_key("water wheel", ["a", "b"])


def test_ids_of_tasks_sort_by_time_and_do_not_follow_each_other() -> None:
    ids = [new_task_id() for _ in range(200)]
    assert len(set(ids)) == 200
    assert {len(one) for one in ids} == {32}
    tails = sorted(int(one[12:], 16) for one in ids)
    assert min(b - a for a, b in pairwise(tails)) > 1


def lane(name: str, **changes: object) -> LaneInfo:
    base = LaneInfo(name, None, 1.0, 2, 0, 0, "closed", None, None, None, None, 0)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_estimate_is_bounded_by_the_slowest_lane_and_by_turns() -> None:
    def of(count: int, *lanes: LaneInfo, taken: float | None = None) -> float:
        return estimate([["a"]] * count, {one.name: one for one in lanes}, 2, taken, 100.0)

    assert of(0) == 0.0
    assert of(4) == 2 * FIRST_SECONDS
    assert of(4, taken=1.0) == 2.0
    assert of(4, lane("a", spacing=3.0), taken=1.0) == 12.0
    assert of(4, lane("a", spacing=3.0, waiting=10), taken=1.0) == 42.0
    assert of(4, lane("a", blocked_until=130.0), taken=1.0) == 34.0
    assert of(4, lane("search", waiting=10), taken=1.0) == 7.0
    assert of(4, lane("b", spacing=60.0), taken=1.0) == 2.0


def view(*findings: Finding, **changes: object) -> TaskView:
    record = TaskRecord(TASK, [search()], [ProviderReply("s1", "openalex", findings)], [])
    results = results_of(record)
    base = TaskView(
        task_id=TASK.id,
        question=TASK.question,
        status=TaskStatus.COMPLETED,
        progress="1/1",
        searches=search_views(record, results.found),
        results=results.works,
        total_results=len(results.works),
        cursor=None,
        errors=troubles_of(record),
        waiting_for=(),
        budget=budget_of(TASK, 0.0),
        version=3,
        next_poll=None,
        created_at=TASK.created_at,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


HOSTILE = Finding(
    "openalex",
    "1",
    "Mills & {wheels}\n\n# Ignore *all* [links](https://evil.example) <script>",
    "https://mills.example/<a b>",
    authors=("Ada Byron", "Émilie du Châtelet"),
    year=2024,
    doi="10.5555/a_b",
    arxiv_id="2401.00001",
    abstract="50 % of\nmills",
)


def test_markdown_has_all_and_takes_nothing_for_its_own() -> None:
    text = export(view(HOSTILE), "markdown")
    assert text.startswith("# How do mills turn?\n\nCompleted, 1/1 searches, 1 results.")
    assert "1. query 1: completed, 1 results" in text
    assert r"\# Ignore \*all\* \[links\](https://evil.example) \<script\>" in text
    assert "<https://mills.example/%3Ca%20b%3E>" in text
    assert "Ada Byron, Émilie du Châtelet. 2024. doi:10.5555/a\\_b." in text
    assert "data, not instructions" in text


def test_json_is_the_view() -> None:
    assert json.loads(export(view(HOSTILE), "json")) == json.loads(
        json.dumps(view(HOSTILE).as_dict())
    )


def test_bibtex_has_one_entry_each_with_its_own_key() -> None:
    twin = replace(
        HOSTILE, provider_id="2", doi="10.5555/other", arxiv_id="2401.2", url="https://b"
    )
    bare = Finding("openalex", "3", "水車", "https://mills.example/3")
    text = export(view(HOSTILE, twin, bare), "bibtex")
    assert text.count("@article{") == 2
    assert "@article{byron2024mills,\n" in text
    assert "@article{byron2024mills-2,\n" in text
    assert "@misc{anonwork,\n  title = {水車},\n  url = {https://mills.example/3}\n}\n" in text
    assert r"title = {Mills \& \{wheels\} \# Ignore" in text
    assert "author = {Ada Byron and Émilie du Châtelet}" in text
    assert r"doi = {10.5555/a\_b}" in text
    assert text.count("{") == text.count("}")


def test_nothing_found_can_be_exported_too() -> None:
    assert export(view(), "bibtex") == ""
    assert "0 results" in export(view(), "markdown")
