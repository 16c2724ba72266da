"""POST /v1/jobs/ID/signals."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.model.access import KeyScope
from penstock.model.ids import new_id
from tests.support.app_api import Site, site_in


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:
        yield site


async def payloads(site: Site, job_id: str) -> list[str]:
    """What the job has been told, in order: as it would take it."""
    rows = await site.app.queue.rows(  # type: ignore[attr-defined]
        "SELECT s.payload FROM penstock.signals AS s JOIN penstock.jobs AS j ON j.seq = s.job"
        " WHERE j.id = :id ORDER BY s.number",
        id=job_id,
    )
    return [payload for (payload,) in rows]


async def test_a_signal_is_stored_once_for_a_key(site: Site) -> None:
    job = await site.app.enqueue("work")
    url, body = f"/v1/jobs/{job.id}/signals", {"name": "go", "payload": {"n": 1}, "key": "k"}
    async with await site.client("default", KeyScope.WRITE) as client:
        first = await client.post(url, json=body)
        assert (first.status_code, first.json()) == (202, {"stored": True})
        assert (await client.post(url, json=body)).json() == {"stored": False}
        header = {"Idempotency-Key": "once"}
        other = {"name": "go", "payload": 2}
        again = [await client.post(url, json=other, headers=header) for _ in range(2)]
        assert [one.json() for one in again] == [{"stored": True}] * 2
        assert (await client.post(url, json={"name": "go"})).status_code == 202
        null = await client.post(url, json={"name": "go", "payload": None})
        assert (null.status_code, "cannot be None" in null.text) == (422, True)
        await site.app.cancel(job.id)
        assert (await client.post(url, json=body)).json() == {"stored": False}
    assert await payloads(site, job.id) == ['{"n":1}', "2", "true"]


async def test_jobs_that_are_finished_or_of_others_take_no_signals(site: Site) -> None:
    job = await site.app.enqueue("work")
    body = {"name": "go"}
    async with await site.client("others", KeyScope.WRITE) as client:
        assert (await client.post(f"/v1/jobs/{job.id}/signals", json=body)).status_code == 404
        assert (await client.post(f"/v1/jobs/{new_id()}/signals", json=body)).status_code == 404
    await site.app.cancel(job.id)
    async with await site.client("default", KeyScope.WRITE) as client:
        refused = await client.post(f"/v1/jobs/{job.id}/signals", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "job-ended")
        wrong = await client.post(f"/v1/jobs/{job.id}/signals", json={"name": ""})
        assert wrong.status_code == 422
    assert await payloads(site, job.id) == []
