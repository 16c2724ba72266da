"""Which addresses are fetched, as far as can be told without asking anybody."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import AddressRefused, ConfigError
from penstock.outbound.web_address import check, kind_of, parse_allow, web_address

NOBODY = parse_allow([])
LOOPBACK, PRIVATE, LINK = "a loopback", "a private or reserved", "a link-local"
STRANGE = "neither a name nor a plain IP address"
SIGNS = "a blank, a backslash or a control character"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1/", LOOPBACK),
        ("http://127.8.9.10/", LOOPBACK),
        ("http://127.0.0.1./", LOOPBACK),
        ("http://127。0。0。1/", LOOPBACK),
        ("http://localhost/", LOOPBACK),
        ("http://LOCALHOST./", LOOPBACK),
        ("https://app.localhost/", LOOPBACK),
        ("http://[::1]/", LOOPBACK),
        ("http://[0:0:0:0:0:0:0:1]/", LOOPBACK),
        ("http://[::ffff:127.0.0.1]/", LOOPBACK),
        ("http://[::ffff:7f00:1]/", LOOPBACK),
        ("http://[2002:7f00:1::]/", LOOPBACK),
        ("http://[64:ff9b::127.0.0.1]/", LOOPBACK),
        ("http://[64:ff9b::a00:1]/", PRIVATE),
        ("http://[64:ff9b:1::a00:1]/", PRIVATE),
        ("http://[::127.0.0.1]/", PRIVATE),
        ("http://[::]/", PRIVATE),
        ("http://0.0.0.0/", PRIVATE),
        ("http://0.1.2.3/", PRIVATE),
        ("http://10.1.2.3/", PRIVATE),
        ("http://172.16.0.1/", PRIVATE),
        ("http://192.168.1.1/", PRIVATE),
        ("http://100.64.0.1/", PRIVATE),
        ("http://192.0.0.8/", PRIVATE),
        ("http://192.0.0.9/", PRIVATE),
        ("http://192.0.0.192/opc/v2/instance/", PRIVATE),
        ("http://192.88.99.1/", PRIVATE),
        ("http://168.63.129.16/machine", PRIVATE),
        ("http://[::ffff:168.63.129.16]/", PRIVATE),
        ("http://[2002:c000:c0::]/", PRIVATE),
        ("http://192.0.2.1/", PRIVATE),
        ("http://198.18.0.1/", PRIVATE),
        ("http://240.0.0.1/", PRIVATE),
        ("http://255.255.255.255/", PRIVATE),
        ("http://224.0.0.251/", "a multicast"),
        ("http://[ff02::1]/", "a multicast"),
        ("http://169.254.169.254/latest/meta-data/", LINK),
        ("http://[fe80::1]/", LINK),
        ("http://[::ffff:169.254.169.254]/", LINK),
        ("http://[fd00:ec2::254]/", PRIVATE),
        ("http://[fec0::1]/", PRIVATE),
        ("http://[2001:db8::1]/", PRIVATE),
        ("http://[2001::1]/", PRIVATE),
        ("http://[3fff::1]/", PRIVATE),
        ("http://2130706433/", STRANGE),
        ("http://134744072/", STRANGE),
        ("http://0x7f000001/", STRANGE),
        ("http://0x7f.1/", STRANGE),
        ("http://0177.0.0.1/", "no URL"),
        ("http://127.1/", STRANGE),
        ("http://0/", STRANGE),
        ("http://example.org.0x7f/", STRANGE),
        ("http://1.2.3.4.5/", STRANGE),
        ("http://256.1.1.1/", "no URL"),
        ("http://[fe80::1%25eth0]/", STRANGE),
        ("http://a..b/", STRANGE),
        ("http://example.org../", STRANGE),
        ("http://localhost%00.example.org/", STRANGE),
        ("http://exa%6dple.org/", STRANGE),
        ("http://-a.example.org/", STRANGE),
        (f"http://{'a.' * 120}org/", STRANGE),
        ("http://①②⑦.0.0.1/", "no URL"),
        ("http://[::1/", "no URL"),
        ("http://example.org:port/", "no URL"),
        ("http://example.org:99999/", "the port of the address"),
        ("http://example.org:0/", "the port of the address"),
        ("http://example.org:22/", "neither 80 nor 443"),
        ("http://example.org:6379/", "neither 80 nor 443"),
        ("https://example.org:8443/", "neither 80 nor 443"),
        ("http://me:secret@example.org/", "user name or password"),
        ("http://example.org@127.0.0.1/", "user name or password"),
        (r"http://example.org\@127.0.0.1/", SIGNS),
        ("http://exam\tple.org/", SIGNS),
        ("http://example.org/a\r\nHost: b", SIGNS),
        (" http://example.org/", SIGNS),
        ("file:///etc/passwd", "only http and https"),
        ("ftp://example.org/", "only http and https"),
        ("gopher://example.org:70/_x", "only http and https"),
        ("data:text/plain,x", "only http and https"),
        ("unix:///var/run/docker.sock", "only http and https"),
        ("//example.org/", "only http and https"),
        ("example.org", "only http and https"),
        ("http://", "names no host"),
        ("http:///etc/passwd", "names no host"),
        ("", "only http and https"),
        (f"http://example.org/{'a' * 5000}", "longer than"),
    ],
)
def test_hostile_addresses_are_refused_and_it_is_said_why(url: str, why: str) -> None:
    with pytest.raises(AddressRefused, match=why) as refused:
        check(web_address(url), NOBODY)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "asked_for", "host", "port"),
    [
        ("http://example.org", "http://example.org", "example.org", 80),
        ("HTTPS://Example.ORG./A?b=c#d", "https://example.org/A?b=c", "example.org", 443),
        ("https://example.org:443/", "https://example.org/", "example.org", 443),
        ("http://example.org:443/", "http://example.org:443/", "example.org", 443),
        ("http://my_host.example.org/", "http://my_host.example.org/", "my_host.example.org", 80),
        ("http://8.8.8.8/", "http://8.8.8.8/", "8.8.8.8", 80),
        ("http://168.63.129.17/", "http://168.63.129.17/", "168.63.129.17", 80),
        (
            "http://[2606:4700::1111]/",
            "http://[2606:4700::1111]/",
            "2606:4700::1111",
            80,
        ),
        ("http://[64:ff9b::8.8.8.8]/", "http://[64:ff9b::8.8.8.8]/", "64:ff9b::8.8.8.8", 80),
        (
            "https://例え.jp/水門",
            "https://xn--r8jz45g.jp/%E6%B0%B4%E9%96%80",
            "xn--r8jz45g.jp",
            443,
        ),
    ],
)
def test_public_addresses_have_one_spelling(url: str, asked_for: str, host: str, port: int) -> None:
    address = web_address(url)
    check(address, NOBODY)
    assert (address.url, address.host, address.port) == (asked_for, host, port)
    assert web_address(address.url) == address


def test_allowed_is_one_port_of_one_host() -> None:
    allow = parse_allow(["127.0.0.1:8000", "Intranet.example.:8080", "[::1]:80"])
    for url in ("http://127.0.0.1:8000/", "http://intranet.example:8080/", "http://[::1]/"):
        check(web_address(url), allow)
    for url in ("http://127.0.0.1:8001/", "http://127.0.0.2:8000/", "http://localhost:8000/"):
        with pytest.raises(AddressRefused, match="setting fetch_allow"):
            check(web_address(url), allow)


@pytest.mark.parametrize("text", ["localhost", "http://a:80", "a:80/x", "a:x", "a@b:80", "a:0"])
def test_allowing_anything_else_is_a_mistake(text: str) -> None:
    with pytest.raises(ConfigError, match="fetch_allow is a list of host:port"):
        parse_allow([text])


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b c", "http://example.org/b%20c"),
        ("b?x=1#top", "http://example.org/a/b?x=1"),
        ("//other.example/", "http://other.example/"),
        ("https://other.example", "https://other.example"),
    ],
)
def test_redirects_are_read_as_a_browser_does(location: str, url: str) -> None:
    assert web_address("http://example.org/a/").joined(location).url == url


@given(st.integers(0, 2**32 - 1))
def test_every_way_to_write_an_ipv4_address_in_ipv6_is_judged_the_same(number: int) -> None:
    plain = ip_address(number)
    kind = kind_of(plain)
    for wrapped in (
        (0xFFFF << 32) | number,
        (0x64FF9B << 96) | number,
        (0x2002 << 112) | (number << 80),
    ):
        assert kind_of(ip_address(wrapped.to_bytes(16, "big"))) == kind


@given(st.text(max_size=60))
def test_whatever_is_given_is_refused_or_understood(text: str) -> None:
    for url in (text, f"http://{text}", f"http://example.org{text}"):
        try:
            address = web_address(url)
        except AddressRefused:
            continue
        assert address.url.isascii()
        assert web_address(address.url) == address
