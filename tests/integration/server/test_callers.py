"""Who may call, for whom, and how often."""

import httpx2 as httpx

from tests.support.cli import Cli
from tests.support.serve_process import Host

BODIES = {
    "searches": {"queries": ["its secret"]},
    "signals": {"name": "go"},
    "stop": {"mode": "immediate"},
}
"""What routes take that are about one thing, by the last word of their path."""


def test_it_does_not_listen_elsewhere_without_a_key(cli: Cli) -> None:
    done = cli("serve", "--host", "0.0.0.0", "--port", "0", code=2)  # noqa: S104
    assert "penstock keys create" in done.err


async def test_keys_are_asked_for_and_scopes_are_kept(host: Host) -> None:
    keys = {name: host.key(name, scopes=name) for name in ("read", "write", "admin")}
    served = host.serve("--no-workers", require_key=True)
    calls = {
        "read": ("GET", "/v1/jobs", 200),
        "write": ("POST", "/v1/jobs", 202),
        "admin": ("POST", "/v1/lanes/openalex/pause", 200),
    }
    for name, key in keys.items():
        async with served.client(key) as client:
            for scope, (method, path, good) in calls.items():
                body = {"kind": "add"} if method == "POST" and path == "/v1/jobs" else None
                answer = await client.request(method, path, json=body)
                assert answer.status_code == (good if scope == name else 403), (name, scope)
    for headers in (
        {},
        {"Authorization": "Bearer pk_wrong"},
        {"Authorization": "Basic eDp5"},
        {"Authorization": "Bearer"},
    ):
        async with served.client() as client:
            answer = await client.get("/v1/jobs", headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.get("/metrics")).status_code == 401


async def test_which_hosts_are_fetched_is_for_admins(host: Host) -> None:
    reader, admin = host.key("reader", scopes="read"), host.key("admin", scopes="read admin")
    served = host.serve("--no-workers", require_key=True)
    async with served.client(reader) as client, served.client(admin) as other:
        for lane in ("openalex", "host:example.org"):
            assert (await other.post(f"/v1/lanes/{lane}/pause")).status_code == 200
        seen = [
            [lane["name"] for lane in (await one.get("/v1/lanes")).json()["lanes"]]
            for one in (client, other)
        ]
        assert "host:example.org" in seen[1]
        assert "openalex" in seen[0]
        assert not any(name.startswith("host:") for name in seen[0])


async def test_a_revoked_key_is_good_for_nothing(host: Host) -> None:
    key = host.key("short lived")
    listed = host.cli("keys", "list", "--json").json
    host.cli("keys", "revoke", listed[0]["id"])
    other = host.key("other")
    served = host.serve("--no-workers", require_key=True)
    async with served.client(key) as client:
        assert (await client.get("/v1/jobs")).status_code == 401
    async with served.client(other) as client:
        assert (await client.get("/v1/jobs")).status_code == 200


async def test_over_its_rate_a_key_is_told_when_to_come_back(host: Host) -> None:
    key, other = host.key("one"), host.key("two")
    served = host.serve("--no-workers", require_key=True, requests_per_minute=2)
    async with served.client(key) as client, served.client(other) as second:
        answers = [await client.get("/v1/jobs") for _ in range(3)]
        assert [one.status_code for one in answers] == [200, 429, 429]
        assert answers[0].headers["ratelimit-policy"] == '"key";q=2;w=60'
        assert answers[0].headers["ratelimit"].startswith('"key";r=0;')
        assert 1 <= int(answers[2].headers["retry-after"]) <= 30
        assert answers[2].headers["content-type"] == "application/problem+json"
        assert (await second.get("/v1/jobs")).status_code == 200


