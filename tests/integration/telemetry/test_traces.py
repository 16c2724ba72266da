"""Traces: from whoever asks, over the job, to what it asks of others."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx2 as httpx
import pytest
from opentelemetry.trace import SpanKind, StatusCode

from penstock import JobContext
from penstock.librarian.client import RemoteLibrarian
from penstock.librarian.server import serving
from penstock.model.librarian import LibrarianConfig
from penstock.model.server import ServerConfig
from penstock.server.draining import Draining
from penstock.server.run import bind, listening
from tests.support.counting_server import Answer, CountingServer
from tests.support.document_app import LANE, Shelf, completed
from tests.support.librarian_callers import counter_at
from tests.support.mcp_clients import Agents, call
from tests.support.serve_process import Host
from tests.support.spans import Collector, Spans, about, gathered, linked, parent, place
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

SECRET = "jane.doe@example.org"
ANYWHERE = LibrarianConfig(port=0)
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    yield from gathered(monkeypatch)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


async def test_document_is_traced_from_its_upload_until_it_is_searchable(
    shelf: Shelf, spans: Spans
) -> None:
    patient = {"embedder": {**LANE, "timeout_seconds": PATIENCE}}
    shelf.farm.settings |= {"trace_hosts": "127.0.0.1", "lanes": patient}
    app, config = shelf.farm.app("documents"), ServerConfig(port=0)
    app.use("keys", "research")
    with ExitStack() as held:
        bound = held.enter_context(bind(config))
        async with (
            app.running(),
            listening(app, config, Draining(), bound) as serving,
            httpx.AsyncClient(base_url=serving.address, timeout=PATIENCE) as client,
        ):
            answer = await client.put(
                f"/v1/index/{SECRET}",
                json={"text": f"The turbine turns. {SECRET}"},
                headers={"traceparent": CALLER},
            )
            assert answer.status_code == 200, answer.text
            await completed(app, SECRET)
            await app.drain(PATIENCE)
            await client.get("/healthz")

    request = spans.one("PUT /v1/index/{document_id}")
    assert request.kind is SpanKind.SERVER
    assert f"{place(request)[0]:032x}" == CALLER.split("-")[1]
    assert about(request) == {
        "http.request.method": "PUT",
        "http.route": "/v1/index/{document_id}",
        "http.response.status_code": 200,
    }
    send = spans.one("send ingest.parse")
    assert (send.kind, parent(send)) == (SpanKind.PRODUCER, place(request))
    assert about(send)["messaging.system"] == "penstock"
    assert about(send)["messaging.destination.name"] == "ingest.parse"
    assert about(send)["messaging.operation.type"] == "send"
    assert about(send)["penstock.tenant"] == "default"

    parse = spans.one("process ingest.parse")
    assert (parse.kind, parent(parse), linked(parse)) == (SpanKind.CONSUMER, None, [place(send)])
    assert place(parse)[0] != place(send)[0]
    told = about(parse)
    assert told["messaging.message.id"] == about(send)["messaging.message.id"]
    assert (told["penstock.job.attempt"], told["penstock.outcome"]) == (1, "completed")
    assert 0 <= told["penstock.job.wait_seconds"] < PATIENCE
    for stage in ("parse", "mask", "chunk"):
        assert parent(spans.one(stage)) == place(parse), stage
    in_turn = [spans.one(stage) for stage in ("parse", "mask", "chunk")]
    times = [time for span in in_turn for time in (span.start_time, span.end_time)]
    assert times == sorted(times, key=lambda at: at or 0)

    hand_on = spans.one("send ingest.embed")
    assert parent(hand_on) == place(parse)
    embed = spans.one("process ingest.embed")
    assert (parent(embed), linked(embed)) == (None, [place(hand_on)])
    assert about(embed)["penstock.lane"] == "embedder"
    assert parent(spans.one("publish")) == place(embed)
    batch = spans.one("embed")
    assert parent(batch) == place(embed)
    post = spans.one("POST")
    assert (post.kind, about(post)["server.port"]) == (SpanKind.CLIENT, shelf.embedder.port)
    assert about(post)["http.response.status_code"] == 200
    assert place(post)[0] == place(embed)[0]
    [asked] = [hit.headers["traceparent"] for hit in shelf.embedder.requests]
    assert asked.split("-")[1:3] == [f"{place(post)[0]:032x}", f"{place(post)[1]:016x}"]
    assert not [span.name for span in spans.all() if "health" in span.name]
    assert SECRET not in spans.text()


async def test_retry_has_a_span_of_its_own_linked_to_the_same_producer(
    farm: Farm, spans: Spans
) -> None:
    app = farm.bare()

    @app.job("again", max_retries=1)
    async def again(ctx: JobContext, what: str) -> None:
        if ctx.attempt == 1:
            raise OSError(f"{SECRET} is away")
        await ctx.enqueue("child", {"what": what})

    @app.job("child")
    def child(ctx: JobContext, what: str) -> None:
        with ctx.stage("think"):
            assert what

    async with app.running():
        await app.enqueue("again", {"what": SECRET}, tenant="acme")
        await app.drain(PATIENCE)
    send = spans.one("send again")
    first, second = spans.named("process again")
    assert linked(first) == linked(second) == [place(send)]
    assert place(first)[0] != place(second)[0]
    assert about(first)["penstock.job.attempt"] == 1
    assert about(first)["penstock.tenant"] == "acme"
    assert (about(first)["penstock.outcome"], about(first)["error.type"]) == ("retry", "OSError")
    assert first.status.status_code is StatusCode.ERROR
    assert first.status.description is None
    assert not first.events
    assert about(second)["penstock.outcome"] == "completed"
    hand_on, run = spans.one("send child"), spans.one("process child")
    assert parent(hand_on) == place(second)
    assert linked(run) == [place(hand_on)]
    assert parent(spans.one("think")) == place(run), "also in the thread of a sync handler"
    assert SECRET not in spans.text()


async def test_jobs_of_a_batch_share_their_producer(farm: Farm, spans: Spans) -> None:
    app = farm.bare()

    @app.job("one")
    async def one(ctx: JobContext) -> None: ...

    async with app.running():
        await app.enqueue_many("one", [{}, {}, {}])
        await app.drain(PATIENCE)
    send = spans.one("send one")
    assert about(send)["messaging.batch.message_count"] == 3
    assert "messaging.message.id" not in about(send)
    assert [linked(run) for run in spans.named("process one")] == [[place(send)]] * 3


@pytest.mark.parametrize("told", ["127.0.0.1, other.example", "other.example"])
async def test_only_named_hosts_are_told_of_a_trace(
    farm: Farm, server: CountingServer, spans: Spans, told: str
) -> None:
    app = farm.bare(trace_hosts=told, fetch_allow=f"127.0.0.1:{server.port}")
    server.answers["/page"] = Answer(headers={"content-type": "text/html"}, body=b"<p>page</p>")

    @app.job("ask")
    async def ask(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/ask?q=secret"), headers={"X-Mine": "1"})
        async with ctx.fetch(server.url("/page"), most=1000):
            pass

    async with app.running():
        assert (await app.wait((await app.enqueue("ask")).id, PATIENCE)).error is None
    [asked] = server.at("/ask")
    [fetched] = server.at("/page")
    assert ("traceparent" in asked.headers) == told.startswith("127")
    assert asked.headers["x-mine"] == "1"
    assert "traceparent" not in fetched.headers, "never one that somebody else has named"
    assert "secret" not in spans.text()
    assert len(spans.named("GET")) == 2


async def test_without_an_sdk_nothing_is_made_and_nothing_stored(farm: Farm) -> None:
    app = farm.bare()

    @app.job("plain")
    async def plain(ctx: JobContext) -> None:
        with ctx.stage("part"):
            pass

    async with app.running():
        await app.enqueue("plain")
        await app.drain(PATIENCE)
    assert farm.query("SELECT trace FROM jobs") == [(None,)]


async def test_collector_is_sent_the_spans_of_a_server(host: Host, collector: Collector) -> None:
    host.cli.environment |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url("").replace("://", "://user:hush@"),
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    served = host.serve()
    async with served.client() as client:
        answer = await client.put("/v1/index/a", json={"text": "The turbine turns."})
        assert answer.status_code == 200
        await until(lambda: "process ingest.embed" in collector.names, "spans of the last job")
    done = served.stop()
    assert done.code == 0
    assert "exporting traces to" in done.err
    assert "hush" not in done.err
    assert {"PUT /v1/index/{document_id}", "send ingest.parse", "embed"} <= collector.names
    assert collector.services == {"penstock-server"}


async def test_dead_collector_costs_nothing(host: Host, collector: Collector) -> None:
    place = collector.url("")
    collector.down()
    host.cli.environment |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": place,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    served = host.serve()
    took = []
    async with served.client() as client:
        for n in range(5):
            begun = time.monotonic()
            answer = await client.put(f"/v1/index/{n}", json={"text": f"Sluice {n}."})
            assert answer.status_code == 200
            took.append(time.monotonic() - begun)
    assert min(took) < 10
    begun = time.monotonic()
    done = served.stop()
    assert done.code == 0
    assert time.monotonic() - begun < 25, "the SDK would give it 30 s"
    assert done.err.count("\n") < 20, "one complaint a minute"


async def test_where_the_extra_is_missing_it_is_said_and_all_goes_on(host: Host) -> None:
    (host.cli.folder / "opentelemetry").mkdir()
    sdk = host.cli.folder / "opentelemetry" / "__init__.py"
    sdk.write_text("raise ModuleNotFoundError('no such module', name='opentelemetry')\n")
    worker = host.cli.worker(
        environment={
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "PYTHONPATH": str(host.cli.folder),
        }
    )
    job = host.cli("enqueue", "add", "--wait", "--json").json
    assert job["state"] == "completed"
    worker.said("penstock[otel]")


async def test_librarian_continues_the_trace_of_whoever_asks_it(farm: Farm, spans: Spans) -> None:
    async def ready() -> None: ...

    async with counter_at(farm, remote=False) as counter:
        service = serving(
            counter.librarian, counter.service.asking, counter.app.queue.now, ready, ANYWHERE
        )
        async with service as served:
            remote = RemoteLibrarian(LibrarianConfig(address=served.address), counter.app.queue.now)
            counter.librarian = remote
            assert len(await counter.ask("round")) == 1
            await remote.close()
    asked, answered = spans.named("penstock.librarian.v1.Librarian/Search")[::-1]
    assert (asked.kind, answered.kind) == (SpanKind.CLIENT, SpanKind.SERVER)
    assert parent(answered) == place(asked)


@pytest.mark.parametrize(("way", "around"), [("stdio-new", []), ("http-new", ["POST /mcp"])])
async def test_tool_call_is_traced_down_to_its_jobs(
    host: Host, collector: Collector, way: str, around: list[str]
) -> None:
    host.cli.environment |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url(""),
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    async with Agents(host).connect(way) as client:
        await call(client, "ingest", text="The sluice is opened at noon.", wait=30)
        await until(lambda: "tools/call ingest" in collector.names, "the span of the call")
        await until(lambda: "process ingest.embed" in collector.names, "spans of the last job")
        assert collector.above("send ingest.parse")[:1] == ["tools/call ingest"]
        await until(lambda: set(around) <= collector.names, "the span of the request")
        assert collector.above("tools/call ingest") == around


def test_command_is_traced_and_continues_the_trace_of_its_caller(
    host: Host, collector: Collector
) -> None:
    environment = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.url("/v1/traces"),
        "TRACEPARENT": CALLER,
    }
    done = host.cli("enqueue", "add", environment=environment)
    assert done.err == ""
    assert {"penstock enqueue", "send add"} <= collector.names
    assert collector.traces == {CALLER.split("-")[1]}
