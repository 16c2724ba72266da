"""Plain text, Markdown and CSV; and the decoding of bytes to characters."""

from __future__ import annotations

import codecs
import re

from penstock.documents.parse.draft import Draft, clean
from penstock.documents.parsed import Heading, Table

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Each encoding, what to try it with, and what a text in it is full of: decoding proves little.
# The weight is how much one such character says: a few dozen of the commonest Chinese characters
# are a third of a text, and hardly met by chance.
_LEGACY = (
    ("cp932", "cp932", re.compile("[\u3040-\u30ff]"), 1),
    ("euc-jp", "euc-jp", re.compile("[\u3040-\u30ff]"), 1),
    ("cp949", "euc-kr", re.compile("[\uac00-\ud7a3]"), 1),  # common syllables are in EUC-KR
    (
        "gb18030",
        "gb18030",
        re.compile("[的一是在不了有和人这中大为上个国我以要他时来用们没那里]"),
        3,
    ),
)
_SAMPLE = 65_536
_CHARSET = re.compile(
    rb"""(?i)<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)=["' ]?([\w-]{3,20})"""
)
_MEANT = {
    **dict.fromkeys(("shift_jis", "x-sjis", "sjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("iso-8859-1", "latin1", "ascii", "us-ascii"), "cp1252"),
}
"""Encoding names that in practice mean the Windows variant."""
_NOT_OF_PAGES = {"punycode", "idna", "unicode-escape", "raw-unicode-escape", "utf-7"}
"""Python's own codecs for other purposes; the first takes hours for a page."""
_FENCE = re.compile(r" {0,3}(```|~~~)")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+")


def decode(data: bytes, charset: str | None = None) -> str:
    """Decode bytes: by byte order mark, then UTF-8, then the sender's `charset`, then what the text
    declares, then a guess. Undecodable bytes become U+FFFD."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    if b"\x1b$" in data[:_SAMPLE]:
        return data.decode("iso2022_jp_ext", "replace")
    if wide := _wide(data[:_SAMPLE]):
        return data.decode(wide, "replace")
    text = data.decode("utf-8", "replace")
    if _mostly_whole(text):
        return text
    for said in (_known(charset), _known(_said(data))):
        if said and _mostly_whole(text := data.decode(said, "replace")):
            return text
    return data.decode(_guess(data), "replace")


def _mostly_whole(text: str) -> bool:
    """Whether few characters are damaged: text in another encoding has hardly any intact ones."""
    damaged = text.count("\ufffd")
    return not damaged or 10 * damaged < sum(not sign.isascii() for sign in text)


def _wide(sample: bytes) -> str | None:
    """Detect UTF-16 without a mark, if it is mostly ASCII: every other byte is zero."""
    if sample[1::2].count(0) > len(sample) // 8:
        return "utf-16-le"
    if sample[::2].count(0) > len(sample) // 8:
        return "utf-16-be"
    return None


def _known(charset: str | None) -> str | None:
    """Look up a text encoding by name."""
    name = (charset or "").lower()
    try:
        found = codecs.lookup(_MEANT.get(name, name)).name
        b"x".decode(found, "replace")
    except (LookupError, ValueError):
        return None
    return None if found.replace("_", "-") in _NOT_OF_PAGES else found


def _said(data: bytes) -> str | None:
    match = _CHARSET.search(data[:2048])
    return None if match is None else match[1].decode()


def _guess(data: bytes) -> str:
    best, most = "cp1252", 0.1
    for encoding, core, expected, weight in _LEGACY:
        text = data[:_SAMPLE].decode(core, "replace")
        foreign = "".join(sign for sign in text if not sign.isascii())
        likely = weight * len(expected.findall(foreign)) - 4 * text.count("\ufffd")
        if foreign and likely / len(foreign) > most:
            best, most = encoding, likely / len(foreign)
    return best


def read_text(text: str, draft: Draft) -> None:
    draft.whole(clean(text))


def read_csv(text: str, draft: Draft) -> None:
    """Read CSV. The first line names the columns, unless a cell continues in the next line."""
    text = clean(text)
    head = text.split("\n", 1)[0]
    draft.whole(text, tables=() if head.count('"') % 2 else [Table(0, len(head), len(text))])


def read_markdown(text: str, draft: Draft) -> None:
    text = clean(text)
    headings: list[Heading] = []
    fence = ""
    offset = 0
    for line in text.splitlines(keepends=True):
        if marks := _FENCE.match(line):
            fence = "" if fence == marks[1] else fence or marks[1]
        elif not fence and (match := _ATX.match(line)) and (title := _title(line[match.end() :])):
            headings.append(Heading(len(match[1]), offset, title[:500]))
        offset += len(line)
    draft.whole(text, headings)


def _title(rest: str) -> str:
    """Return the title of a heading, without its markup."""
    title = rest.rstrip()
    open_end = title.rstrip("#")
    return open_end.rstrip() if open_end[-1:].isspace() else title
