"""The parser pool: documents of all kinds go in, and the parent is never the worse for it."""

import asyncio
import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from penstock.documents.chunk import ChunkSettings
from penstock.documents.mask import mask, prepare
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.pool import ParserPool
from penstock.documents.parsed import Parsed
from penstock.errors import ConfigError, ParserError
from penstock.model.document import Staged
from tests.support import documents
from tests.support.documents import ENGLISH, JAPANESE, MAKERS, MIMES, SENTENCES, damaged
from tests.support.loop_blocking import bursts
from tests.support.page_samples import KOREAN, page
from tests.support.waiting import until

SLOW_HTML = b"<html>" + b"<div>a</div>" * 1_000_000
"""Takes seconds to read, so that there is time to do something to the child."""


async def gone(*pids: int) -> None:
    """Waits until none of the processes is left, not even as a zombie."""
    await until(lambda: not any(psutil.pid_exists(pid) for pid in pids), "children to be gone")


async def busy(pool: ParserPool) -> int:
    """The pid of a child, once it is at work on a document."""

    def found() -> int | None:
        for pid in pool.pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                if psutil.Process(pid).cpu_times().user > 0.1:  # a fork has loaded all
                    return pid
        return None

    return await until(found, "a child at work")


@pytest.mark.new_parsers
async def test_every_format_comes_back_from_bytes_and_from_a_file(tmp_path: Path) -> None:
    async with ParserPool(size=1) as pool:
        for name, make in MAKERS.items():
            data = make()
            path = tmp_path / f"{name}.wrong.extension.exe"
            path.write_bytes(data)
            parsed = await pool.parse(data)
            assert parsed == await pool.parse(path)
            assert parsed.mime == MIMES[name]
            assert all(sentence in parsed.text for sentence in SENTENCES)
        pids = pool.pids
        assert len(pids) == 1
    await gone(*pids)
    assert len(os.listdir(tmp_path)) == len(MAKERS)


async def test_document_staged_in_one_go_is_what_it_is_step_by_step() -> None:
    settings = ChunkSettings(size=100, overlap=24, slack=6)
    async with ParserPool(size=1) as pool:
        for data, web in [*((make(), None) for make in MAKERS.values()), (page(KOREAN), "utf-8")]:
            parsed = await pool.parse(data, web=web)
            prepared = prepare(parsed, "given", mask)
            chunks = await pool.cut(prepared.uncut, settings)
            staged = await pool.stage(data, "given", settings, web)
            assert isinstance(staged, Staged)
            assert bool(staged.reading) == (staged.mime == "text/html")
            assert staged.reading == prepared.reading
            assert chunks
            assert staged.chunks == chunks
            assert (staged.text, staged.title) == (prepared.uncut.text, prepared.title)
            assert (staged.mime, staged.masked) == (parsed.mime, prepared.masked)


async def test_what_comes_out_of_a_staging_child_is_masked() -> None:
    text = "# mia@example.org\n\nWrite to mia@example.org or call 010-1234-5678."
    async with ParserPool(size=1) as pool:
        staged = await pool.stage(text.encode(), "given", ChunkSettings())
    assert isinstance(staged, Staged)
    assert staged.masked == {"email": 2, "phone": 1}
    assert "mia@" not in repr(staged)
    assert "1234-5678" not in repr(staged)


def test_what_a_page_says_of_itself_is_masked() -> None:
    reading = {"text": "main", "author": "Mia Weir, mia@example.org, 010-1234-5678"}
    ready = prepare(Parsed("text", None, "text/html", reading=reading), "given", mask)
    assert ready.staged([], "text/html").reading == {
        "text": "main",
        "author": "Mia Weir, [EMAIL], [PHONE]",
    }


