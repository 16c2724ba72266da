"""Reads the files of a form as a stream, and adds the documents once it is complete."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import Message
from pathlib import PurePath
from typing import Any

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser

from penstock.api.tenant_view import TenantView
from penstock.model.document import Document
from penstock.ports.blobs import Blob
from penstock.server.bodies import parse, stream, value_of
from penstock.server.problems import Problem
from penstock.server.schemas import NewDocument

FIELD_BYTES = 64 * 1024
"""Maximum size of a field that is not a file."""
PARTS = 1000
CHARSETS = ("utf-8", "iso-8859-1", "us-ascii")

_END = object()


class Part:
    """One field or file. Read its bytes before requesting the next part; the rest is skipped."""

    def __init__(self, headers: dict[str, str], source: AsyncIterator[Any]) -> None:
        disposition = headers.get("content-disposition", "")
        self.name = _parameter(disposition, "name") or ""
        self.filename = _parameter(disposition, "filename")
        self._source = source
        self._over = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while not self._over:
            event = await anext(self._source)
            if event is _END:
                self._over = True
            else:
                yield event

    async def text(self) -> str:
        value = b""
        async for data in self:
            value += data
            if len(value) > FIELD_BYTES:
                raise Problem(413, "too-large", f"the field {self.name!r} is over 64 KiB")
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise Problem(422, "invalid", f"the field {self.name!r} is not UTF-8") from None


def _parameter(header: str, name: str) -> str | None:
    """Return a parameter of a header, including in RFC 2231 encoding. Only in the web's charsets:
    Python has others whose decoding fails, or yields something other than text."""
    message = Message()
    message["content-type"] = header
    given = message.get_param(name)
    if not isinstance(given, tuple):
        return given
    charset, _, text = given
    if (charset or "utf-8").lower() not in CHARSETS:
        raise Problem(422, "invalid", f"`{name}` is in another charset than UTF-8")
    return text.encode("latin-1", "replace").decode(charset or "utf-8", "replace")


async def parts(body: AsyncIterator[bytes], content_type: str) -> AsyncIterator[Part]:
    """Iterate over the parts of a multipart body."""
    boundary = _parameter(content_type, "boundary")
    if not boundary:
        raise Problem(422, "invalid", "multipart/form-data without a boundary")
    try:
        source = _events(body, boundary.encode("latin-1", "replace"))
        count = 0
        async for event in source:
            if not isinstance(event, dict):
                continue
            count += 1
            if count > PARTS:
                raise Problem(413, "too-large", f"over {PARTS} parts in a form")
            part = Part(event, source)
            yield part
            async for _ in part:  # what nobody read
                pass
    except FormParserError as error:
        raise Problem(422, "invalid", f"this is not multipart/form-data: {error}") from None


async def _events(body: AsyncIterator[bytes], boundary: bytes) -> AsyncIterator[Any]:
    """Iterate over events: the headers of each part as a dict, its data as bytes, then its end."""
    events: deque[Any] = deque()
    headers: dict[str, str] = {}
    field, value = bytearray(), bytearray()
    ended = False

    def header_end() -> None:
        headers[field.decode("latin-1").lower()] = value.decode("utf-8", "replace")
        field.clear()
        value.clear()

    def headers_finished() -> None:
        events.append(dict(headers))
        headers.clear()

    def end() -> None:
        nonlocal ended
        ended = True

    parser = MultipartParser(
        boundary,
        {
            "on_header_field": lambda data, start, stop: field.extend(data[start:stop]),
            "on_header_value": lambda data, start, stop: value.extend(data[start:stop]),
            "on_header_end": header_end,
            "on_headers_finished": headers_finished,
            "on_part_data": lambda data, start, stop: events.append(bytes(data[start:stop])),
            "on_part_end": lambda: events.append(_END),
            "on_end": end,
        },
    )
    async for chunk in body:
        parser.write(chunk)
        while events:
            yield events.popleft()
    if not ended:
        # The closing boundary is missing: a part of the files would be taken for all of them.
        raise Problem(422, "invalid", "the form ends before its closing boundary")


FORM = "multipart/form-data"
FIELDS = ("id", "collection", "title", "metadata", "priority", "retry")


class Uploads:
    """An upload form: files, already stored, and options that apply to all of them."""

    def __init__(self, tenant_view: TenantView) -> None:
        self._tenant_view = tenant_view
        self.files: list[tuple[str, Blob]] = []
        self.fields: dict[str, str] = {}

    async def said(self) -> NewDocument:
        """Validate the options of the files; raises 422."""
        if not self.files:
            raise Problem(422, "invalid", "the form has no file; send it as `file`")
        if "id" in self.fields and len(self.files) > 1:
            raise Problem(422, "invalid", "an `id` is for one file; these are several")
        said: dict[str, Any] = dict(self.fields)
        for name in ("metadata", "retry"):
            if name in said:
                said[name] = value_of(said[name], f"`{name}`")
        return await parse(json.dumps({"text": "", **said}).encode(), NewDocument)

    async def accept(self, new: NewDocument) -> list[Document]:
        """Add a document for each file."""
        said = new.model_dump(include={"title", "collection", "metadata", "priority", "retry"})
        store, tenant, documents = self._tenant_view.documents, self._tenant_view.tenant, []
        while self.files:
            name, blob = self.files.pop(0)  # the library's from here on
            documents.append(
                await store.add(blob, id=new.id or name or None, origin=name, tenant=tenant, **said)
            )
        return documents


@asynccontextmanager
async def receive(request: Request, tenant_view: TenantView) -> AsyncIterator[Uploads]:
    """Store the files of a form as they arrive. Nothing is accepted before the form is complete, so
    a caller that hangs up has sent nothing. Files that are not accepted in the end are dropped."""
    config = request.app.state.config
    received = Uploads(tenant_view)
    body = stream(request, config.upload_bytes)
    try:
        async for part in parts(body, request.headers["content-type"]):
            if part.filename is None:
                if part.name not in FIELDS:
                    raise Problem(422, "invalid", f"no field {part.name!r}; a file needs a name")
                received.fields[part.name] = await part.text()
                continue
            if len(received.files) == config.upload_files:
                raise Problem(413, "too-large", f"over {config.upload_files} files in one request")
            name = PurePath(part.filename.replace("\\", "/")).name
            received.files.append((name, await tenant_view.documents.receive(aiter(part))))
        yield received
    finally:
        for _, blob in received.files:
            await tenant_view.documents.drop(blob)
