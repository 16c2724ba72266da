"""IP addresses that can be somebody's: valid, not a version, not this machine's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import NamedTuple

from penstock.ingest.pii.near import Words, beside, goes_on, words
from penstock.ingest.pii.span import Kind, Span

# Behind `name/` stands a version (Chrome/115.0.0.0); behind `name-` too, behind `:` a time or port.
_V4 = re.compile(
    r"[0-9](?<![0-9A-Za-z.][0-9])(?<![0-9A-Za-z][-_.,][0-9])(?<![0-9]:[0-9])(?<![A-Za-z]/[0-9])"
    r"[0-9]{0,2}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z])(?!\.[0-9A-Za-z])"
)
_VERSION_BEFORE = re.compile(
    r"(?:(?i:\bv|\bver\.?|versions?|releases?|\brev\.?|build|firmware|driver|\boid|identifier|section"
    r"|chapter|clause|table|figure)|§|[=~<>]=|\^|バージョン|版|第|章|節|버전|릴리[스즈]|제)"
    r"(?:[ :=('\"\[>`*]|number|no\.|is|was|from|to|than){0,5}\Z"
)
_VERSION_AFTER = re.compile(
    r" ?(?:버전|バージョン|版|version|release|[장절節章])|[-+~_.]?(?:alpha|beta|rc|dev|post|pre|snapshot|final)"
)
# These say what a number is, the others only that there are machines.
_ADDRESS_WORDS = words("ip ips ipv4 address addr ping dns gateway subnet アドレス 주소 아이피")
_NET_WORDS = words(
    "ip ips ipv4 address addr host hostname server ping dns gateway client connect connection from"
    " peer subnet アドレス サーバ 接続 アクセス 送信元 ホスト 주소 서버 접속 호스트 아이피"
)
_VERSION_WORDS = words(
    "version release build firmware driver upgrade upgrading update updating downgrade hotfix patch"
    " package changelog plugin module library sdk install バージョン 버전 업데이트"
)
_PORT_OR_NET = re.compile(r":[0-9]{2,5}(?![0-9])|/[0-9]{1,2}(?![0-9])")
_PRIVATE = (10, 172, 192)
_version_beside = beside(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,2}", 14)

_NETWORKS = tuple(
    map(IPv6Network, ("2000::/3", "fc00::/7", "fe80::/9", "ff00::/8", "::ffff:0:0/96", "64:ff9b::/47"))
)
"""What addresses of machines begin with."""


class Around(NamedTuple):
    """Words of a text that tell whether a number with three dots is an address."""

    address: Words
    net: Words
    version: Words


# From the first colon on; the group before it is taken backwards.
_V6 = re.compile(
    r":(?=[0-9A-Fa-f]{0,4}:)(?:[0-9A-Fa-f]{0,4}:){1,7}"
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{1,4}|(?<=::))(?![0-9A-Za-z])(?!\.[0-9])"
)
_V6_GROUP = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f]{0,4}\Z")


def find_ip_addresses(text: str) -> Iterator[Span]:
    around = Around(*(Words(some, text) for some in (_ADDRESS_WORDS, _NET_WORDS, _VERSION_WORDS)))
    version = -1
    for match in _V4.finditer(text):
        if version >= 0 and goes_on(text, version, match.start()):
            version = match.end()
        elif _is_v4(text, match, around):
            yield Span(*match.span(), Kind.IP_ADDRESS)
        elif _is_version(text, match):
            version = match.end()
    for match in _V6.finditer(text):
        ahead = max(0, match.start() - 5)
        group = _V6_GROUP.search(text[ahead : match.start()])
        if group and _is_v6(group[0] + match[0], _PORT_OR_NET.match(text, match.end()) is not None):
            yield Span(ahead + group.start(), match.end(), Kind.IP_ADDRESS)


def _is_version(text: str, match: re.Match[str]) -> bool:
    """Whether it is called one, or goes on as one does."""
    start, end = match.span()
    return bool(
        _VERSION_BEFORE.search(text, max(0, start - 24), start) or _VERSION_AFTER.match(text, end)
    )


def _is_v4(text: str, match: re.Match[str], around: Around) -> bool:
    start, end = match.span()
    try:
        address = IPv4Address(match[0])
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return False
    if _is_version(text, match):
        return False
    if text.startswith("//", start - 2) or _PORT_OR_NET.match(text, end):
        return True
    # Versions and numbers of sections count from 1: 3.2.1.14 is one of those unless told otherwise,
    # 10.2.1.14 only among others.
    parts = sorted(address.packed)
    small = parts[3] < 64 or parts[2] < 20
    listed = address.packed[0] not in _PRIVATE or _version_beside(text, start, end)
    named = around.net.near(start, end, before=30)
    versioned = around.version.near(start, end, before=30, after=12)
    if small and listed:
        return around.address.near(start, end, before=30) or (named and not versioned)
    return named or not versioned


def _is_v6(shape: str, goes_on: bool) -> bool:
    """`b2::add` and `x[1000::2]` parse as addresses and are code: it has to be of a network that
    there is, and there have to be three groups, or a first one of four digits. One that ends with
    its network needs the length of that."""
    try:
        address = IPv6Address(shape)
    except ValueError:
        return False
    if address.is_loopback or (address.ipv4_mapped and address.ipv4_mapped.is_loopback):
        return False
    if not any(address in network for network in _NETWORKS):
        return False
    groups = [group for group in shape.split(":") if group]
    if shape.endswith("::") and len(groups) < 3 and not goes_on:
        return False
    full = len(groups) >= 3 or (bool(groups) and len(groups[0]) == 4)
    digit = any(sign.isdigit() for sign in shape)
    return full and digit and any(len(group) > 2 for group in groups)