@pytest.mark.new_parsers
async def test_where_trafilatura_is_not_installed_pages_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a real child, which looks for modules here first."""
    missing = "raise ModuleNotFoundError('not installed', name=__name__)"
    (tmp_path / "trafilatura.py").write_text(missing)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with ParserPool(size=1) as pool:
        parsed = await pool.parse(page(), web="")
    assert parsed.reading["text"] == "whole"
    assert "pip install" in parsed.reading["why"]


async def test_errors_cross_the_pipe_with_their_reason(tmp_path: Path) -> None:
    cases: list[tuple[bytes | Path, str]] = [
        (b"", "empty"),
        (documents.pdf(password="secret"), "encrypted"),
        (documents.word(password="secret"), "encrypted"),
        (documents.pdf()[:900], "corrupt"),
        (random.Random(1).randbytes(2_000), "unknown"),
        (tmp_path / "nothing", "unreadable"),
        (tmp_path, "unreadable"),
    ]
    async with ParserPool(size=1) as pool:
        for source, reason in cases:
            with pytest.raises(ParserError) as caught:
                await pool.parse(source)
            assert caught.value.reason == reason
        (await pool.parse(documents.plain()))
        assert len(pool.pids) == 1


async def test_size_is_refused_before_anything_is_sent() -> None:
    async with ParserPool(size=1, limits=ParseLimits(input_bytes=10)) as pool:
        with pytest.raises(ParserError) as caught:
            await pool.parse(b"x" * 11)
        assert caught.value.reason == "oversized"
        assert pool.pids == []


@pytest.mark.parametrize("name", MAKERS)
async def test_damaged_documents_end_as_text_or_as_an_error(name: str) -> None:
    rng = random.Random(name)
    async with ParserPool(size=1) as pool:
        for data in damaged(MAKERS[name](), rng, 30):
            try:
                parsed = await pool.parse(data)
            except ParserError as error:
                assert error.reason != "slow"  # noqa: PT017 (text is as good an end)
            else:
                assert parsed.text.strip()
        assert ENGLISH in (await pool.parse(MAKERS[name]())).text


async def test_a_child_that_hangs_is_killed_and_the_pool_goes_on() -> None:
    async with ParserPool(size=1) as pool:
        await pool.parse(documents.plain())
        (pid,) = pool.pids
        os.kill(pid, signal.SIGSTOP)
        pool._limits = ParseLimits(seconds=2)
        started = time.monotonic()

        with pytest.raises(ParserError) as caught:
            await pool.parse(documents.pdf())

        assert caught.value.reason == "slow"
        assert time.monotonic() - started < 40
        await gone(pid)
        pool._limits = ParseLimits()
        assert len((await pool.parse(documents.pdf())).pages) == 3


async def test_a_document_that_takes_too_long_is_given_up() -> None:
    async with ParserPool(size=1, limits=ParseLimits(seconds=1)) as pool:
        with pytest.raises(ParserError) as caught:
            await pool.parse(SLOW_HTML)

        assert caught.value.reason == "slow"
        assert pool.pids == []


@pytest.mark.new_parsers
async def test_a_document_that_takes_too_much_memory_is_given_up() -> None:
    async with ParserPool(size=1, limits=ParseLimits(megabytes=100)) as pool:
        with pytest.raises(ParserError) as caught:
            await pool.parse(b"word " * 9_000_000)

        assert caught.value.reason == "memory"
        assert JAPANESE in (await pool.parse(documents.plain())).text


async def test_cancelling_the_caller_kills_the_child() -> None:
    async with ParserPool(size=1) as pool:
        task = asyncio.create_task(pool.parse(SLOW_HTML))
        pid = await busy(pool)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        await gone(pid)
        assert (await pool.parse(documents.plain())).text


async def test_a_caller_cancelled_in_the_queue_costs_nothing() -> None:
    async with ParserPool(size=1) as pool:
        first = asyncio.create_task(pool.parse(SLOW_HTML[:200_000]))
        second = asyncio.create_task(pool.parse(documents.plain()))
        await busy(pool)
        second.cancel()

        assert (await first).text
        assert len(pool.pids) == 1


async def test_a_child_killed_from_outside_costs_no_document() -> None:
    async with ParserPool(size=1) as pool:
        await pool.parse(documents.plain())
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)

        assert (await pool.parse(documents.plain())).text
        assert pid not in pool.pids


async def test_a_document_that_kills_its_child_twice_is_at_fault() -> None:
    async def kill_each(pool: ParserPool) -> None:
        while True:
            os.kill(await busy(pool), signal.SIGKILL)
            await asyncio.sleep(0.05)

    async with ParserPool(size=1) as pool:
        killer = asyncio.create_task(kill_each(pool))
        with pytest.raises(ParserError) as caught:
            await pool.parse(SLOW_HTML)
        killer.cancel()

        assert caught.value.reason == "crashed"
        assert (await pool.parse(documents.plain())).text


async def test_a_child_is_replaced_after_enough_documents() -> None:
    async with ParserPool(size=1, limits=ParseLimits(requests=2)) as pool:
        seen = []
        for _ in range(4):
            await pool.parse(documents.plain())
            seen += pool.pids

        assert len(seen) == 2
        assert len(set(seen)) == 2
        await gone(*seen)


async def test_no_more_children_than_asked_for() -> None:
    async with ParserPool(size=2) as pool:
        most = 0

        async def one() -> None:
            nonlocal most
            await pool.parse(documents.markdown())
            most = max(most, len(pool.pids))

        await asyncio.gather(*(one() for _ in range(20)))

        assert most == 2


async def test_closing_kills_busy_children_too() -> None:
    pool = ParserPool(size=1)
    task = asyncio.create_task(pool.parse(SLOW_HTML))
    pid = await busy(pool)

    await pool.close()

    await gone(pid)
    with pytest.raises(RuntimeError, match="closed"):
        await task
    with pytest.raises(RuntimeError, match="closed"):
        await pool.parse(documents.plain())


@pytest.mark.new_parsers
async def test_closing_while_a_child_starts_leaves_none() -> None:
    pool = ParserPool(size=1)
    task = asyncio.create_task(pool.parse(documents.plain()))
    await asyncio.sleep(0)

    await pool.close()

    with pytest.raises(RuntimeError, match="closed"):
        await task
    assert pool.pids == []


@pytest.mark.new_parsers
async def test_a_child_that_cannot_start_is_not_the_documents_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    async with ParserPool(size=1) as pool:
        with pytest.raises(RuntimeError, match="ended as it started"):
            await pool.parse(documents.plain())
        assert pool.pids == []


async def test_the_event_loop_is_not_held_up_by_megabytes_of_csv() -> None:
    data = documents.csv(rows=5_000_000 // 95)
    assert len(data) > 4_000_000

    async with ParserPool(size=1) as pool:
        await pool.parse(documents.plain())
        async with bursts() as seen:
            parsed = await pool.parse(data)

    assert parsed.mime == "text/csv"
    assert parsed.text.count("\n") == data.count(b"\n")
    assert seen.longest < 0.5, "seconds of CPU; to read it here would take some"


@pytest.mark.new_parsers
async def test_nothing_of_a_document_reaches_output_or_log(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with ParserPool(size=1) as pool:
        for make in MAKERS.values():
            data = make()
            await pool.parse(data)
            with contextlib.suppress(ParserError):
                await pool.parse(data[: len(data) * 2 // 3])
    output = capfd.readouterr()

    assert output.out + output.err == ""
    assert not any(sentence in caplog.text for sentence in SENTENCES)


@pytest.mark.new_parsers
async def test_a_child_inherits_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_SECRET", "hunter2")
    async with ParserPool(size=1) as pool:
        await pool.parse(documents.plain())
        (pid,) = pool.pids

        assert "PENSTOCK_TEST_SECRET" not in psutil.Process(pid).environ()


async def test_a_child_does_not_outlive_its_parent() -> None:
    program = """
        import asyncio
        from penstock.documents.parse.pool import ParserPool

        async def main():
            async with ParserPool(size=1) as pool:
                await pool.parse(b"warm up")
                print(*pool.pids, flush=True)
                await pool.parse(b"<html>" + b"<div>a</div>" * 3_000_000)

        asyncio.run(main())
    """
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(program), stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    parent.kill()
    await parent.communicate()

    await gone(child)


def test_the_parent_loads_no_parser() -> None:
    code = (
        "import sys, penstock.documents.parse, penstock.documents.mask, penstock.documents.chunk;"
        "print([name for name in ('pypdfium2', 'html.parser', 'zipfile') if name in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout

    assert output.strip() == "[]"


def test_a_pool_without_children_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        ParserPool(size=0)


@pytest.mark.new_parsers
def test_a_caller_cancelled_at_any_moment_leaves_no_process_behind() -> None:
    """One that was forgotten is told of by a warning, which is an error here."""
    chance = random.Random(1)

    async def lose_patience() -> None:
        async with ParserPool(size=1) as pool:
            asking = asyncio.ensure_future(pool.parse(b"text"))
            await asyncio.sleep(chance.random() * 0.02)
            for _ in range(3):
                asking.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert pool.pids == []

    for _ in range(20):
        asyncio.run(lose_patience())
    gc.collect()
