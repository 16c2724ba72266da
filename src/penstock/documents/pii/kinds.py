"""The kinds of personal data, and the span of text that a finder yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    EMAIL = "email"
    PHONE = "phone"
    RESIDENT_NUMBER = "resident_number"
    MY_NUMBER = "my_number"
    CARD = "card"
    BANK_ACCOUNT = "bank_account"
    IBAN = "iban"
    IP_ADDRESS = "ip_address"
    PASSPORT = "passport"
    SSN = "ssn"
    DRIVING_LICENCE = "driving_licence"


class PiiSpan(NamedTuple):
    start: int
    end: int
    kind: str
    """A `Kind`, or the own word of a custom finder."""


Finder = Callable[[str], Iterable[PiiSpan]]
