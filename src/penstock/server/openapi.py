"""The OpenAPI description of the routes."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from penstock.server.idempotency import HEADER
from penstock.server.problems import MEDIA_TYPE

PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "Problem details (RFC 9457).",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "For programs."},
        "detail": {"type": "string", "description": "For people."},
    },
    "required": ["type", "title", "status", "code", "detail"],
}
ALWAYS = {
    "401": "Missing or unknown API key.",
    "403": "The key lacks the scope, or the origin is not allowed.",
    "404": "Not found, or it belongs to another tenant.",
    "421": "The Host header names another server.",
    "422": "Invalid request; the details say why.",
    "429": "Rate limit of the key exceeded; see Retry-After.",
    "503": "Nothing was stored: the queue or the store is unreachable, the queue is full, or the "
    "server is stopping; Retry-After says when to come back.",
}
WITH_BODY = {
    "408": "The request body was not received in time.",
    "409": "The same request is being carried out, or what it names is taken.",
    "413": "Too large.",
    "415": "Another media type.",
}
OPEN = ("/healthz", "/readyz")
MADE = {"201", "202"}


_bodies: dict[str, type[BaseModel]] = {}


def spec(
    model: Any, status: int = 200, body: type[BaseModel] | None = None, **media: Any
) -> dict[str, Any]:
    """Describe a route: its response, and the body that it reads itself: JSON as in `body`, or one
    of the other media types."""
    said = {"status_code": status, "responses": {status: {"model": model}}}
    return said if body is None else said | {"openapi_extra": takes(body, **media)}


def takes(model: type[BaseModel], **more: Any) -> dict[str, Any]:
    """Describe the body that a route reads itself, for `openapi_extra`; see `spec`."""
    _bodies[model.__name__] = model
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content = {"application/json": {"schema": schema}}
    content |= {name: {"schema": other} for name, other in more.items()}
    required = not getattr(model, "optional", False)
    return {"requestBody": {"required": required, "content": content}}


def install(api: FastAPI) -> None:
    def describe() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = _describe(api)
        return api.openapi_schema

    api.openapi = describe  # type: ignore[method-assign]


def _describe(api: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=api.title, version=api.version, description=api.description, routes=api.routes
    )
    components = schema.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = PROBLEM
    for name, model in _bodies.items():
        whole = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(whole.pop("$defs", {}))
        schemas[name] = whole
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            _complete(path, method, operation)
    return schema


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    if path in OPEN:
        return
    operation["security"] = [{"key": []}]
    if method == "post" and MADE & set(responses):  # it makes something, so it is carried out once
        operation.setdefault("parameters", []).append(
            {
                "name": HEADER,
                "in": "header",
                "required": False,
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            }
        )
    problems = ALWAYS | (WITH_BODY if method in ("post", "put", "patch", "delete") else {})
    for status, about in problems.items():
        responses[status] = {
            "description": about,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
