"""Pages and their robots.txt come from the open internet, whatever addresses, redirects and name
servers say on the way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.outbound.guard import GuardedClient, GuardedNetwork
from penstock.outbound.web_address import parse_allow
from tests.support.counting_server import Answer, CountingServer, redirect
from tests.support.name_servers import PUBLIC, Names, Wire
from tests.support.page_jobs import Reader
from tests.support.page_samples import page

ARTICLE = Answer(headers={"content-type": "text/html", "connection": "close"}, body=page())
NO_RULES = Answer(404, headers={"connection": "close"})
METADATA = "169.254.169.254"
INSIDE = [
    "http://127.0.0.1/",
    "http://127.1.2.3/",
    "http://localhost/",
    "http://sub.localhost./",
    "http://[::1]/",
    "http://[::]/",
    "http://0.0.0.0/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://①②⑦.⓪.⓪.①/",
    f"http://{METADATA}/latest/meta-data/",
    f"http://[::ffff:{METADATA}]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00::1]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://example.org:22/",
    "http://example.org:6379/",
    "http://user:pass@example.org/",
    "http://example.org\\@127.0.0.1/",
    "http://example.org%00.127.0.0.1/",
    "file:///etc/passwd",
    "ftp://example.org/",
    "gopher://example.org/",
    "unix:/run/docker.sock",
]


async def test_page_inside_is_refused_before_anything_is_asked_for(
    reader: Reader, site: CountingServer
) -> None:
    async with reader.running() as pages:
        jobs = await pages.app.enqueue_many("page", [{"url": url, "fresh": 0.0} for url in INSIDE])
        for job, url in zip(jobs, INSIDE, strict=True):
            done = await pages.app.wait(job.id, timeout=60)
            assert done.error is not None, url
            assert done.error.type == "AddressRefused", (url, done.error)
            assert "pass@" not in done.error.message
    assert site.hits == []


async def test_no_hop_of_a_page_or_of_its_robots_txt_leads_inside(
    reader: Reader, site: CountingServer
) -> None:
    """First the page redirects, after two harmless hops; then, for another host, robots.txt."""
    site.answers["/a"] = redirect("/b", 307)
    site.answers["/b"] = redirect("/c", 301)
    days = 0
    async with reader.running(clock=lambda: days * 86_400.0) as pages:
        for url in INSIDE:
            days += 1  # so that robots.txt is asked for again
            site.answers["/robots.txt"] = NO_RULES
            site.answers["/c"] = redirect(url.encode().decode("latin-1"), 303)
            site.hits.clear()
            why, _ = await pages.refusal(site.url("/a"))
            assert why == "address", url
            assert [hit.path for hit in site.hits] == ["/robots.txt", "/a", "/b", "/c"], url
            site.hits.clear()
            site.answers["/robots.txt"] = redirect("/c")
            why, _ = await pages.refusal(site.url("/page", host="localhost"))
            assert why == "address", url
            assert [hit.path for hit in site.hits] == ["/robots.txt", "/c"], url


@asynccontextmanager
async def with_names(reader: Reader, names: Names, wire: Wire) -> AsyncIterator[Reader]:
    """Nothing is allowed besides the open internet, which is all one server."""
    async with reader.running(max_retries=0) as pages:
        client = pages.orchestrator._engine.services.requests.client
        client._guarded = GuardedClient(GuardedNetwork(parse_allow([]), names, wire))
        yield pages


async def test_name_that_is_public_for_robots_txt_and_private_for_the_page_gains_nothing(
    reader: Reader, site: CountingServer
) -> None:
    site.answers |= {"/robots.txt": NO_RULES, "/page": ARTICLE}
    wire = Wire(site.port)
    async with with_names(reader, Names([PUBLIC], [METADATA]), wire) as pages:
        why, said = await pages.refusal("http://rebind.example/page")
        assert why == "address"
        assert "rebind.example:80" in said
    assert wire.reached == [PUBLIC]
    assert site.at("/page") == []


async def test_name_that_turns_private_between_two_hops_gains_nothing(
    reader: Reader, site: CountingServer
) -> None:
    site.answers |= {"/robots.txt": NO_RULES, "/page": ARTICLE}
    site.answers["/a"] = Answer(302, headers={"location": "/page", "connection": "close"})
    wire = Wire(site.port)
    async with with_names(reader, Names([PUBLIC], [PUBLIC], ["127.0.0.1"]), wire) as pages:
        assert (await pages.refusal("http://rebind.example/a"))[0] == "address"
    assert wire.reached == [PUBLIC, PUBLIC]
    assert site.at("/page") == []


async def test_name_with_one_private_address_is_not_asked_for_its_robots_txt(
    reader: Reader, site: CountingServer
) -> None:
    wire = Wire(site.port)
    async with with_names(reader, Names([PUBLIC, "10.0.0.1"]), wire) as pages:
        assert (await pages.refusal("http://mixed.example/page"))[0] == "address"
    assert wire.reached == []


async def test_robots_txt_that_redirects_to_a_name_inside_is_not_followed(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/robots.txt"] = Answer(
        302, headers={"location": "http://inside.example/robots.txt", "connection": "close"}
    )
    wire = Wire(site.port)
    async with with_names(reader, Names([PUBLIC], ["192.168.1.1"]), wire) as pages:
        why, said = await pages.refusal("http://outside.example/page")
        assert why == "address"
        assert "inside.example:80" in said
    assert wire.reached == [PUBLIC]


async def test_page_of_a_public_name_is_read_over_what_was_vetted(
    reader: Reader, site: CountingServer
) -> None:
    site.answers |= {"/robots.txt": NO_RULES, "/page": ARTICLE}
    wire = Wire(site.port)
    async with with_names(reader, Names([PUBLIC]), wire) as pages:
        document = await pages.read("http://open.example/page")
        assert document.ref.id == "open.example/page"
    assert wire.reached == [PUBLIC, PUBLIC]
    assert {hit.headers["host"] for hit in site.hits} == {"open.example"}