async def test_pages_of_other_sites_and_other_names_are_refused(host: Host) -> None:
    served = host.serve("--no-workers", hosts=["docs.example.org"])
    async with served.client() as client:

        async def status(**headers: str) -> int:
            return (await client.get("/v1/jobs", headers=headers)).status_code

        assert await status(Host="evil.example") == 421
        assert await status(Host="127.0.0.1.evil.example") == 421
        assert await status(Host="docs.example.org") == 200
        assert await status(Host="localhost:1234") == 200
        assert await status(Origin="https://evil.example") == 403
        assert await status(Origin="null") == 403
        assert await status(Origin=served.url) == 200
        assert await status(Origin="http://localhost:1") == 403, "another server of this machine"
        assert await status(Host="docs.example.org", Origin="https://docs.example.org") == 200
        assert await status(**{"X-Forwarded-For": "10.0.0.1"}) == 401


async def test_a_tenant_sees_only_its_own(host: Host) -> None:
    """Every route that takes an id, with the ids of another tenant: as if there were none."""
    ours, theirs = host.key("a", tenant="a"), host.key("b", tenant="b")
    served = host.serve(require_key=True)
    async with served.client(ours) as mine, served.client(theirs) as other:
        job = (await mine.post("/v1/jobs", json={"kind": "fail"})).json()["id"]
        await mine.get(f"/v1/jobs/{job}?wait=60")
        made = await mine.put("/v1/index/secret", json={"text": "The turbine's secret."})
        assert made.status_code == 200
        task = (await mine.post("/v1/tasks", json={"question": "What is it?"})).json()["task_id"]
        asked_of = await mine.post("/v1/answers", json={"question": "What is the secret?"})
        answer_id = asked_of.json()["answer_id"]
        assert "secret" in asked_of.json()["text"]
        ids = {
            "{document_id}": "secret",
            "{job_id}": job,
            "{task_id}": task,
            "{answer_id}": answer_id,
        }
        paths = (await mine.get("/openapi.json")).json()["paths"]
        asked = 0
        for path, operations in paths.items():
            url = path
            for name, known in ids.items():
                url = url.replace(name, known)
            if url == path or "{" in url:  # it takes no id, or that of a lane
                continue
            for method in operations:
                if method == "put":
                    continue  # it makes one of its own
                body = BODIES.get(path.rpartition("/")[2])
                answer = await other.request(method, url, json=body)
                assert answer.status_code == 404, (method, url, answer.status_code)
                asked += 1
        assert asked >= 16
        for path in (
            f"/v1/tasks/{task}?wait=300",
            f"/v1/answers/{answer_id}?wait=300",
            "/v1/pages?document=secret&collection=default",
        ):
            assert (await other.get(path)).status_code == 404, path
        await _lists_hold_nothing(other, job)
        own = await other.put("/v1/index/secret", json={"text": "Another of that name."})
        assert own.status_code == 200
        assert (await mine.get(f"/v1/jobs/{job}")).json()["state"] == "failed"
        assert (await mine.get(f"/v1/tasks/{task}")).json()["status"] == "running"
        assert (await mine.get(f"/v1/answers/{answer_id}")).json()["state"] == "completed"
        chunks = (await mine.get("/v1/documents/secret/chunks")).json()["chunks"]
        assert [one["text"] for one in chunks] == ["The turbine's secret."]


async def _lists_hold_nothing(other: httpx.AsyncClient, job: str) -> None:
    assert (await other.get("/v1/jobs")).json()["jobs"] == []
    assert (await other.get("/v1/dead-letters")).json()["jobs"] == []
    assert (await other.get("/v1/documents")).json()["documents"] == []
    assert (await other.get("/v1/tasks")).json()["tasks"] == []
    assert (await other.get("/v1/answers")).json()["answers"] == []
    nothing = await other.post("/v1/answers", json={"question": "What is the turbine's secret?"})
    assert nothing.json()["evidence"] == []
    found = await other.post("/v1/search", json={"question": "the turbine's secret"})
    assert found.json()["passages"] == []
    for verb in ("redrive", "discard"):
        for which in ({"all": True}, {"ids": [job]}):
            answer = await other.post(f"/v1/dead-letters/{verb}", json=which)
            assert answer.json()["count"] == 0
