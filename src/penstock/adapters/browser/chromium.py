"""Chromium, driven by Playwright: one for each process, started when first needed.

Chromium hangs on its driver by a pipe, and the driver on this process: when either dies, what hangs
on it ends by itself, so that a killed worker leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from penstock.adapters.browser.tab import Tab
from penstock.errors import BrowserLost, ConfigError
from penstock.errors.extras import needing
from penstock.model.browser import BrowserConfig

if TYPE_CHECKING:
    from playwright.async_api import Browser as Chromium
    from playwright.async_api import BrowserContext

log = logging.getLogger("penstock.browser")

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
CLOSE_SECONDS = 5.0
"""What does not close within this is killed with the browser."""
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
"""What Chromium is told of ours: the rest holds keys of other services."""
ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--no-pings",
    # All goes through the proxy: it looks up no names and sends nothing by UDP.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--blink-settings=imagesEnabled=false",
)

OpenProxy = Callable[[], AbstractAsyncContextManager[str]]
"""A proxy for as long as the browser runs, and its address."""


class Browser:
    """The browser of a process. Searches share it, but nothing that a page could remember."""

    def __init__(self, config: BrowserConfig, proxy: OpenProxy) -> None:
        self._config = config
        self._proxy = proxy
        self._tabs = asyncio.Semaphore(config.tabs)
        self._open = 0
        self._running: asyncio.Task[_Running] | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._idle: asyncio.TimerHandle | None = None

    def check(self) -> None:
        """ConfigError where no browser could be started, and what to do about it."""
        _playwright()
        self.executable()

    @asynccontextmanager
    async def tab(self, hosts: Collection[str]) -> AsyncIterator[Tab]:
        """A page of its own that reaches nothing but `hosts`; waits while all tabs are in use."""
        await self._tabs.acquire()
        self._open += 1
        context: BrowserContext | None = None
        try:
            context = await self._context()
            yield await Tab.open(context, hosts)
        finally:
            # Not here: whoever was told to stop has no time to wait for a page that hangs.
            self._later(self._close_tab(context))

    async def close(self) -> None:
        """End the browser. The next search would start another."""
        self._end_running()
        while self._endings:
            await asyncio.gather(*self._endings)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _context(self) -> BrowserContext:
        from playwright.async_api import Error

        self.check()
        for last in (False, True):
            running = await self._started()
            try:
                # Nothing is kept between searches: each has cookies and a cache of its own.
                return await running.chromium.new_context(
                    accept_downloads=False, service_workers="block"
                )
            except Error as error:
                self._end_running()  # it has died since the last search
                if last:
                    raise BrowserLost(f"Chromium has ended: {_short(error)}") from error
        raise AssertionError("unreachable")

    async def _started(self) -> _Running:
        """The browser that runs, or a new one. Whoever is cancelled here leaves it to others."""
        task = self._running
        ended = task is not None and task.done() and not _is_alive(task)
        if ended:
            self._end_running()
        if self._running is None:
            self._running = asyncio.create_task(self._start(), name="penstock-browser")
        return await asyncio.shield(self._running)

    async def _start(self) -> _Running:
        from playwright.async_api import Error, async_playwright

        async with AsyncExitStack() as parts:  # all of it, or nothing
            proxy = await parts.enter_async_context(self._proxy())
            driver = await async_playwright().start()
            parts.push_async_callback(_in_time, driver.stop, "the driver of Chromium")
            root = os.geteuid() == 0
            try:
                chromium = await driver.chromium.launch(
                    executable_path=self.executable(),
                    proxy={"server": proxy},
                    args=list(ARGUMENTS),
                    # Chromium refuses to start as root with its sandbox.
                    chromium_sandbox=not root,
                    env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                )
            except Error as error:
                raise BrowserLost(f"Chromium does not start: {_short(error)}") from error
            parts.push_async_callback(_in_time, chromium.close, "Chromium")
            log.info("Chromium %s started", chromium.version)
            return _Running(chromium, parts.pop_all())
        raise AssertionError("unreachable")

    async def _close_tab(self, context: BrowserContext | None) -> None:
        if context is not None and not await _in_time(context.close, "a tab"):
            self._end_running()
        self._tabs.release()
        self._open -= 1
        if self._idle is not None:
            self._idle.cancel()
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(self._config.idle_seconds, self._close_idle)

    def _close_idle(self) -> None:
        if self._open == 0:
            self._end_running()

    def _end_running(self) -> None:
        if self._running is not None:
            self._later(_end(self._running))
            self._running = None

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """What `close` waits for."""
        task = asyncio.create_task(work, name="penstock-browser-end")
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    def executable(self) -> str:
        """Chromium's program. ConfigError where there is none."""
        named = self._config.executable
        found = (shutil.which(one) for one in ((named,) if named else PROGRAMS))
        program = next((one for one in found if one), None)
        if program is None:
            where = f"{named!r} is not a program" if named else f"no {', '.join(PROGRAMS)} found"
            raise ConfigError(
                f"search engines in a browser need Chromium, but {where}: install it "
                "(`apt-get install chromium`), or name its program as `executable` under `browser`"
            )
        return program


class _Running:
    """A Chromium with its driver and its proxy."""

    def __init__(self, chromium: Chromium, parts: AsyncExitStack) -> None:
        self.chromium = chromium
        self.parts = parts


def _is_alive(task: asyncio.Task[_Running]) -> bool:
    failed = task.cancelled() or task.exception() is not None
    return not failed and task.result().chromium.is_connected()


async def _end(task: asyncio.Task[_Running]) -> None:
    await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        await task.result().parts.aclose()


async def _in_time(close: Callable[[], Coroutine[Any, Any, None]], what: str) -> bool:
    """Whether it closed. What is gone already has."""
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await close()
    except TimeoutError:
        log.warning("%s did not close within %g s", what, CLOSE_SECONDS)
        return False
    except Error as error:
        log.debug("%s was gone: %s", what, error)
    return True


def _playwright() -> None:
    with needing("search engines in a browser need", "browser"):
        import playwright.async_api  # noqa: F401 (here, because few processes need it)


def _short(error: Exception) -> str:
    """The first line: the rest is a log of the browser."""
    return str(error).strip().partition("\n")[0]
