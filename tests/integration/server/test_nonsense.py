"""Bodies, paths and file names that nobody means well with: each is taken or refused, none breaks
the server, and what is taken can be read back."""

import json

import pytest

from tests.support.postgres import new_url
from tests.support.raw_http import Reply, Wire, first
from tests.support.serve_process import Host

HALF = "\\ud800"
"""Half a character, as JSON writes it."""
DEEP = "[" * 500 + "]" * 500


@pytest.fixture(params=["sqlite", "postgres"])
def anywhere(request: pytest.FixtureRequest, host: Host) -> Host:
    if request.param == "postgres":
        host.cli.environment["PENSTOCK_QUEUE"] = new_url()
        host.cli.environment["PENSTOCK_BLOBS"] = str(host.cli.folder / "blobs")
    return host


REFUSED = {
    "/v1/jobs": [
        f'{{"kind":"mail.send","payload":{{"to":"{HALF}"}}}}',
        f'{{"kind":"mail.send","payload":{{"{HALF}":1}}}}',
        f'{{"kind":"mail.send","key":"{HALF}"}}',
        f'{{"kind":"mail.send","log":"{HALF}"}}',
        f'{{"kind":"other","payload":{{"a":{DEEP}}}}}',
        '{"kind":"mail.send","key":"a\\u0000b"}',
        '{"kind":"mail.send","log":"a\\nb"}',
        '{"kind":"other","payload":{"a":NaN}}',
        '{"kind":"other","payload":{"a":1e999}}',
        '{"kind":"other","payload":{"a":' + "9" * 401 + "}}",
        '{"kind":"other","payload":{"a":' + "9" * 5000 + "}}",
        '{"kind":"other","delay":NaN}',
        '{"kind":"other\\n"}',
        "[" * 900_000,
        '"' + "[" * 500,
    ],
    "/v1/documents": [
        f'{{"text":"{HALF}"}}',
        f'{{"text":"a","id":"{HALF}"}}',
        f'{{"text":"a","title":"{HALF}"}}',
        f'{{"text":"a","collection":"{HALF}"}}',
        f'{{"text":"a","metadata":{{"a":"{HALF}"}}}}',
        f'{{"text":"a","metadata":{{"a":["{HALF}"]}}}}',
        f'{{"text":"a","metadata":{{"{HALF}":1}}}}',
        f'{{"text":"a","metadata":{{"a":{DEEP}}}}}',
        f'{{"url":"http://example.org/{HALF}"}}',
        '{"url":"http://example.org/\\r\\nX: y"}',
        '{"text":"a","id":"a\\r\\nX-Evil: 1"}',
        '{"text":"a","id":"a\\u0000"}',
    ],
    "/v1/search": [
        f'{{"question":"{HALF}"}}',
        f'{{"question":"a","metadata":{{"a":"{HALF}"}}}}',
        f'{{"question":"a","metadata":{{"a":{DEEP}}}}}',
        f'{{"question":"a","documents":["{HALF}"]}}',
        '{"question":"a","documents":["\\u0000"]}',
    ],
    "/v1/tasks": [
        f'{{"question":"{HALF}"}}',
        '{"question":"a","budget_seconds":NaN}',
        '{"question":"a","budget_seconds":1e999}',
        '{"question":"a","budget_pages":' + "9" * 5000 + "}",
        '{"question":"a","budget_pages":1.5}',
        '{"question":["a"]}',
        '{"question":"' + "a" * 10_001 + '"}',
    ],
    "/v1/dead-letters/redrive": [
        f'{{"log":"{HALF}"}}',
        f'{{"kind":"{HALF}"}}',
        '{"ids":["\\u0000"]}',
        '{"log":"a\\u0000"}',
    ],
}

TAKEN = {
    "/v1/jobs": [
        '{"kind":"other","payload":{"a":"nul \\u0000"}}',
        '{"kind":"other","payload":{"a":"\\ud83d\\ude00"}}',
        '{"kind":"other","payload":{"a":' + "9" * 400 + "}}",
        '{"kind":"other","payload":{"a":' + "[" * 90 + "]" * 90 + "}}",
        '\ufeff{"kind":"other"}',
    ],
    "/v1/documents": [
        '{"text":"nul \\u0000","id":"nul"}',
        '{"text":"a","id":"in metadata","metadata":{"a":"\\u0000"}}',
        '{"text":"a","id":"../../etc"}',
        '{"text":"a","id":"\\ud83d\\ude00\\"; filename=x"}',
    ],
    "/v1/tasks": ['{"question":"nul \\u0000"}', '{"question":"\\ud83d\\ude00 # [x](y) {}"}'],
    "/v1/search": ['{"question":"a\\u0000b"}', '{"question":"\\" OR NEAR( * ^ - ) : {"}'],
    "/v1/dead-letters/redrive": ['{"ids":["nobody"]}', '{"log":"\\ud83d\\ude00"}'],
}


