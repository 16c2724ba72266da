"""Tests of jobs, here without pytest: a queue of its own for each, a clock that is advanced, a
provider that fails, and a worker that dies. With pytest they are fixtures."""

import logging

from penstock import JobContext, Penstock
from penstock.testing import assert_enqueued, inline, own_queue, refute_enqueued

app = Penstock("sqlite:///shop.db")


@app.job("charge", max_retries=5)
async def charge(ctx: JobContext, order: str) -> int:
    async def ask() -> int:
        headers = {"Idempotency-Key": ctx.step_key}
        answer = await ctx.http.post(f"https://bank.example/{order}", headers=headers)
        return answer.status_code

    status: int = await ctx.step("ask", ask)
    await ctx.enqueue("thank", {"order": order}, delay=3600)
    return status


@app.job("thank")
def thank(ctx: JobContext, order: str) -> str:
    return f"thank you for your {order}"


def test_a_charge_is_asked_again_and_its_thanks_come_an_hour_later() -> None:
    with own_queue(app, clock=True) as own, app.sync() as q:
        own.provider.answers(429, retry_after=5)
        own.provider.down(for_=60)
        job = q.enqueue("charge", {"order": "book"})
        own.clock.advance(minutes=5)
        assert q.result(job.id) == 200
        refute_enqueued(thank, state="completed")
        own.clock.advance(hours=1)
        [thanks] = assert_enqueued(thank, {"order": "book"}, times=1, state="completed")
        print(thanks.result)


def test_a_charge_is_not_doubled_when_its_worker_dies() -> None:
    with own_queue(app, clock=True) as own, app.sync() as q:
        own.worker.killed_at("step:ask")  # the bank was asked, and nothing is recorded
        job = q.enqueue("charge", {"order": "lamp"})
        assert q.result(job.id) == 200
        assert q.get(job.id).attempts == 2
        keys = {request.headers["Idempotency-Key"] for request in own.provider.requests}
        print(f"{len(own.provider.requests)} requests, {len(keys)} key")
        assert len(keys) == 1


def test_a_job_runs_where_it_is_enqueued() -> None:
    with own_queue(app), inline(), app.sync() as q:
        assert q.enqueue("thank", {"order": "chair"}).result == "thank you for your chair"


if __name__ == "__main__":
    logging.getLogger("penstock").setLevel(logging.ERROR)  # it warns of the faults
    test_a_charge_is_asked_again_and_its_thanks_come_an_hour_later()
    test_a_charge_is_not_doubled_when_its_worker_dies()
    test_a_job_runs_where_it_is_enqueued()
