"""The finders of personal data, one per kind (`kinds.py`), in the order they are asked.

A finder takes text and yields spans: start, end, kind. Those here read text that was folded first
(fold.py), so they know only ASCII digits and signs. Where two of them claim the same characters,
the one named first gives the kind. The first of all shows the others, piece by piece, what goes
on in the next line.

The bounds of a number are never `\\b`: Japanese and Korean write particles right behind it, and to
`\\b` those are letters of the same word.
"""

from __future__ import annotations

from penstock.documents.pii.account import find_accounts
from penstock.documents.pii.card import find_cards
from penstock.documents.pii.columns import find_in_columns
from penstock.documents.pii.email import find_emails
from penstock.documents.pii.iban import find_ibans
from penstock.documents.pii.ip import find_ip_addresses
from penstock.documents.pii.kinds import Finder, Kind, PiiSpan
from penstock.documents.pii.licence import find_driving_licences
from penstock.documents.pii.national_id import find_my_numbers, find_resident_numbers
from penstock.documents.pii.passport import find_passports
from penstock.documents.pii.phone import find_phones
from penstock.documents.pii.social_security import find_social_security_numbers
from penstock.documents.pii.wrapped_lines import find_over_lines

FINDERS: tuple[Finder, ...] = (
    find_over_lines,
    find_emails,
    find_ibans,
    find_cards,
    find_resident_numbers,
    find_my_numbers,
    find_social_security_numbers,
    find_driving_licences,
    find_phones,
    find_passports,
    find_accounts,
    find_ip_addresses,
    find_in_columns,
)

__all__ = ["FINDERS", "Finder", "Kind", "PiiSpan"]
