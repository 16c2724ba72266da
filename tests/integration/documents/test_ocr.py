"""Tesseract reads pictures in the parser's children, within their limits, and ends with them."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil
import pytest

from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.pool import ParserPool
from penstock.errors import ConfigError, ParserError
from tests.support import scans
from tests.support.documents import ENGLISH, JAPANESE, KOREAN
from tests.support.scans import noise, picture, saved
from tests.support.waiting import PAUSE, until

ALL = "eng+jpn+kor"
pytestmark = pytest.mark.usefixtures("tesseract")


@cache
def slow() -> bytes:
    """A picture that takes long to read."""
    return saved(noise(4_000), "TIFF")  # which need not be packed


def reading(child: psutil.Process) -> psutil.Process | None:
    """The tesseract that a child has started on a picture."""
    for one in child.children():
        with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):  # it was asked for its languages
            if one.name() == "tesseract" and "stdin" in one.cmdline():
                return one
    return None


def found(pool: ParserPool) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess):
        for pid in pool.pids:
            if (one := reading(psutil.Process(pid))) is not None:
                return one
    return None


async def started(pool: ParserPool) -> psutil.Process:
    """Tesseract, once a child has started it on a picture."""
    return await until(lambda: found(pool), "tesseract")


async def gone(process: psutil.Process) -> None:
    def is_gone() -> bool:
        try:
            # Whose child it is after its parent's death may take a while to take leave of it.
            return process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    await until(is_gone, "tesseract to be gone")


@pytest.mark.parametrize("how", ["PNG", "JPEG", "TIFF"])
async def test_pictures_are_read_in_three_languages(how: str) -> None:
    data = saved(picture(ENGLISH, JAPANESE, KOREAN), how)
    async with ParserPool(size=1) as pool:
        text = await pool.ocr(data, 1, ALL)
    assert [line for line in text.splitlines() if line] == [ENGLISH, JAPANESE, KOREAN]


async def test_the_page_that_is_asked_for_is_read(tmp_path: Path) -> None:
    path = tmp_path / "scan"
    async with ParserPool(size=1) as pool:
        path.write_bytes(scans.pdf("text", picture("The second page."), picture("The third page.")))
        assert await pool.ocr(path, 3, "eng") == "The third page."
        path.write_bytes(saved(picture("The first page."), "TIFF", picture("The second page.")))
        assert await pool.ocr(path, 2, "eng") == "The second page."
        assert len(pool.pids) == 1
    assert os.listdir(tmp_path) == ["scan"]


async def test_a_blank_page_has_no_text() -> None:
    async with ParserPool(size=1) as pool:
        assert await pool.ocr(saved(picture("", ""), "PNG"), 1, "eng") == ""


async def test_a_machine_without_tesseract_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with ParserPool(size=1) as pool:
        with pytest.raises(ConfigError, match="tesseract-ocr"):
            await pool.ocr(saved(picture("a"), "PNG"), 1, "eng")


async def test_a_language_that_is_missing_is_named_and_not_left_out() -> None:
    async with ParserPool(size=1) as pool:
        with pytest.raises(ConfigError, match=r"no data for chi_sim .* tesseract-ocr-chi-sim$"):
            await pool.ocr(saved(picture("a"), "PNG"), 1, "eng+chi_sim")


async def test_tesseract_is_killed_when_a_picture_takes_too_long() -> None:
    async def seen_within(seconds: float) -> psutil.Process | None:
        """Tesseract, if it was started before the time of its picture was over."""
        pool._limits = ParseLimits(seconds=seconds)
        reading = asyncio.create_task(pool.ocr(slow(), 1, ALL))
        tesseract = None
        while tesseract is None and not reading.done():
            await asyncio.sleep(PAUSE)
            tesseract = found(pool)
        with pytest.raises(ParserError) as caught:
            await reading
        assert caught.value.reason == "slow"
        return tesseract

    async with ParserPool(size=1) as pool:
        # A busy machine may take longer to start it at all.
        tesseract = await seen_within(3) or await seen_within(20)
        assert tesseract is not None
        await gone(tesseract)
        pool._limits = ParseLimits()
        assert await pool.ocr(saved(picture("Next."), "PNG"), 1, "eng") == "Next."


@pytest.mark.parametrize("how", ["cancelled", "closed"])
async def test_tesseract_is_killed_when_nobody_wants_its_answer(how: str) -> None:
    async with ParserPool(size=1) as pool:
        reading = asyncio.create_task(pool.ocr(slow(), 1, ALL))
        tesseract = await started(pool)
        if how == "cancelled":
            reading.cancel()
        else:
            await pool.close()
        with pytest.raises((asyncio.CancelledError, RuntimeError)):
            await reading
        await gone(tesseract)


async def test_tesseract_does_not_outlive_a_child_that_is_killed() -> None:
    async with ParserPool(size=1) as pool:
        reading = asyncio.create_task(pool.ocr(slow(), 1, ALL))
        tesseract = await started(pool)
        os.kill(pool.pids[0], signal.SIGKILL)
        await gone(tesseract)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_tesseract_does_not_outlive_the_process_that_asked() -> None:
    program = """
        import asyncio, sys
        from pathlib import Path
        from penstock.documents.parse.pool import ParserPool

        async def main():
            async with ParserPool(size=1) as pool:
                asking = asyncio.create_task(pool.ocr(sys.stdin.buffer.read(), 1, "eng"))
                while not pool.pids:
                    await asyncio.sleep(0.01)
                print(*pool.pids, flush=True)
                await asking

        asyncio.run(main())
    """
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", textwrap.dedent(program)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(slow())
    parent.stdin.close()
    child = psutil.Process(int(await parent.stdout.readline()))

    tesseract = await until(lambda: reading(child), "tesseract")
    parent.kill()
    await parent.wait()

    await gone(tesseract)
    await gone(child)


async def test_tesseract_keeps_to_the_memory_it_is_given() -> None:
    """What it says of that is nobody's business: it may quote the page."""
    async with ParserPool(size=1, limits=ParseLimits(megabytes=150)) as pool:
        with pytest.raises(ParserError) as caught:
            await pool.ocr(saved(noise(6_000), "TIFF"), 1, ALL)
        assert caught.value.reason in ("corrupt", "memory")


async def test_a_page_with_more_text_than_allowed_is_refused() -> None:
    async with ParserPool(size=1, limits=ParseLimits(page_characters=5)) as pool:
        with pytest.raises(ParserError, match="more than 5 characters") as caught:
            await pool.ocr(saved(picture(ENGLISH), "PNG"), 1, "eng")
        assert caught.value.reason == "oversized"


async def test_damaged_pictures_end_as_an_error() -> None:
    async with ParserPool(size=1, limits=ParseLimits(scans=5)) as pool:
        for how in ("PNG", "JPEG", "TIFF"):
            data = saved(picture(ENGLISH), how)
            for part in (10, 50, len(data) // 2):
                with pytest.raises(ParserError) as caught:
                    await pool.ocr(data[:part], 1, "eng")
                assert caught.value.reason == "corrupt"
            assert await pool.ocr(data, 1, "eng") == ENGLISH
