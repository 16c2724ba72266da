"""Streams files of a form: never whole in memory, never in a temporary file."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from email.message import Message
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser

from penstock.server.problems import Problem

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
