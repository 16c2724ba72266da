"""Which servers are used, how few connections are made, and what is left behind: nothing."""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from penstock import Penstock
from penstock.adapters.redis import RedisQueue
from penstock.adapters.redis.address import parse
from penstock.errors import ConfigError, PenstockError, QueueError, QueueUnavailable, QueueUnusable
from penstock.model.ids import new_id
from penstock.model.lane import LaneConfig
from penstock.ports.queue import JobFilter, KindDefaults, Outcome, Settlement, Topic, Want
from tests.conformance.support import claim, completed, exchange, failed, new_jobs, settle, want
from tests.support.database_servers import RedisServer, redis_url
from tests.support.waiting import PATIENCE, until

FLAVOURS = pytest.mark.parametrize("flavour", ["redis", "valkey"])


@contextmanager
def server(flavour: str = "redis", **settings: str) -> Iterator[RedisServer]:
    private = RedisServer(flavour, durable=False, **settings).start()
    try:
        yield private
    finally:
        private.remove()


def new_url(flavour: str = "redis") -> str:
    return f"{redis_url(flavour)}?namespace={new_id()}"


def client(url: str) -> Any:
    return redis.Redis.from_url(url.partition("?")[0], decode_responses=True)


def tag_of(url: str) -> str:
    return parse(url).tag


@FLAVOURS
async def test_server_that_keeps_jobs_in_memory_only_is_refused(flavour: str) -> None:
    with server(flavour, appendonly="no") as private:
        with pytest.raises(QueueUnusable, match="appendonly yes"):
            async with Penstock(private.url):
                pass
        async with Penstock(private.url, allow_volatile=True) as app:
            await app.enqueue("work")


async def test_server_that_evicts_jobs_is_refused() -> None:
    policy = {"maxmemory-policy": "allkeys-lru"}
    refused = pytest.raises(QueueUnusable, match="maxmemory-policy noeviction")
    with server(**policy) as private, refused:
        async with Penstock(private.url):
            pass


async def test_server_that_does_not_tell_its_settings_is_used_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with server() as private:
        with client(private.url) as admin:
            rules = ("on", ">secret", "~*", "&*", "+@all", "-info", "-config")
            admin.execute_command("ACL", "SETUSER", "worker", *rules)
        url = private.url.replace("redis://", "redis://worker:secret@")
        with caplog.at_level(logging.WARNING):
            async with Penstock(url) as app:
                await app.enqueue("work")
        (record,) = [r for r in caplog.records if "may lose jobs" in r.getMessage()]
        assert "secret" not in record.getMessage()


async def test_wrong_password_is_said_and_never_shown() -> None:
    with server(requirepass="right") as private:
        for login in ("", ":wrong@", "someone:wrong@"):
            url = private.url.replace("redis://", f"redis://{login}")
            with pytest.raises(QueueUnusable, match="refuses this login") as refusal:
                async with Penstock(url):
                    pass
            assert "wrong" not in str(refusal.value).replace("wrong number", "")
        url = private.url.replace("redis://", "redis://:right@")
        async with Penstock(url) as app:
            await app.enqueue("work")
            assert "right" not in app.queue.url


async def test_replica_is_refused_with_the_remedy() -> None:
    with server(replicaof="127.0.0.1 1") as private:
        async with Penstock(private.url) as app:
            with pytest.raises(QueueUnavailable, match="name the primary"):
                await app.enqueue("work")


