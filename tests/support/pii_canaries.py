"""Invented personal data of every kind in every language, and a search for it in what is stored."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.adapters.postgres.address import parse
from tests.support.document_app import Shelf
from tests.support.postgres import psql


class Canary(NamedTuple):
    language: str
    kind: str
    text: str
    """As people write it; the value is between ⟦ and ⟧ in the table below."""
    value: str


_TABLE = """
en email           Write to ⟦canary.jane@example.com⟧ before Friday.
en phone           Call ⟦+1 (415) 555-0132⟧ or come by.
en card            Card ⟦4792 8775 7447 6219⟧ exp 12/27.
en bank_account    Wire it to the Shinhan account ⟦110-123-456789⟧.
en iban            Pay to ⟦DE56 7877 8932 8792 1742 18⟧ today.
en ip_address      Logged in from ⟦203.0.113.45⟧ at noon.
en my_number       Her individual number is ⟦7368 1930 3645⟧.
en passport        Passport no. ⟦M12345678⟧ expires soon.
en resident_number His RRN is ⟦901231-1234567⟧.
en ssn             Her SSN is ⟦536-22-4187⟧.
en driving_licence Driver's license ⟦A1234567⟧ of Reno.
ja email           連絡先:⟦canary.taro@example.jp⟧まで
ja phone           携帯⟦090-8765-4321⟧まで
ja card            カード番号は⟦5273-8067-5691-9337⟧です
ja bank_account    振込先：⟦0001-123-1234567⟧
ja iban            口座は⟦CH0940191614610033076⟧です
ja ip_address      アドレス⟦2001:db8::8a2e:370:7334⟧へ
ja my_number       マイナンバーは⟦364056224159⟧です
ja passport        パスポート番号⟦TK1234567⟧です
ja resident_number 外国人登録番号⟦750101-6123456⟧まで
ja ssn             社会保障番号は⟦772-30-1199⟧です
ja driving_licence 運転免許証番号⟦301234567890⟧です
ko email           문의는 ⟦canary.kim@example.kr⟧로 보내 주세요.
ko phone           전화⟦010-9876-5432⟧로 연락 주세요.
ko card            카드번호⟦4784-5474-8554-5655⟧로 결제
ko bank_account    국민은행 ⟦123456-04-123456⟧로 입금
ko iban            계좌는 ⟦SE4659729792622439332836⟧입니다
ko ip_address      IP:⟦198.51.100.23⟧로
ko my_number       마이넘버 ⟦548145421247⟧입니다
ko passport        여권 ⟦M123A4567⟧을 확인
ko resident_number 주민등록번호⟦8503152345678⟧을 적었다
ko ssn             사회보장번호 ⟦457 55 5462⟧을 적었다
ko driving_licence 운전면허번호는 ⟦11-12-345678-90⟧입니다
"""


def _read(row: str) -> Canary:
    language, kind, marked = row.split(maxsplit=2)
    before, _, rest = marked.partition("⟦")
    value, _, after = rest.partition("⟧")
    return Canary(language, kind, before + value + after, value)


CANARIES = [_read(row) for row in _TABLE.strip().splitlines()]


def texts(language: str) -> list[str]:
    return [one.text for one in CANARIES if one.language == language]


def of(kind: str, language: str = "en") -> str:
    """A value."""
    return next(one.value for one in CANARIES if (one.kind, one.language) == (kind, language))


def _forms(value: str) -> set[str]:
    """As it is written, and without what only separates."""
    return {value, *(value.translate(str.maketrans("", "", signs)) for signs in ("- ", "+()- "))}


RAW = sorted({form for one in CANARIES for form in _forms(one.value)} | {"canary"})


def leaks(content: bytes) -> list[str]:
    """The values that are in it, in any encoding that we or a store would write."""
    return [
        value
        for value in RAW
        for encoding in ("utf-8", "utf-16-le", "utf-16-be")
        if value.encode(encoding) in content
    ]


async def scan(shelf: Shelf, *more: bytes) -> dict[str, list[str]]:
    """What leaked into which file or table, to the embedder, or into what else is given."""
    found = {f"given {at}": leaks(one) for at, one in enumerate(more)}
    sent = b"\n".join(text.encode() for text in shelf.embedder.received)
    found["embedder"] = leaks(sent + b"".join(hit.body for hit in shelf.embedder.requests))
    if shelf.store == "postgres":
        found |= await _scan_tables(shelf)
    else:
        # The write-ahead log is brought into the database, and both are read.
        shelf.farm.query("PRAGMA wal_checkpoint(PASSIVE)")
        assert shelf.farm.path.exists()
    files = [path for path in shelf.farm.folder.rglob("*") if path.is_file()]
    found |= {path.name: leaks(path.read_bytes()) for path in files}
    return {name: values for name, values in found.items() if values}


async def _scan_tables(shelf: Shelf) -> dict[str, list[str]]:
    """Every column of every table of the namespace."""
    async with psql(shelf.farm.url) as mine:
        tables = await mine.fetch(
            "SELECT c.oid::regclass::text AS name FROM pg_class AS c"
            " JOIN pg_namespace AS n ON n.oid = relnamespace"
            " WHERE nspname = $1 AND relkind = 'r'",
            parse(shelf.farm.url).namespace,
        )
        assert len(tables) > 10
        rows: dict[str, list[Any]] = {
            name: await mine.connection.fetch(f"SELECT t::text FROM {name} AS t")
            for (name,) in tables
        }
    return {name: leaks("\n".join(r[0] for r in some).encode()) for name, some in rows.items()}
