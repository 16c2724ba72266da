"""What a release has stored is there, and goes on, with the code as it is now."""

from pathlib import Path

import pytest

from penstock import JobState
from tests.support.release_dump import DATABASES, RELEASES, TEXT, release_app, restore

DUMPS = [
    (release.name, dump.name.partition(".")[0])
    for release in sorted(RELEASES.iterdir())
    for dump in sorted(release.iterdir())
]


@pytest.mark.parametrize(("release", "store"), DUMPS)
async def test_queue_of_a_release_goes_on(release: str, store: str, tmp_path: Path) -> None:
    app = release_app(await restore(RELEASES / release, store, tmp_path), store, tmp_path)

    async with app:
        jobs = {job.payload.get("name", "dead"): job for job in await app.jobs(kind="greet")}
        (dead,) = await app.jobs(kind="break")
        assert {name: job.state for name, job in jobs.items()} == {
            "Ada": JobState.COMPLETED,
            "Bob": JobState.QUEUED,
            "Eve": JobState.QUEUED,
        }
        assert jobs["Ada"].result == "hello Ada"
        assert [line["message"] for line in jobs["Ada"].lines] == ["greeting Ada"]
        assert dead.state is JobState.FAILED
        assert dead.error is not None
        assert "it never works" in dead.error.message
        assert [change.job_id for change in await app.changes("letters")] != []
        same = await app.enqueue("greet", {"name": "Bob"}, key="waiting", priority="high")
        assert same.id == jobs["Bob"].id

        async with app.running():
            done = await app.wait(jobs["Bob"].id, timeout=60)
            again = await app.wait((await app.rerun(jobs["Ada"])).id, timeout=60)
            assert [done.result, again.result] == ["hello Bob", "hello Ada"]
            if store in DATABASES:
                mill = await app.documents.get("mill")
                assert mill.metadata == {"year": 1847}
                found = await app.documents.search("Who built the wheel of the mill?")
                assert found.passages[0].text == TEXT
                await app.documents.add(TEXT + " It closed.", id="mill")
                await app.documents.wait("mill", timeout=60)
                assert [key.name for key in await app.keys.list()] == ["reader"]


def test_every_release_has_a_dump_of_every_store() -> None:
    assert DUMPS
    for release in RELEASES.iterdir():
        stores = {store for name, store in DUMPS if name == release.name}
        assert stores == {"sqlite", "postgres", "redis"}, release
