"""Bank accounts. They have no check digit, and each bank groups differently: words must identify
them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.documents.pii.context import LAST, WordPositions, first, words
from penstock.documents.pii.kinds import Kind, PiiSpan

_GROUPED = re.compile(first("0-9") + r"[0-9]{1,5}-[0-9]{1,6}-[0-9]{2,8}(?:-[0-9]{1,7})?" + LAST)
_GROUPED_DIGITS = range(10, 17)
WORDS = words(
    "계좌 입금 송금 이체 예금 은행 뱅크 농협 수협 신협 금고 우체국"
    " 口座 振込 振り込 送金 銀行 信金 信用金庫 ゆうちょ 貯金"
    " bank account acct a/c wire remit"
)

_PLAIN = re.compile(
    first("0-9")
    + r"(?<![,;|\t\n][0-9])"  # columns.py looks into tables
    + r"(?:[0-9]-[0-9]{2}-[0-9]{2}|[0-9]{4}(?:-?[0-9]{1,12})?)"
    + LAST
)
# Digits alone are a bank account only right behind a word that says so.
_LABEL = re.compile(
    r"(?:계좌|계좌 ?번호|은행|뱅크|농협|예금|입금|口座|口座番号|普通|普通預金|当座|当座預金|貯金"
    r"|ゆうちょ|銀行|記号|(?P<number>番号)|(?i:bank account|account (?:number|no|num|#)|acct|a/c"
    r"|routing|routing (?:number|no)|(?P<sort>sort code)))"
    r"(?:は|が|を|는|은|이|가| is| was)?[ .:#()「」]{0,4}$"
)
_LABEL_REACH = 30
_SAVINGS_WORDS = words("記号 ゆうちょ 貯金 口座 銀行 振込")


def find_accounts(text: str) -> Iterator[PiiSpan]:
    named = WordPositions(WORDS, text)
    for match in _GROUPED.finditer(text):
        digits = len(match[0]) - match[0].count("-")
        if digits in _GROUPED_DIGITS and named.near(*match.span()):
            yield PiiSpan(*match.span(), Kind.BANK_ACCOUNT)
    savings = WordPositions(_SAVINGS_WORDS, text)
    for match in _PLAIN.finditer(text):
        start = match.start()
        label = _LABEL.search(text[max(0, start - _LABEL_REACH) : start])
        if label is None:
            continue
        digits = len(match[0]) - match[0].count("-")
        # Five digits are the sign (記号) of a Japanese post office account and nothing else;
        # 番号 alone is any number, but behind 記号 or a bank that of an account.
        if digits == 5 and not label[0].startswith("記号"):
            continue
        if match[0].count("-") == 2 and not label["sort"]:
            continue
        if label["number"] and not savings.near(start - len(label[0]), match.end(), after=0):
            continue
        yield PiiSpan(*match.span(), Kind.BANK_ACCOUNT)
