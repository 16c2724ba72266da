"""Logs of real processes: what they tell, and that no telemetry tells a secret."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.counting_server import Answer, CountingServer
from tests.support.pii_canaries import CANARIES, leaks
from tests.support.serve_process import Host
from tests.support.spans import Collector
from tests.support.waiting import until

LEAKY = Path(__file__).parents[2] / "support" / "apps" / "leaky.py"
KEY = "sk-live-hush-0123456789"
ASKED = "my-hushed-question"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def entries(text: str) -> list[dict[str, Any]]:
    """Every line, each of which must be JSON."""
    return [json.loads(line) for line in text.splitlines()]


async def test_no_secret_and_no_personal_data_is_in_logs_traces_or_metrics(
    host: Host, server: CountingServer, collector: Collector
) -> None:
    shutil.copy(LEAKY, host.cli.folder / "leaky.py")
    host.settings["require_key"] = True
    host.cli.environment |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url(""),
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "PYTHONWARNINGS": "default",
        "PENSTOCK_LOG_ERRORS": "type",  # what handlers raise is theirs to say
    }
    server.answers["/away"] = Answer(500, body=KEY.encode())
    said = " ".join(one.value for one in CANARIES) + f" {KEY}"
    key = host.key(scopes="read write admin")
    served = host.serve("--log-format", "json", app="leaky:app")
    async with served.client(key) as client, served.client(KEY) as stranger:
        for n, one in enumerate(CANARIES):
            answer = await client.put(f"/v1/index/{n}", json={"text": one.text})
            assert answer.status_code == 200, answer.text
        jobs = [("fails", {"said": said}), ("fails.thread", {"said": said})]
        jobs += [("leaves.task", {"said": said})]
        jobs += [("asks", {"url": server.url(f"/away/{ASKED}"), "key": KEY})]
        for kind, payload in jobs:
            made = await client.post("/v1/jobs", json={"kind": kind, "payload": payload})
            assert made.status_code == 202, made.text
        assert (await stranger.get(f"/v1/jobs?q={ASKED}")).status_code == 401
        assert (await client.get(f"/v1/jobs/{CANARIES[0].value}")).status_code == 404
        assert (await client.put(f"/v1/index/{ASKED}", json={"text": 5})).status_code == 422
        await client.post("/v1/search", json={"query": CANARIES[0].text})

        async def told() -> str | None:
            metrics = (await client.get("/metrics")).text
            done = 'kind="fails",outcome="failed"' in metrics and 'kind="leaves.task"' in metrics
            spans = {"process fails", "process asks", "process fails.thread"} <= collector.names
            return metrics if done and spans else None

        metrics = await until(told, "everything to be told")
    done = served.stop()
    assert done.code == 0
    logged = entries(done.err)

    for name, text in (("logs", done.err), ("traces", collector.text), ("metrics", metrics)):
        assert not leaks(text.encode()), name
        for hush in (KEY, key, ASKED, "hush"):
            assert hush not in text, (name, hush)

    mine = [one for one in logged if one["logger"] == "leaky"]
    attempts = [one for one in mine if one["message"] == "one attempt"]
    assert [one["attempt"] for one in attempts] == [1, 2]
    assert {one["kind"] for one in attempts} == {"fails"}
    assert {one["tenant"] for one in attempts} == {"default"}
    assert all(len(one["trace_id"]) == 32 and len(one["span_id"]) == 16 for one in attempts)
    assert {one["trace_id"] for one in attempts} <= collector.traces
    [thread] = [one for one in mine if one["message"] == "in a thread"]
    assert (thread["kind"], thread["error"]) == ("fails.thread", "KeyError")
    buried = [one for one in logged if "failed permanently" in one["message"]]
    assert {one["kind"] for one in buried} >= {"fails", "fails.thread"}
    assert {one["job"] for one in buried if one["kind"] == "fails"} == {attempts[0]["job"]}
    assert [one for one in logged if one.get("error") == "RuntimeError"], "a task left behind"
    assert {one["process"] for one in logged} == {served.running.process.pid}


def test_log_format_that_is_none_is_refused(host: Host) -> None:
    refused = host.cli("worker", "shop:app", "--drain", "--log-format", "xml", code=2)
    assert "log_format must be text or json" in refused.err


def test_log_format_is_a_setting(host: Host) -> None:
    host.cli("enqueue", "fail")
    done = host.cli(
        "worker", "shop:app", "--drain", "--json", environment={"PENSTOCK_LOG_FORMAT": "json"}
    )
    told = [one for one in entries(done.err) if "event loop" not in one["message"]]
    assert [one["kind"] for one in told] == ["fail", "fail"]
