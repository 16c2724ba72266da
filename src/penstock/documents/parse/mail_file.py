"""E-mail: sender, date, subject and body; plain text before HTML. Attachments are counted."""

from __future__ import annotations

import re
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.policy import EmailPolicy
from itertools import islice

from penstock.documents.parse.draft import Draft, one_line
from penstock.documents.parse.html_file import read_html
from penstock.documents.parse.text_file import decode
from penstock.errors import ParserError

_HEADER_MOST = 5_000
"""Maximum characters of a header: the standard parser takes quadratic time."""
_MOST_NESTED = 50
"""Maximum nesting of parts: each line is compared with the boundaries of all open ones."""
_NESTED = re.compile(rb"(?im)^content-type:\s*multipart/")
_SHOWN = ("Subject", "From", "To", "Cc", "Date")


class _Bounded(EmailPolicy):
    """Reads only the beginning of each header."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        if len(value) <= _HEADER_MOST:
            return name, value
        some = value[:_HEADER_MOST]
        # Behind a whole address, or a whole word.
        return name, some[: some.rfind(",")] if "," in some else some.rpartition(" ")[0]


_POLICY = _Bounded()


def read_mail(data: bytes, draft: Draft) -> None:
    if sum(1 for _ in islice(_NESTED.finditer(data), _MOST_NESTED + 1)) > _MOST_NESTED:
        raise ParserError(f"a message with over {_MOST_NESTED} parts that have parts", "bomb")
    try:
        message = BytesParser(policy=_POLICY).parsebytes(data)
        assert isinstance(message, EmailMessage)
        headers = [f"{name}: {one_line(str(message[name]))}" for name in _SHOWN if message[name]]
        body = message.get_body(preferencelist=("plain", "html"))
        attachments = sum(1 for _ in message.iter_attachments())
    # The standard parser trips over broken messages in many ways; all mean the same.
    except (MessageError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ParserError("not a whole message", "corrupt") from error
    title = one_line(str(message["Subject"] or ""))
    draft.block("\n".join(headers))
    if body is not None:
        text = _content(body)
        if body.get_content_subtype() == "html":
            read_html(text, draft, own_title=False)
        else:
            draft.block(text)
    draft.title = title or None
    if attachments:
        draft.note("attachments", str(attachments))


def _content(part: MIMEPart) -> str:
    payload = part.get_payload(decode=True)
    raw = payload if isinstance(payload, bytes) else b""
    return decode(raw, part.get_content_charset())
