"""The reference pages of the server: its API and its metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from penstock import Penstock
from penstock.model.server import ServerConfig
from penstock.server.api import build
from penstock.server.draining import Draining
from penstock.server.metrics import Metrics
from penstock.server.openapi import ALWAYS, WITH_BODY
from tools.schema_words import link, row, section, type_of, without_enums

API = """\
# HTTP API

<!-- Written by `python -m tools.reference` from what /openapi.json says. -->

How to use it is in the [guide](guide-server.md). Bodies are JSON unless said otherwise. Times are
seconds since 1970. A name in a path is escaped: `a/b` is `a%2Fb`.

{operations}

## Errors

Each is `application/problem+json`; what to do about which `code` is in the
[guide](guide-server.md#errors).

| status | |
|---|---|
{problems}

The last four are those of POST, PUT and DELETE. `/healthz` and `/readyz` have none of them.

## What is sent

{sent}

## What is answered

{answered}
"""

METRICS = """\
# Metrics

<!-- Written by `python -m tools.reference` from src/penstock/server/metrics.py and
queue_metrics.py. -->

What `GET /metrics` has, for keys with the scope `admin`. How to use it is in the
[guide](guide-telemetry.md). Those of HTTP are of one server process, and start at 0 with it. All
others are looked up when they are asked for, and are of the whole queue: every server process says
the same, so take their maximum over servers and not their sum.

What has a label `process` is as that worker process last told it, with the renewal of its leases
(every 5 s). Its counters start at 0 when it joins, only grow, and are gone when it leaves: what it
did in its last seconds is not seen here, nor what is done by processes that end sooner.

| name | type | labels | meaning |
|---|---|---|---|
{rows}

`route` is the path with its names left open, such as `/v1/jobs/{{job_id}}`, or `none` where
nothing was found. A histogram has `_bucket`, `_sum` and `_count`.
"""


def api_page() -> str:
    described = asyncio.run(_described())
    described = without_enums(described, described["components"]["schemas"])
    schemas = described["components"]["schemas"]
    operations = [
        _operation(method, path, operation)
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    ]
    sent = [name for name, schema in schemas.items() if schema.get("additionalProperties") is False]
    answered = [name for name in schemas if name not in sent]
    return API.format(
        operations="\n\n".join(operations),
        problems="\n".join(row(*told) for told in (ALWAYS | WITH_BODY).items()),
        sent="\n\n".join(section(name, schemas[name]) for name in sorted(sent)),
        answered="\n\n".join(section(name, schemas[name]) for name in sorted(answered)),
    )


async def _described() -> dict[str, Any]:
    return build(Penstock(), ServerConfig(), Draining()).openapi()


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    about = " ".join(operation["description"].split())
    parts = [f"## {method.upper()} {path}", about]
    if parameters := operation.get("parameters"):
        rows = [_parameter(one) for one in parameters]
        parts.append("\n".join(["| parameter | in | | |", "|---|---|---|---|", *rows]))
    if body := operation.get("requestBody"):
        parts.append("Takes " + " or ".join(_bodies(body["content"])) + ".")
    parts.append("Answers " + ", ".join(_answers(operation["responses"])) + ".")
    return "\n\n".join(parts)


def _parameter(one: Mapping[str, Any]) -> str:
    kind = type_of(one["schema"]).removesuffix(" or null")  # that is: left out
    return row(f"`{one['name']}`", one["in"], kind, one.get("description", ""))


def _bodies(content: Mapping[str, Any]) -> Iterator[str]:
    for media, one in content.items():
        schema = one["schema"]
        if "properties" in schema:
            names = ", ".join(f"`{name}`" for name in schema["properties"])
            yield f"`{media}` with {names}"
        elif "$ref" in schema:
            yield link(schema["$ref"])
        else:
            yield "the bytes themselves, under any other content type"


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    for status, one in responses.items():
        media = next(iter(one.get("content", {})), "")
        if media == "application/problem+json":
            continue
        schema = one["content"][media]["schema"] if media else {}
        phrase = HTTPStatus(int(status)).phrase
        medias = " or ".join(f"`{name}`" for name in one.get("content", {}))
        what = link(schema["$ref"]) if "$ref" in schema else medias
        said = what or ("" if one["description"] == "Successful Response" else one["description"])
        yield f"{status} {phrase}" + (f" ({said.rstrip('.')})" if said else "")


def metrics_page() -> str:
    rows = [
        row(f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), about)
        for name, kind, labels, about in Metrics().described()
    ]
    return METRICS.format(rows="\n".join(rows))