async def test_every_string_of_a_body_may_be_nonsense(anywhere: Host) -> None:
    served = anywhere.serve("--no-workers")
    wire = await Wire.open(served.url)
    for bodies, good in ((REFUSED, False), (TAKEN, True)):
        for path, some in bodies.items():
            for body in some:
                reply = await wire.ask("POST", path, body.encode())
                assert reply.status in ((200, 201, 202) if good else (413, 422)), (body[:80], reply)
                if "location" in reply.headers:
                    assert (await wire.ask("GET", reply.headers["location"])).status == 200
                if reply.headers.get("connection") == "close":
                    wire.close()
                    wire = await Wire.open(served.url)
    wire.close()
    assert "failed" not in served.running.err


PATHS = (
    "/v1/jobs/%ff%fe",
    "/v1/jobs/%00",
    "/v1/jobs/%ed%a0%80",
    "/v1/jobs?kind=%00&log=%ff&before=%00",
    "/v1/jobs?error_type=%00",
    "/v1/jobs?parent=%00",
    "/v1/jobs/x?wait=nan",
    "/v1/jobs?%=%&&=",
    "/v1/documents/..%2f..%2fetc%2fpasswd",
    "/v1/documents/%2e%2e",
    "/v1/documents/%00/events",
    "/v1/documents?collection=%00",
    "/v1/documents?collection=%ed%a0%80",
    "/v1/documents?before=99999999999999999999",
    "/v1/tasks/%00",
    "/v1/tasks/%ed%a0%80?wait=300",
    "/v1/tasks/x?wait=nan",
    "/v1/tasks/x?since=99999999999999999999",
    "/v1/tasks/%0d%0aX:%20y/export",
    "/v1/tasks/%ff/events",
    "/v1/tasks?before=%ed%a0%80",
    "/v1/pages?document=%ed%a0%80",
    "/v1/pages?document=http://[&cursor=999999999999",
    "/v1/lanes/%0d%0aX:%20y/pause",
    "//v1/jobs",
    "/v1/../v1/jobs",
    "/%2576%2531/jobs",
    "*",
)


async def test_paths_and_queries_may_be_nonsense(anywhere: Host) -> None:
    served = anywhere.serve("--no-workers")
    for path in PATHS:
        wire = await Wire.open(served.url)
        reply = await wire.ask("GET", path)
        assert reply.status in (200, 404, 405, 422), (path, reply)
        wire.close()
    assert "failed" not in served.running.err


async def test_a_place_to_resume_may_be_nonsense(host: Host) -> None:
    from base64 import urlsafe_b64encode

    served = host.serve("--no-workers")
    for place in ("[" * 1000, '[1e999,"x"]', '{"a":1,"b":2}', '["1","\\u0000"]', "1", "\xff"):
        wire = await Wire.open(served.url)
        coming = wire.events(
            "/v1/events?last_event_id=" + urlsafe_b64encode(place.encode()).decode()
        )
        assert (await first(coming))[0] == "reset", place
        await coming.aclose()  # type: ignore[attr-defined]
        wire.close()


FILES = {
    b'filename="\xeb\xb0\xb0\xea\xb4\x80.txt"': "배관.txt",
    b"filename*=UTF-8''%EB%B0%B0%EA%B4%80.txt": "배관.txt",
    b"filename*=iso-8859-1'en'caf%E9.txt": "café.txt",
    b'filename*0="a"; filename*1="b.txt"': "ab.txt",
    b'filename="a\\"b\\".txt"': 'a"b".txt',
    b'filename="../../etc/passwd"': "passwd",
    b'filename="C:\\\\temp\\\\x.txt"': "x.txt",
    b'filename="caf\xe9.txt"': "caf\ufffd.txt",
    b"filename*=unicode_escape''%5Cud800.txt": None,
    b"filename*=undefined''x.txt": None,
    b"filename*=idna''x%ff..txt": None,
    b"filename*=a%00b''x.txt": None,
    b"filename*=UTF-8''a%0D%0AX-Evil%3A1.txt": None,
    b"filename*=UTF-8''a%00b.txt": None,
    b'filename="' + b"n" * 3000 + b'"': None,
    b'filename="' + b"n" * 1_000_000 + b'"': None,
}
"""What is said of a file, and its name; None: that is refused."""


