"""Many clients at once: all are answered or told to come back, and nothing is lost.
`benchmarks/http.py` does the same for longer and tells the times."""

import asyncio

from tests.support.load_clients import run, settled
from tests.support.serve_process import Host

CLIENTS, SECONDS = 60, 3.0


async def test_under_load_all_are_answered_and_nothing_is_lost(host: Host) -> None:
    served = host.serve(requests_per_minute=1_000_000, head_seconds=120)
    tally = await asyncio.to_thread(run, served.url, CLIENTS // 2, SECONDS / 2)
    assert tally.asked > CLIENTS // 4, "many had their turn"
    assert tally.good + tally.refused == tally.asked, tally.statuses
    assert tally.good >= 0.95 * tally.asked, tally.statuses
    assert tally.ended == tally.streams, "every stream saw its end"
    documents = await settled(served.url)
    assert set(tally.documents) == set(documents), "what was accepted is there, and nothing else"
    assert {one["state"] for one in documents.values()} == {"completed"}
    assert all(one["searchable"] for one in documents.values()), "and can be found"
    done = served.stop()
    assert (done.code, "Traceback" in done.err) == (0, False), done.err


async def test_over_the_limits_the_rest_is_refused_honestly(host: Host) -> None:
    served = host.serve(requests_per_minute=60, max_queued=20, head_seconds=120)
    tally = await asyncio.to_thread(run, served.url, CLIENTS, SECONDS)
    assert tally.refused > 0, "the limits were met"
    assert tally.good > 0
    assert tally.good + tally.refused == tally.asked, tally.statuses
    assert tally.ended == tally.streams
    documents = await _later(served.url)
    assert set(tally.documents) == set(documents)


async def _later(url: str) -> dict[str, dict[str, object]]:
    """Once the limit allows to ask again."""
    while True:
        try:
            return await settled(url)
        except KeyError:  # a refusal has no documents
            await asyncio.sleep(1)
