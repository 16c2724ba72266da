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

MEANT = 10**12
"""A larger limit of a number is only what a database can hold."""

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

<!-- Written by `python -m tools.reference` from src/penstock/server/metrics.py. -->

What `GET /metrics` has, for keys with the scope `admin`. Those of HTTP are of one server process,
and start at 0 with it. All others are looked up when they are asked for, and are of the whole
queue: every server process says the same, so take their maximum over processes and not their sum.

| name | type | labels | meaning |
|---|---|---|---|
{rows}

`route` is the path with its names left open, such as `/v1/jobs/{{job_id}}`, or `none` where
nothing was found. A histogram has `_bucket`, `_sum` and `_count`.
"""


def api_page() -> str:
    described = asyncio.run(_described())
    schemas = described["components"]["schemas"]
    enums = {name: schemas.pop(name) for name in list(schemas) if "enum" in schemas[name]}
    described = _inlined(described, enums)
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
        problems="\n".join(_row(*row) for row in (ALWAYS | WITH_BODY).items()),
        sent="\n\n".join(_schema(name, schemas[name]) for name in sorted(sent)),
        answered="\n\n".join(_schema(name, schemas[name]) for name in sorted(answered)),
    )


async def _described() -> dict[str, Any]:
    return build(Penstock(), ServerConfig(), Draining()).openapi()


def _inlined(given: Any, enums: Mapping[str, Any]) -> Any:
    """With the values of an enum where it is named: a page of its own would say no more."""
    match given:
        case {"$ref": str() as ref} if ref.rpartition("/")[2] in enums:
            return enums[ref.rpartition("/")[2]]
        case dict():
            return {name: _inlined(one, enums) for name, one in given.items()}
        case list():
            return [_inlined(one, enums) for one in given]
    return given


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
    kind = _type(one["schema"]).removesuffix(" or null")  # that is: left out
    return _row(f"`{one['name']}`", one["in"], kind, one.get("description", ""))


def _bodies(content: Mapping[str, Any]) -> Iterator[str]:
    for media, one in content.items():
        schema = one["schema"]
        if "properties" in schema:
            names = ", ".join(f"`{name}`" for name in schema["properties"])
            yield f"`{media}` with {names}"
        elif "$ref" in schema:
            yield _link(schema["$ref"])
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
        what = _link(schema["$ref"]) if "$ref" in schema else medias
        said = what or ("" if one["description"] == "Successful Response" else one["description"])
        yield f"{status} {phrase}" + (f" ({said.rstrip('.')})" if said else "")


def _link(ref: str) -> str:
    name = ref.rpartition("/")[2]
    return f"[{name}](#{name.lower()})"


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    about = " ".join(schema.get("description", "").split())
    sent = schema.get("additionalProperties") is False
    needed = schema.get("required", ()) if sent else ()
    rows = [
        _row(
            f"`{field}`",
            _type(one) + (", required" if field in needed else ""),
            one.get("description", ""),
        )
        for field, one in schema["properties"].items()
    ]
    table = "\n".join(["| field | | |", "|---|---|---|", *rows])
    return "\n\n".join(part for part in (f"### {name}", about, table) if part)


def _type(schema: Mapping[str, Any]) -> str:
    words = [_kind(schema)]
    for key, limit in (("minimum", "from {:,}"), ("maximum", "to {:,}")):
        if key in schema and abs(schema[key]) < MEANT:
            words.append(limit.format(round(schema[key])))
    if "maxLength" in schema:
        words.append(f"up to {schema['maxLength']:,} long")
    if schema.get("default") not in (None, ""):
        words.append(f"default `{str(schema['default']).lower()}`")
    return ", ".join(words)


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "$ref" in schema:
        return _link(schema["$ref"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def metrics_page() -> str:
    rows = [
        _row(f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), about)
        for name, kind, labels, about in Metrics().described()
    ]
    return METRICS.format(rows="\n".join(rows))