def part(said: bytes, content: bytes = b"Some text.") -> bytes:
    return b"--B\r\nContent-Disposition: form-data; " + said + b"\r\n\r\n" + content + b"\r\n"


async def upload(wire: Wire, body: bytes, boundary: str = "boundary=B") -> Reply:
    headers = {"Content-Type": f"multipart/form-data; {boundary}"}
    return await wire.ask("POST", "/v1/documents", body, headers)


async def test_file_names_may_be_nonsense(host: Host) -> None:
    served = host.serve("--no-workers")
    for said, name in FILES.items():
        wire = await Wire.open(served.url)
        reply = await upload(wire, part(b'name="file"; ' + said) + b"--B--\r\n")
        if name is None:
            assert reply.status == 422, (said[:80], reply)
        else:
            assert reply.json["documents"][0]["id"] == name, said
            assert (await wire.ask("GET", reply.headers["location"])).json["id"] == name
            assert "x-evil" not in reply.headers
        wire.close()
    assert "failed" not in served.running.err
    inside = {path.parent.name for path in host.cli.folder.rglob("*passwd*")}
    assert inside == set(), "no file is called what a caller says"


async def test_forms_may_be_nonsense(host: Host) -> None:
    served = host.serve("--no-workers")
    file = part(b'name="file"; filename="x"') + b"--B--\r\n"
    bodies = {
        part(b'name="metadata"', b"[" * 30_000) + file: 422,
        part(b'name="metadata"', f'{{"a":{DEEP}}}'.encode()) + file: 422,
        part(b'name="metadata"', f'{{"a":"{HALF}"}}'.encode()) + file: 422,
        part(b'name="title"', b"\xff") + file: 422,
        part(b"name*=UTF-8''title", b"a") + file: 202,
        part(b'name="title"', b"a") * 100_000 + file: 413,
        b"\r\n" * 100_000: 422,
        b"--B\r\n" + b"X: y\r\n" * 1000 + b"\r\n" + file: 422,
    }
    for body, status in bodies.items():
        wire = await Wire.open(served.url)
        assert (await upload(wire, body)).status == status, body[:80]
        wire.close()
    for boundary in ("", "boundary=", "boundary*=undefined''B", f"boundary={'x' * 300}"):
        wire = await Wire.open(served.url)
        assert (await upload(wire, file, boundary)).status == 422, boundary
        wire.close()
    assert "failed" not in served.running.err


async def test_what_a_key_and_a_handler_say_stays_with_their_owner(host: Host) -> None:
    """Secrets, and the texts of errors, are in no log and no answer to others."""
    mine, other = host.key("a", tenant="a"), host.key("b", tenant="b", scopes="read write admin")
    host.others["log_errors"] = "type"
    served = host.serve(require_key=True)
    wire = await Wire.open(served.url)
    as_a, as_b = ({"Authorization": f"Bearer {key}"} for key in (mine, other))
    body = {"kind": "fail", "payload": {"message": "my-very-own-words"}}
    job = (await wire.ask("POST", "/v1/jobs", body, as_a)).json["id"]
    told = await wire.ask("GET", f"/v1/jobs/{job}?wait=60", headers=as_a)
    assert b"my-very-own-words" in told.body
    for path in ("/v1/jobs", "/v1/dead-letters", "/v1/lanes", "/metrics", f"/v1/jobs/{job}"):
        assert b"my-very-own" not in (await wire.ask("GET", path, headers=as_b)).body, path
    for header in (f"Bearer {mine}x", mine, f"Basic {mine}", f"Bearer {mine}\x00"):
        odd = await Wire.open(served.url)
        reply = await odd.ask("GET", "/v1/jobs", headers={"Authorization": header})
        assert reply.status in (400, 401)
        assert mine.encode() not in reply.body
        odd.close()
    wire.close()
    done = served.stop()
    for secret in (mine, other, mine.rpartition("_")[2]):
        assert secret not in done.err + done.out
    assert "my-very-own-words" not in json.dumps(done.err)
