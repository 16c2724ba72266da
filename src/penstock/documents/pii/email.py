"""E-mail addresses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from penstock.documents.pii.kinds import Kind, PiiSpan

_WORD = r"0-9A-Za-z\u00c0-\u058f\u1e00-\u1fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
# A digit may follow where no name goes on: a footnote's, or that of a table without its lines.
_HOST = re.compile(
    rf"@((?:[{_WORD}](?:[{_WORD}-]{{0,62}})?\.){{1,8}}"
    r"((?:com|org|net|edu|gov|info|jp|kr)(?=[0-9]{1,9}(?![0-9A-Za-z]))"
    r"|(?:[A-Za-z]{2,24}|[\u0370-\u058f]{2,24}|xn--[0-9A-Za-z-]{2,59}|한국|日本|みんな)"
    r"(?![0-9A-Za-z])(?!-[0-9A-Za-z])))"
)
# Letters, and marks upon them, of scripts that set words apart: Latin to Armenian, Georgian. In
# others a word may stand right before an address.
_LOCAL = frozenset(
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.%'+-_"
    + "".join(
        sign
        for first, last in ((0xC0, 0x590), (0x10A0, 0x1100), (0x1E00, 0x2000))
        for sign in map(chr, range(first, last))
        if sign.isalpha() or unicodedata.combining(sign)
    )
)
_LOCAL_MOST = 64
# An address may have them inside; at its start they are the text around it.
_OUTSIDE = ".%'+-"
_FILES = re.compile(r"png|jpe?g|gif|webp|svg|avif|bmp|ico|pdf|css|js|ts|map|html|json")
_LOGINS = (
    *("ssh://", "git+ssh://", "svn+ssh://", "sftp://", "scp://", "ftp://", "ftps://", "git://"),
    *("rsync://", "postgresql://", "postgres://", "mysql://", "redis://", "rediss://"),
    *("amqp://", "amqps://", "mongodb://"),
)
"""Prefixes of user names on a machine. People write http before addresses, too."""
_COMMON = re.compile(r"[a-z]{2}|com|org|net|edu|gov|info|biz|dev|app|name|pro|mil|int")


def find_emails(text: str) -> Iterator[PiiSpan]:
    """Find email addresses from each @ outwards. Searching from the left would examine every
    word."""
    end = 0
    for match in _HOST.finditer(text):
        at = match.start()
        start = _local_start(text, at, end)
        if (
            start < at
            and not _is_code(text[start:at], match[2].lower(), text[match.end() :][:1])
            and not text.endswith(_LOGINS, max(0, start - 16), start)
        ):
            end = match.end()
            yield PiiSpan(start, end, Kind.EMAIL)


def _local_start(text: str, at: int, floor: int) -> int:
    floor = max(floor, at - _LOCAL_MOST)
    start = at
    if start > floor and text[start - 1] in _LOCAL:
        while start > floor and text[start - 1] in _LOCAL:
            start -= 1
        while start < at and text[start] in _OUTSIDE:
            start += 1
    else:
        while start > floor and text[start - 1].isalpha() and not text[start - 1].isascii():
            start -= 1
    return start


def _is_code(local: str, top: str, following: str) -> bool:
    """Whether it is code: icon@2x.png, git@host.org and a @ b.transpose(...) are not addresses."""
    method = following == "(" and not _COMMON.fullmatch(top)
    return bool(_FILES.fullmatch(top)) or local == "git" or method
