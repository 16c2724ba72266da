"""IP addresses that can be somebody's: valid, not a version, not this machine's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from penstock.ingest.pii.near import Words, beside, words
from penstock.ingest.pii.span import Kind, Span

# Behind `name/` stands a version (Chrome/115.0.0.0); behind `name-` too, behind `:` a time or port.
_V4 = re.compile(
    r"[0-9](?<![0-9A-Za-z.][0-9])(?<![0-9A-Za-z][-_.,][0-9])(?<![0-9]:[0-9])(?<![A-Za-z]/[0-9])"
    r"[0-9]{0,2}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z])(?!\.[0-9A-Za-z])"
)
_VERSION_BEFORE = re.compile(
    r"(?:(?i:\bv|\bver\.?|version|release|\brev\.?|build|firmware|driver|\boid|identifier|section"
    r"|chapter|clause|table|figure)|§|[=~<>]=|\^|バージョン|版|第|章|節|버전|릴리[스즈]|제)"
    r"[ :('\"]*$"
)
_VERSION_AFTER = re.compile(r" ?(?:버전|バージョン|版|version|release|[장절節章])")
_NET_WORDS = words(
    "ip ips ipv4 address addr host hostname server ping dns gateway client connect connection from"
    " peer subnet アドレス サーバ 接続 アクセス 送信元 ホスト 주소 서버 접속 호스트 아이피"
)
_PORT_OR_NET = re.compile(r":[0-9]{2,5}(?![0-9])|/[0-9]{1,2}(?![0-9])")
_PRIVATE = (10, 172, 192)
_version_beside = beside(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,2}", 14)

# From the first colon on; the group before it is taken backwards.
_V6 = re.compile(
    r":(?=[0-9A-Fa-f]{0,4}:)(?:[0-9A-Fa-f]{0,4}:){1,7}"
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{1,4}|(?<=::))(?![0-9A-Za-z])(?!\.[0-9])"
)
_V6_GROUP = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f]{0,4}\Z")


def find_ip_addresses(text: str) -> Iterator[Span]:
    named = Words(_NET_WORDS, text)
    for match in _V4.finditer(text):
        if _is_v4(text, match, named):
            yield Span(*match.span(), Kind.IP_ADDRESS)
    for match in _V6.finditer(text):
        ahead = max(0, match.start() - 5)
        group = _V6_GROUP.search(text[ahead : match.start()])
        if group and _is_v6(group[0] + match[0]):
            yield Span(ahead + group.start(), match.end(), Kind.IP_ADDRESS)


def _is_v4(text: str, match: re.Match[str], named: Words) -> bool:
    start, end = match.span()
    try:
        address = IPv4Address(match[0])
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return False
    if _VERSION_BEFORE.search(text[max(0, start - 20) : start]) or _VERSION_AFTER.match(text, end):
        return False
    if text.startswith("//", start - 2) or _PORT_OR_NET.match(text, end):
        return True
    # Versions and numbers of sections count from 1: 3.2.1.14 is one of those unless told otherwise,
    # 10.2.1.14 only among others.
    parts = sorted(address.packed)
    small = parts[3] < 64 or parts[2] < 20
    listed = address.packed[0] not in _PRIVATE or _version_beside(text, start, end)
    return not (small and listed) or named.near(start, end, before=30)


def _is_v6(shape: str) -> bool:
    """`b2::add` parses as an address and is code: there have to be three groups, or a first one of
    four digits."""
    try:
        address = IPv6Address(shape)
    except ValueError:
        return False
    if address.is_loopback or (address.ipv4_mapped and address.ipv4_mapped.is_loopback):
        return False
    groups = [group for group in shape.split(":") if group]
    full = len(groups) >= 3 or (bool(groups) and len(groups[0]) == 4)
    digit = any(sign.isdigit() for sign in shape)
    return full and digit and any(len(group) > 2 for group in groups)
