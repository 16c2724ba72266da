"""Requests and responses of `ctx.http` with `record=True`, as a receipt has them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.errors import ValidationError
from penstock.model.redact import HIDDEN, hidden
from penstock.outbound.responses import without_password
from penstock.ports.receipts import ReceiptAnswer, ReceiptRequest, usage_in, usage_of

if TYPE_CHECKING:
    import httpx2

ASKED = ("params", "content", "data", "files", "json")
"""Options that say what is asked. Headers do, too, but for those that are credentials."""
SECRETS = ("authorization", "cookie", "proxy-authorization", "x-api-key", "crossref-plus-api-token")
"""Headers that are sent only to the host that the caller named."""
NOT_KEPT = ("set-cookie", "content-encoding", "content-length", "transfer-encoding")


def request_of(method: str, url: str, lane: str, options: Mapping[str, Any]) -> ReceiptRequest:
    """A request, as it is to be known again: without credentials, so that they may change."""
    asked = {name: _plain(options[name]) for name in ASKED if options.get(name) is not None}
    if isinstance(params := asked.get("params"), dict):  # some services take their keys there
        asked["params"] = {k: one for k, one in params.items() if not _is_secret(k, one)}
    headers = _headers(options)
    asked["headers"] = {
        name: _plain(value) for name, value in headers.items() if not _is_secret(name, value)
    }
    body = options.get("json")
    model = body.get("model") if isinstance(body, Mapping) else None
    return ReceiptRequest(
        lane,
        [method, without_password(url), asked],
        model if isinstance(model, str) else None,
        {"method": method, "host": urlsplit(url).hostname},
    )


def place_of(response: httpx2.Response) -> ReceiptAnswer:
    """What a receipt says of a response that is kept elsewhere."""
    return ReceiptAnswer({}, usage_in(response.content), {"status": response.status_code})


def answer_of(response: httpx2.Response, url: str, options: Mapping[str, Any]) -> ReceiptAnswer:
    """A response, without credentials of the request that it repeats. Where it came from is kept if
    that is not where it was asked for."""
    body = response.content
    headers = [
        [name, value]
        for name, value in response.headers.multi_items()
        if name.lower() not in NOT_KEPT and not _is_secret(name.lower(), value)
    ]
    value: dict[str, Any] = {"status": response.status_code, "headers": headers}
    try:
        value["text"] = without_keys(body.decode(), _headers(options))
    except UnicodeDecodeError:
        value["base64"] = base64.b64encode(body).decode()
    here = str(response.request.url)
    if urlsplit(here).netloc != urlsplit(url).netloc or urlsplit(here).path != urlsplit(url).path:
        value["url"] = hidden(without_password(here))
    return ReceiptAnswer(value, usage_of(_json(body)), {"status": response.status_code})


def response_of(value: Mapping[str, Any], method: str, url: str) -> httpx2.Response:
    """The response that a receipt stands for."""
    import httpx2

    text = value.get("text")
    body = base64.b64decode(value["base64"]) if text is None else text.encode()
    return httpx2.Response(
        value["status"],
        headers=[(name, one) for name, one in value["headers"]],
        content=body,
        request=httpx2.Request(method, value.get("url", url)),
    )


def without_keys(text: str, headers: Mapping[str, str]) -> str:
    """A text without the credentials that were sent in headers."""
    for name, value in headers.items():
        secret = str(value).rpartition(" ")[2]  # behind `Bearer`
        if secret and _is_secret(name, value):
            text = text.replace(secret, HIDDEN)
    return text


def _headers(options: Mapping[str, Any]) -> dict[str, str]:
    headers = dict(options.get("headers") or {})
    return {str(name).lower(): value for name, value in headers.items()}


def _is_secret(name: str, value: str) -> bool:
    return name.lower() in SECRETS or hidden({name: value}) != {name: value}


def _json(body: bytes) -> Any:
    try:
        return json.loads(body) if body[:1] == b"{" else None
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """A body or parameters in JSON values."""
    match value:
        case Mapping():
            return {str(name): _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case None | bool() | int() | float() | str():
            return value
    raise ValidationError(
        f"a request with record=True is made of plain values, not {type(value).__name__}: "
        "a stream cannot be known again"
    )
