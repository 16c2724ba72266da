"""Signals and reruns from the page of a job."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2 as httpx
import pytest

from penstock import JobContext
from penstock.model.access import KeyScope
from penstock.ports.steps import waits_for_signal
from tests.support.app_api import Site, site_in
from tests.support.waiting import until

OURS = {"Origin": "http://localhost"}
READ_WRITE = (KeyScope.READ, KeyScope.WRITE)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:

        @site.app.job("ask")
        async def ask(ctx: JobContext) -> dict[str, object]:
            plan = await ctx.step("plan", lambda: {"password": "hunter2", "pages": 2})
            await ctx.emit({"planned": True})
            answer = await ctx.wait_for("approved")
            return {"plan": plan["pages"], "answer": answer}

        yield site


async def waiting(site: Site) -> str:
    """A job that waits for its signal."""
    job = await site.app.enqueue("ask")

    async def waits() -> bool:
        return waits_for_signal(await site.app.get(job.id))

    async with site.app.running():
        await until(waits, "the job waits for its signal")
    return job.id


async def send(client: httpx.AsyncClient, job_id: str, **fields: str) -> httpx.Response:
    form = {"name": "approved", **fields}
    return await client.post(f"/jobs/{job_id}/signal", data=form, headers=OURS)


async def said(client: httpx.AsyncClient, answer: httpx.Response) -> str:
    """What the page says that an action leads to."""
    assert answer.status_code == 303
    page = await client.get(answer.headers["location"])
    assert page.status_code == 200
    return page.text


async def test_a_signal_from_the_page_reaches_the_job_and_is_logged(site: Site) -> None:
    job_id = await waiting(site)
    async with await site.client("default", *READ_WRITE) as client:
        page = (await client.get(f"/jobs/{job_id}")).text
        assert "Send signal" in page
        assert "hunter2" not in page
        assert page.index("<bdi>plan</bdi>") < page.index("planned")
        told = await said(client, await send(client, job_id, payload='{"by": "ops"}'))
        assert "Signal sent." in told
    await site.work()
    done = await site.app.get(job_id)
    assert done.result == {"plan": 2, "answer": {"by": "ops"}}
    async with await site.client() as admin:
        (action,) = (await admin.get("/v1/actions")).json()["actions"]
    assert (action["action"], action["subject"], action["outcome"]) == (
        "job.signal",
        job_id,
        "done",
    )
    assert action["detail"] == {"name": "approved", "stored": True}


async def test_a_signal_without_a_payload_tells_true(site: Site) -> None:
    job_id = await waiting(site)
    async with await site.client("default", *READ_WRITE) as client:
        await send(client, job_id, payload="  ")
    await site.work()
    assert (await site.app.get(job_id)).result == {"plan": 2, "answer": True}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"payload": "{by: ops}"}, "the payload is not JSON"),
        ({"payload": "null"}, "cannot be None"),
        ({"name": "other"}, "does not wait for it any more"),
    ],
)
async def test_what_is_refused_is_said_on_the_page_and_not_sent(
    site: Site, fields: dict[str, str], why: str
) -> None:
    job_id = await waiting(site)
    async with await site.client("default", *READ_WRITE) as client:
        told = await said(client, await send(client, job_id, **fields))
    assert "Signal not sent: " in told
    assert why in told
    assert waits_for_signal(await site.app.get(job_id))


async def test_a_second_press_is_refused_and_does_not_wait_for_the_next_wait(site: Site) -> None:
    job_id = await waiting(site)
    async with await site.client("default", *READ_WRITE) as client:
        await send(client, job_id)
        assert "does not wait for it any more" in await said(client, await send(client, job_id))
        await site.app.cancel(job_id)
        assert "Send signal" not in await said(client, await send(client, job_id))


async def test_who_may_not_is_offered_no_form_and_refused(site: Site) -> None:
    job_id = await waiting(site)
    async with await site.client("default", KeyScope.READ) as reader:
        assert "Send signal" not in (await reader.get(f"/jobs/{job_id}")).text
        assert (await send(reader, job_id)).status_code == 403
    async with await site.client("others", *READ_WRITE) as stranger:
        assert (await send(stranger, job_id)).status_code == 404
    async with await site.client("default", *READ_WRITE) as client:
        form, url = {"name": "approved"}, f"/jobs/{job_id}/signal"
        assert (await client.post(url, data=form)).status_code == 403  # from no page of ours
    assert waits_for_signal(await site.app.get(job_id))


async def test_a_rerun_from_a_step_takes_over_what_was_recorded_before(site: Site) -> None:
    job_id = await waiting(site)
    await site.app.signal(job_id, "approved", 1)
    await site.work()
    url = f"/jobs/{job_id}/rerun"
    async with await site.client("default", *READ_WRITE) as client:
        page = (await client.get(f"/jobs/{job_id}")).text
        assert '<option value="wait_for:approved">' in page
        wrong = await client.post(url, data={"from_step": "nothing"}, headers=OURS)
        assert "Not rerun: " in await said(client, wrong)
        sent = await client.post(url, data={"from_step": "wait_for:approved"}, headers=OURS)
        new = sent.headers["location"].removeprefix("/jobs/")
        assert "taken over" in await said(client, sent)
        again = await client.post(url, data={"from_step": ""}, headers=OURS)
    assert [step.name for step in await site.app.steps(new)] == ["plan"]
    assert await site.app.steps(again.headers["location"].removeprefix("/jobs/")) == []