async def test_full_memory_refuses_new_jobs_and_lets_running_ones_end() -> None:
    with server() as private:
        queue = RedisQueue(private.url)
        await queue.open()
        member = await queue.join(["work"], 10, 60.0)
        await queue.enqueue(new_jobs(3))
        leases = await claim(member, 2)
        with client(private.url) as admin:
            admin.config_set("maxmemory", "1mb")

        with pytest.raises(QueueUnavailable, match="is full; raise its maxmemory"):
            await queue.enqueue(new_jobs(1))

        answer = await exchange(member, completed(leases[0], '"done"'), failed(leases[1]))
        assert answer.stale == []
        assert await asyncio.to_thread(member.renew, {}, [])
        assert len(await claim(member)) == 1
        assert len(await queue.discard(JobFilter())) == 1
        await member.leave()
        await queue.close()


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("redis://localhost:no/0", "not one"),
        ("redis://localhost/zero", "names no database"),
        ("redis://localhost/0?namespace=", "namespace"),
        ("redis://localhost/0?namespace={a}", "namespace"),
        ("redis://localhost/0?namespace=a%20b", "namespace"),
        ("redis://localhost/0?colour=red", "not understood"),
        ("unix://", "names no socket"),
        ("rediss3://localhost", "no queue for 'rediss3'"),
    ],
)
def test_bad_url_is_refused_with_what_to_write(url: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Penstock(url)


async def test_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(QueueUnavailable, match="cannot reach redis://127") as refusal:
        async with Penstock("redis://user:secret@127.0.0.1:1/0"):
            pass
    assert "secret" not in str(refusal.value)


async def test_valkey_urls_and_namespaces_are_understood() -> None:
    plain = redis_url("valkey")
    ours = plain.replace("redis://", "valkey://")
    name = new_id()
    async with (
        Penstock(f"{ours}?namespace={name}") as app,
        Penstock(f"{plain}?namespace={name}") as same,
        Penstock(f"{plain}?namespace={name}x") as other,
    ):
        job = await app.enqueue("work")
        assert (await same.get(job.id)).id == job.id
        assert await other.jobs() == []


async def test_namespace_of_another_program_is_not_touched() -> None:
    url = new_url()
    with client(url) as admin:
        admin.set(f"{tag_of(url)}:ids", "theirs")
        async with Penstock(url) as app:
            with pytest.raises(QueueUnusable, match="another program"):
                await app.enqueue("work")


async def test_closed_queue_says_so() -> None:
    app = Penstock(new_url())
    with pytest.raises(QueueError, match="not open"):
        await app.enqueue("work")


@FLAVOURS
async def test_scripts_are_loaded_again_after_the_server_forgot_them(flavour: str) -> None:
    queue = RedisQueue(new_url(flavour))
    await queue.open()
    member = await queue.join(["work"], 10, 60.0)
    await queue.enqueue(new_jobs(1))
    with client(queue.url) as admin:
        admin.script_flush()
        await queue.enqueue(new_jobs(1))
        admin.script_flush()
        assert len(await claim(member)) == 2
        admin.script_flush()
        assert await asyncio.to_thread(member.renew, {}, [])
    await member.leave()
    await queue.close()


@FLAVOURS
async def test_process_makes_at_most_five_connections(flavour: str) -> None:
    names = ("api", "other")
    lanes = {name: {"min_interval_seconds": 0, "max_parallel": 50} for name in names}
    with server(flavour) as private, client(private.url) as admin:
        app = Penstock(private.url, max_workers=10, upkeep_seconds=0.05, lanes=lanes)
        most, named = 0, set[str]()

        @app.job("work", lane="api")
        async def work(ctx: Any) -> None:
            async with ctx.lanes.permit("other"):
                await asyncio.sleep(0.01)

        def others() -> int:
            clients = [one for one in admin.client_list() if one["cmd"] != "client|list"]
            # One that is being made has no name yet.
            assert {one["name"] for one in clients} <= {"", "penstock"}
            named.update(one["name"] for one in clients)
            return len(clients)

        async with app.running():
            jobs = await asyncio.gather(*(app.enqueue("work") for _ in range(100)))
            waits = [asyncio.ensure_future(app.wait(job.id, timeout=PATIENCE)) for job in jobs]
            while not all(wait.done() for wait in waits):
                await asyncio.gather(app.counts(), app.jobs(limit=5), app.lane_infos())
                most = max(most, others())
            await asyncio.gather(*waits)
        assert 4 <= most <= 5
        assert "penstock" in named
        await until(lambda: others() == 0, "the connections to be closed")


async def test_wakeups_come_back_after_their_connection_was_killed() -> None:
    url = new_url()
    async with Penstock(url, poll_seconds=60.0) as app:
        ready = app.queue.listen(Topic.READY)
        with client(url) as admin:
            for one in admin.client_list(_type="pubsub"):
                admin.client_kill(one["addr"])
        assert await ready.wait(PATIENCE), (
            "it rings after a reconnect: something may have been missed"
        )
        while await ready.wait(0.1):
            pass
        await app.enqueue("work")
        assert await ready.wait(PATIENCE)


async def end_everything(queue: RedisQueue) -> None:
    """Every way a job can end, with every thing it can have, in lanes and without."""
    member = await queue.join(["work", "laned"], 10, 60.0)
    both = Want(10, {kind: KindDefaults(30.0, 3) for kind in ("work", "laned")}, True, lanes=10)
    await queue.enqueue(new_jobs(2, keys=["a", "b"], log="paper", parent_id=new_id()))
    await queue.enqueue(new_jobs(6, kind="laned", lane="child", log="paper", tenant="t"))
    await queue.enqueue(new_jobs(2, run_at=time.time() + 100, deadline=time.time() + 200))
    leases = (await member.exchange([], [], both)).leases
    await queue.cancel(JobFilter(ids=[leases[0].id]))
    now = time.time()
    ends = [
        Settlement(leases[0], Outcome.CANCEL_SEEN),
        Settlement(leases[1], Outcome.HANDED_BACK, run_at=now + 50, waits_lane="far"),
        Settlement(leases[2], Outcome.RELEASED, run_at=now + 50, waits_lane="far"),
        Settlement(leases[3], Outcome.HANDED_BACK),
        *(completed(lease, '"result"') for lease in leases[4:6]),
        *(failed(lease) for lease in leases[6:]),
    ]
    await member.exchange(ends, [], None)
    await queue.cancel(JobFilter())
    await queue.redrive(JobFilter())
    while some := (await member.exchange([], [], both)).leases:
        await settle(member, *map(failed, some))
    await queue.discard(JobFilter())
    await member.leave()


@FLAVOURS
async def test_nothing_is_left_when_everything_is_over(flavour: str) -> None:
    def lane_config(name: str) -> LaneConfig:
        parent = "parent" if name == "child" else None
        return LaneConfig(min_interval_seconds=0.0, max_parallel=4, parent=parent)

    url = new_url(flavour)
    queue = RedisQueue(url, retention_seconds=0.0, lane_config=lane_config)
    await queue.open()
    await end_everything(queue)
    keeper = await queue.join(["work", "laned"], 10, 60.0)
    assert await claim(keeper) == []
    in_lanes = Want(0, {"laned": KindDefaults(30.0, 3)}, True, lanes=5)
    assert (await keeper.exchange([], [], in_lanes)).leases == []
    with client(url) as admin:
        for name in admin.zrange(f"{tag_of(url)}:lanes", 0, -1):
            admin.zincrby(f"{tag_of(url)}:lanes", -7200, name)
        await queue.retain()
        await queue.retain()  # a parent goes after its children
        await keeper.leave()
        keys = admin.scan_iter(f"{tag_of(url)}*", 10_000)
        # Feeds end by themselves, an hour after their last entry.
        left = {key.removeprefix(tag_of(url)) for key in keys if admin.ttl(key) < 0}

    assert left <= {":numbers", ":turns:"}, "counters, and whose turn it is"
    await queue.close()


async def test_slot_that_belongs_to_nobody_is_freed_and_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing makes such a slot; a lane must not be short of it for ever if something did."""
    queue = RedisQueue(new_url())
    await queue.open()
    member = await queue.join(["work"], 10, 60.0)
    await queue.enqueue(new_jobs(1, lane="api"))
    in_lanes = Want(0, {"work": KindDefaults(30.0, 3)}, True, lanes=5)
    assert len((await member.exchange([], [], in_lanes)).leases) == 1
    with client(queue.url) as admin:
        admin.sadd(f"{tag_of(queue.url)}:slots:api", "999 -1", "1 999")
    await queue.retain()

    (lane,) = await queue.lanes()
    assert lane.in_flight == 1, "the one in use stays"
    assert caplog.text.count("belonged to nobody") == 2
    await member.leave()
    await queue.close()


async def commands_of_a_claim(queue: RedisQueue, member: Any, wanted: Want) -> tuple[int, int]:
    """How many commands the server ran for one claim, and how many jobs it gave. The best of three:
    between the claims the server is asked whether it is there, now and then."""
    return min([await _commands_of_a_claim(queue, member, wanted) for _ in range(3)])


async def _commands_of_a_claim(queue: RedisQueue, member: Any, wanted: Want) -> tuple[int, int]:
    def commands() -> int:
        with client(queue.url) as admin:
            stats = admin.info("commandstats")
        ours = {
            k: v["calls"] for k, v in stats.items() if k not in ("cmdstat_info", "cmdstat_hello")
        }
        return sum(ours.values())

    before = commands()
    between = commands() - before
    before = commands()
    leases = (await member.exchange([], [], wanted)).leases
    count = commands() - before - between
    await settle(member, *(Settlement(lease, Outcome.HANDED_BACK) for lease in leases))
    return count, len(leases)


async def test_claim_costs_the_same_whatever_the_backlog() -> None:
    with server() as private:
        queue = RedisQueue(private.url)
        await queue.open()
        member = await queue.join(["work"], 10, 600.0)
        await queue.enqueue(new_jobs(100))
        await commands_of_a_claim(queue, member, want(20))  # what was run before has a history
        small = await commands_of_a_claim(queue, member, want(20))
        for _ in range(5):
            await queue.enqueue(new_jobs(4000))
        large = await commands_of_a_claim(queue, member, want(20))

        assert small[1] == large[1] == 20
        assert large[0] <= small[0] + 5
        await member.leave()
        await queue.close()


async def test_claim_costs_the_same_whatever_the_number_of_blocked_lanes() -> None:
    with server() as private:
        queue = RedisQueue(
            private.url, lane_config=lambda name: LaneConfig(min_interval_seconds=600.0)
        )
        await queue.open()
        member = await queue.join(["work"], 10, 600.0)
        wanted = want(20)._replace(lanes=10)
        await queue.enqueue(new_jobs(100))

        async def block(first: int, count: int) -> None:
            for n in range(first, first + count):
                await queue.enqueue(new_jobs(2, lane=f"lane{n}"))
            in_lanes = wanted._replace(limit=0)
            while (await member.exchange([], [], in_lanes)).leases:
                pass

        await block(0, 10)
        await commands_of_a_claim(queue, member, wanted)
        few = await commands_of_a_claim(queue, member, wanted)
        await block(10, 500)
        many = await commands_of_a_claim(queue, member, wanted)

        assert few[1] == many[1]
        assert many[0] <= few[0] + 5
        await member.leave()
        await queue.close()


def test_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins
    import sys

    original = builtins.__import__

    def no_redis(name: str, *rest: Any, **options: Any) -> Any:
        if name.split(".")[0] == "redis":
            raise ModuleNotFoundError("No module named 'redis'", name="redis")
        return original(name, *rest, **options)

    for name in list(sys.modules):
        if name.startswith("penstock.adapters.redis"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", no_redis)
    with pytest.raises(PenstockError, match=r"pip install 'penstock\[redis\]'"):
        Penstock("redis://localhost:6379/0")
