"""A Kafka message, and its identity."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from penstock.errors import PenstockError

MESSAGE_ID = "message-id"
ID_LIMIT = 200


class MessageRefused(PenstockError):
    """A message that can never be processed. `reason` is a code for programs; `detail` is for
    people, and may quote the message."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return self.detail


@dataclass(slots=True, frozen=True)
class MessageRecord:
    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970; -1: none."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None = ()
    """None: unreadable."""

    @property
    def place(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"

    def header(self, name: str) -> bytes | None:
        """Return the last header of that name: whoever forwards a message appends theirs."""
        found = [value for given, value in self.headers or () if given == name]
        return found[-1] if found else None

    def text_header(self, name: str, most: int) -> str | None:
        """Return a header as text, or None. Raises MessageRefused if it is not printable or too
        long."""
        value = self.header(name)
        if value is None:
            return None
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = ""
        if not 0 < len(text) <= most or not text.isprintable():
            raise MessageRefused("header", f"the header {name} is 1 to {most} printable characters")
        return text

    def digest(self) -> str:
        """Hash of the content."""
        return hashlib.sha256(self.value or b"").hexdigest()


def identity(record: MessageRecord, origin: str) -> str:
    """Return the identity of a message, the same whenever it is read: its `message-id`, or else its
    position."""
    given = record.text_header(MESSAGE_ID, ID_LIMIT)
    return position(record, origin) if given is None else f"id:{given}"


def position(record: MessageRecord, origin: str) -> str:
    """Return the position of a message. `origin` names its cluster and topic.

    Time and content are part of it: a topic that was made again counts its offsets from 0, and of
    that one may learn late, or from an old broker never.
    """
    parts = (origin, record.partition, record.offset, record.timestamp, record.digest())
    return f"at:{hashlib.sha256(repr(parts).encode()).hexdigest()[:40]}"
