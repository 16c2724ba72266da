"""Decides which untrusted URLs may be fetched.

A server that fetches for others can reach what they cannot: its own machine, the network behind the
firewall, the cloud's metadata server. So a URL has one spelling here, and leads to a public address
or to a `host:port` in the setting `fetch_allow`. A literal address is checked at once; a name when
it is resolved (see `guard`), by the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urljoin

from penstock.errors import AddressRefused, ConfigError

PORTS = {"http": 80, "https": 443}
MAX_URL = 4096
"""Maximum characters of a URL."""

IPAddress = IPv4Address | IPv6Address
Allow = frozenset[tuple[str, int]]
"""Hosts and ports on private addresses that may be fetched."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,190}}\Z){_LABEL}(?:\.{_LABEL})*")
"""Limited by the length of a lane's name."""
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
"""Other spellings of an IPv4 address that resolvers accept: 2130706433, 0x7f.1, 0177.1."""
_PORTED = re.compile(r"[^/@?#]+:[0-9]{1,5}")
_CLOSED = tuple(map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")))
"""Addresses that some versions of Python wrongly call global: protocol assignments, with a cloud
metadata server among them; 6to4 relays, now obsolete; and Azure's internal services."""
_UNICAST = IPv6Network("2000::/3")
_DOCUMENTATION = IPv6Network("3fff::/20")
_NAT64 = IPv6Network("64:ff9b::/96")


@dataclass(slots=True, frozen=True)
class WebAddress:
    url: str
    """The URL as requested: without fragment and the trailing dot of the host, all ASCII."""
    host: str
    port: int

    def joined(self, location: str) -> WebAddress:
        """Resolve the target of a redirect. Some servers send unescaped spaces."""
        return web_address(urljoin(self.url, location.strip().replace(" ", "%20")))


def web_address(url: str) -> WebAddress:
    """Parse a URL; raises AddressRefused unless it is an unambiguous http(s) URL. The message does
    not contain the URL, which may hold personal data or a secret, because messages are stored."""
    import httpx2  # here, because it costs a tenth of a second

    if len(url) > MAX_URL:
        raise AddressRefused(f"the address is longer than {MAX_URL:,} characters")
    if not url.isprintable() or " " in url or "\\" in url:
        raise AddressRefused("the address holds a blank, a backslash or a control character")
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        raise AddressRefused("the address is no URL") from None
    if parsed.scheme not in PORTS:
        raise AddressRefused("only http and https addresses are fetched")
    if parsed.userinfo:
        raise AddressRefused("the address holds a user name or password: leave it out")
    host = parsed.raw_host.decode("ascii").lower().removesuffix(".")
    port = PORTS[parsed.scheme] if parsed.port is None else parsed.port
    if not host:
        raise AddressRefused("the address names no host")
    if _literal(host) is None and (_NUMBER.fullmatch(host) or not _NAME.fullmatch(host)):
        raise AddressRefused("the host of the address is neither a name nor a plain IP address")
    if not 0 < port < 65536:
        raise AddressRefused("the port of the address is not between 1 and 65535")
    return WebAddress(str(parsed.copy_with(host=host, fragment=None)), host, port)


def check(address: WebAddress, allow: Allow) -> None:
    """Raise AddressRefused if the URL can be rejected without resolving its host."""
    if (address.host, address.port) in allow:
        return
    if address.port not in PORTS.values():
        raise _refused(address.host, address.port, "the port is neither 80 nor 443")
    literal = _literal(address.host)
    if literal is not None:
        if (kind := kind_of(literal)) is not None:
            raise _refused(address.host, address.port, f"it is a {kind} address")
    elif address.host == "localhost" or address.host.endswith(".localhost"):
        raise _refused(address.host, address.port, "it is a loopback address")


def not_public(host: str, port: int) -> AddressRefused:
    """Build the error for a rejected host name. One that leads to a private address and one that
    does not exist read the same; otherwise callers could explore the internal network."""
    return _refused(host, port, "its name leads to no public address")


def kind_of(address: IPAddress) -> str | None:
    """Describe an address that is not public; None if it is."""
    inner = _embedded(address)
    if inner is not None:
        return kind_of(inner)
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    if address.is_multicast:
        return "multicast"
    # What Python calls global is more than that, and differs between its versions.
    if isinstance(address, IPv4Address):
        open_range = not any(address in network for network in _CLOSED)
    else:
        open_range = address in _UNICAST and address not in _DOCUMENTATION
    if not open_range or address.is_reserved or not address.is_global:
        return "private or reserved"
    return None


def _embedded(address: IPAddress) -> IPv4Address | None:
    """Return the IPv4 address embedded in this one: mapped, 6to4, NAT64."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _literal(host: str) -> IPAddress | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    # One with a zone means another machine on every interface.
    return None if getattr(address, "scope_id", None) else address


def _refused(host: str, port: int, why: str) -> AddressRefused:
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return AddressRefused(
        f"{where} is not fetched: {why}. If it is meant, name it in the setting fetch_allow"
    )


def parse_allow(items: Iterable[str]) -> Allow:
    """Parse the setting `fetch_allow`: a list of `host:port`."""
    return frozenset(_allowed(item) for item in items)


def _allowed(item: str) -> tuple[str, int]:
    try:
        if not _PORTED.fullmatch(item):
            raise AddressRefused("no port")
        address = web_address(f"http://{item}")
    except AddressRefused:
        raise ConfigError(
            f"fetch_allow is a list of host:port, such as intranet.example:8080, not {item!r}"
        ) from None
    return address.host, address.port
