"""IP addresses that may identify somebody: valid, not a version, not this machine's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from penstock.documents.pii.context import WordPositions, beside, goes_on, words
from penstock.documents.pii.kinds import Kind, PiiSpan

# Behind `name/` stands a version (Chrome/115.0.0.0); behind `name-` too, behind `:` a time or port.
_V4 = re.compile(
    r"[0-9](?<![0-9A-Za-z.][0-9])(?<![0-9A-Za-z][-_.,][0-9])(?<![0-9]:[0-9])(?<![A-Za-z]/[0-9])"
    r"[0-9]{0,2}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z])(?!\.[0-9A-Za-z])"
)
_VERSION_NAMES = (
    *("version", "versions", "release", "releases", "build", "firmware", "driver", "identifier"),
    *("section", "chapter", "clause", "table", "figure", "§", "==", ">=", "<=", "~=", "!=", "^"),
    *("バージョン", "版", "第", "章", "節", "버전", "릴리스", "릴리즈", "제"),
)
_VERSION_SHORT = re.compile(r"(?<![0-9a-z])(?:v|ver|rev|oid)\.?\Z")
_VERSION_FILLERS = (" number", " no.", " is", " was")
_VERSION_STEPS = (*_VERSION_FILLERS, " from", " to", " than")
_VERSION_AFTER = re.compile(
    r" ?(?:버전|バージョン|版|version|release|[장절節章])"
    r"|[-+~_.]?(?:alpha|beta|rc|dev|post|pre|snapshot|final)"
)
# Near it, they tell a version from an address that is in doubt.
_VERSION_WORDS = re.compile(
    r"[Vv]ersion|[Rr]elease|[Bb]uild|[Ff]irmware|[Dd]river|[Uu]p(?:grad|dat)|[Dd]owngrad|[Hh]otfix"
    r"|[Pp]atch|[Pp]ackage|[Cc]hangelog|[Pp]lugin|[Ll]ibrary|SDK|[Ii]nstall|バージョン|버전|업데이트"
)
# These say what a number is, the others only that there are machines.
_ADDRESS_WORDS = words("ip ips ipv4 address addr ping dns gateway subnet アドレス 주소 아이피")
_NET_WORDS = words(
    "ip ips ipv4 address addr host hostname server ping dns gateway client connect connection from"
    " peer subnet アドレス サーバ 接続 アクセス 送信元 ホスト 주소 서버 접속 호스트 아이피"
)
_PORT_OR_NET = re.compile(r":[0-9]{2,5}(?![0-9])|/[0-9]{1,2}(?![0-9])")
_DOTTED = re.compile(r"[0-9]\.[0-9]")
_SIGNS = " :('\"[`*"
_PRIVATE = (10, 172, 192)
_version_beside = beside(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,2}", 14)

_NETWORKS = tuple(
    map(
        IPv6Network,
        ("2000::/3", "fc00::/7", "fe80::/9", "ff00::/8", "::ffff:0:0/96", "64:ff9b::/47"),
    )
)
"""Prefixes of addresses that are assigned to machines."""


# From the first colon on; the group before it is taken backwards.
_V6 = re.compile(
    r":(?=[0-9A-Fa-f]{0,4}:)(?:[0-9A-Fa-f]{0,4}:){1,7}"
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{1,4}|(?<=::))(?![0-9A-Za-z])(?!\.[0-9])"
)
_SLICED = re.compile(r"(?<=[0-9A-Za-z_)\]]\[)")  # x[2000::2]
_V6_GROUP = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f]{0,4}\Z")


def find_ip_addresses(text: str) -> Iterator[PiiSpan]:
    named = WordPositions(_NET_WORDS, text)
    version = -1
    for match in _V4.finditer(text):
        start, end = match.span()
        small = _is_small(match[0])
        listed = small and version >= 0 and goes_on(text, version, start)
        if listed or _is_version(text, start, end, _VERSION_STEPS if small else _VERSION_FILLERS):
            version = end
        elif _is_v4(text, match, named):
            yield PiiSpan(start, end, Kind.IP_ADDRESS)
    for match in _V6.finditer(text):
        ahead = max(0, match.start() - 5)
        group = _V6_GROUP.search(text[ahead : match.start()])
        if group is None:
            continue
        start, end = ahead + group.start(), match.end()
        sliced = match[0].count(":") == 2 and _SLICED.match(text, start)
        if not sliced and _is_v6(text[start:end], net=bool(_PORT_OR_NET.match(text, end))):
            yield PiiSpan(start, end, Kind.IP_ADDRESS)


def _is_version(text: str, start: int, end: int, fillers: tuple[str, ...]) -> bool:
    """Whether it is announced as a version, with `fillers` after the word, or continues like
    one."""
    ahead = text[max(0, start - 30) : start].lower().rstrip(_SIGNS)
    while ahead.endswith(fillers):
        ahead = ahead.rpartition(" ")[0].rstrip(_SIGNS)
    if ahead.endswith(("=", ">")) and not ahead.endswith(_VERSION_NAMES):
        ahead = ahead.rstrip(_SIGNS + "=>")
    return (
        ahead.endswith(_VERSION_NAMES)
        or _VERSION_SHORT.search(ahead, max(0, len(ahead) - 5)) is not None
        or _VERSION_AFTER.match(text, end) is not None
    )


def _is_v4(text: str, match: re.Match[str], named: WordPositions) -> bool:
    start, end = match.span()
    try:
        address = IPv4Address(match[0])
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return False
    if text.startswith("//", start - 2) or _PORT_OR_NET.match(text, end):
        return True
    doubtful = address.packed[0] not in _PRIVATE or _version_beside(text, start, end)
    called = _VERSION_WORDS.search(text, max(0, start - 30), start)
    if not (doubtful and _is_small(match[0])):
        # The word may be for another number between the two.
        versioned = called and not _DOTTED.search(text, called.end(), start)
        return not versioned or named.near(start, end, before=30)
    if called:
        return _ADDRESS_WORDS.search(text, max(0, start - 30), end + 20) is not None
    return named.near(start, end, before=30)


def _is_small(shape: str) -> bool:
    """Whether it looks like a version or section number, which count from 1: 3.2.1.14 is one unless
    announced as an address, 10.2.1.14 only among others."""
    parts = sorted(map(int, shape.split(".")))
    return parts[3] < 64 or parts[2] < 20


def _is_v6(shape: str, *, net: bool) -> bool:
    """Whether it is an IPv6 address. `b2::add` and `1000::2` parse as one but are code: it has to
    be of an assigned network, with three groups or a first one of four digits. One that ends with
    its `net` needs a prefix length."""
    try:
        address = IPv6Address(shape)
    except ValueError:
        return False
    if address.is_loopback or (address.ipv4_mapped and address.ipv4_mapped.is_loopback):
        return False
    if not any(address in network for network in _NETWORKS):
        return False
    groups = [group for group in shape.split(":") if group]
    if shape.endswith("::") and len(groups) < 3 and not net:
        return False
    full = len(groups) >= 3 or (bool(groups) and len(groups[0]) == 4)
    digit = any(sign.isdigit() for sign in shape)
    return full and digit and any(len(group) > 2 for group in groups)
