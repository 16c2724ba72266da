"""The dashboard of a real server in a real browser: pages that complain about nothing.

A module has one server and one browser (`board`), and each test its own pages. A page is
watched from its first request on: an error on the console, an exception in a script, something that
the content security policy refuses, or an answer of 500 and more fails the test that calls `fine`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    expect,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from penstock import Penstock
from tests.support.cli import Cli, wait_until
from tests.support.embedder import EmbedderServer
from tests.support.result_server import CHROMIUM
from tests.support.serve_process import Host, Served
from tests.support.waiting import PATIENCE as SECONDS

T = TypeVar("T")

PATIENCE = SECONDS * 1000
"""Milliseconds that a browser waits for anything."""
expect.set_options(timeout=PATIENCE)
BOARD = Path(__file__).with_name("apps") / "board.py"
SCREENSHOTS = "PENSTOCK_SCREENSHOTS"
"""Names a folder; without it no picture is taken."""
AXE = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


class Device(NamedTuple):
    name: str
    width: int
    height: int
    mobile: bool = False


SHORT = Device("short", 1000, 300)
LAPTOP = Device("laptop", 1280, 800)
PHONE = Device("phone", 390, 844, mobile=True)


class Look:
    """A page of the dashboard as somebody sees it."""

    def __init__(self, page: Page, url: str, name: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        self._name = name
        page.set_default_timeout(PATIENCE)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        page.on("response", self._answered)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _answered(self, response: Any) -> None:
        if response.status >= 500:
            self.complaints.append(f"{response.status}: {response.url}")

    def open(self, path: str = "/") -> Look:
        answer = self.page.goto(self.url + path, wait_until="load")
        assert answer is None or answer.status < 500, answer.text()
        return self

    def live(self) -> Look:
        """Wait until the page says that it is."""
        self._wait(self.page.locator("#live-state[data-state=live]"), "being live")
        return self

    def _wait(self, locator: Locator, what: str) -> None:
        """Until there is one that can be seen; what the page says instead, if it never does."""
        try:
            locator.first.wait_for()
        except PlaywrightTimeoutError:
            text = self.page.locator("body").inner_text()
            raise AssertionError(f"{self.page.url} without {what}; it says:\n{text}") from None

    def sign_in(self, key: str) -> Look:
        self.open("/sign-in")
        self.find("input[name=key]").fill(key)
        with self.page.expect_navigation(url=f"{self.url}/"):
            self.press("Sign in")
        return self

    def find(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def press(self, name: str) -> None:
        """A button or link by its name."""
        role = self.page.get_by_role("button", name=name).or_(
            self.page.get_by_role("link", name=name)
        )
        role.first.click()

    def says(self, text: str | re.Pattern[str], within: str = "main") -> None:
        """Wait until it does."""
        self._wait(self.page.locator(within).filter(has_text=text), f"{text!r} in {within}")

    def until(self, script: str) -> None:
        """Wait until this is true in the page. Playwright's own way evaluates it there, which the
        policy forbids unless it is true at once."""
        wait_until(lambda: self.page.evaluate(script), f"{script} on {self.page.url}")

    def ask(self, answer: str) -> str:
        """Answer the question that is open; what it was."""
        dialog = self.page.locator("#ask[open]")
        self._wait(dialog, "a question")
        said = dialog.locator("p").inner_text()
        dialog.get_by_role("button", name=answer).click()
        return said

    def fits(self) -> None:
        """Nothing sticks out at the side."""
        wide = self.page.evaluate(
            """() => {
              const room = document.documentElement.clientWidth;
              if (document.documentElement.scrollWidth <= room) return [];
              const out = (one) => one.getBoundingClientRect().right > room + 1;
              const all = [...document.querySelectorAll("main *")].filter(out);
              return all.map((one) => one.outerHTML.slice(0, 99));
            }"""
        )
        assert wide == [], f"{self._name} {self.page.url}: {wide[:5]}"

    def accessible(self) -> None:
        """axe finds nothing."""
        found = Axe().run(self.page, options=AXE)
        assert found.violations_count == 0, found.generate_report()

    def fine(self) -> None:
        """Nothing has been complained about."""
        assert self.complaints == []

    def picture(self, name: str) -> None:
        if folder := os.environ.get(SCREENSHOTS):
            path = Path(folder) / f"{name}-{self._name}.png"
            self.page.screenshot(path=path, full_page=True)


class Board:
    """A server with an app, and a browser to look at its dashboard."""

    def __init__(self, host: Host, browser: Browser) -> None:
        self.host = host
        self.cli = host.cli
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.served: Served | None = None

    def serve(self, *arguments: str, port: int = 0, **settings: Any) -> Served:
        """From now on this is what is looked at."""
        self.served = self.host.serve(*arguments, app="board:app", port=port, **settings)
        return self.served

    def finished(self, *ids: str) -> None:
        """Wait until these jobs are."""

        async def wait(app: Penstock) -> None:
            for job_id in ids:
                await app.wait(job_id, SECONDS)

        self.do(wait)

    def do(self, work: Callable[[Penstock], Awaitable[T]]) -> T:
        """Something with the library, past the server. In a thread: the browser's loop is here."""

        async def inside() -> T:
            async with Penstock(self.cli.url, durable=False) as app:
                return await work(app)

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(inside())).result()

    def enqueue(self, kind: str, payload: dict[str, Any] | None = None, **options: Any) -> str:
        return self.do(lambda app: app.enqueue(kind, payload, **options)).id

    def look(
        self,
        path: str | None = "/",
        *,
        device: Device = LAPTOP,
        scheme: str = "light",
        script: bool = True,
        served: Served | None = None,
    ) -> Look:
        """Another person with a browser of their own, on this page; None: on none yet."""
        server = served or self.served
        assert server is not None, "serve first"
        context = self._browser.new_context(
            viewport={"width": device.width, "height": device.height},
            is_mobile=device.mobile,
            has_touch=device.mobile,
            color_scheme="dark" if scheme == "dark" else "light",
            java_script_enabled=script,
            # What moves without end is drawn without end, and that is most of what a page costs.
            reduced_motion="reduce",
        )
        self._contexts.append(context)
        look = Look(context.new_page(), server.url, f"{device.name}-{scheme}")
        return look if path is None else look.open(path)

    def another(self, look: Look, path: str = "/") -> Look:
        """Another tab of the same browser."""
        return Look(look.page.context.new_page(), look.url, "tab").open(path)

    def close_pages(self) -> None:
        for context in self._contexts:
            context.close()
        self._contexts.clear()


@contextmanager
def board_in(folder: Path) -> Iterator[Board]:
    """For a fixture of a module: while the browser is open, no test in this process has an event
    loop. Nothing is served yet."""
    cli = Cli(folder)
    (folder / "board.py").write_text(BOARD.read_text())
    try:
        with EmbedderServer() as embedder, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=str(CHROMIUM / "bin" / "chromium"),
                args=["--no-sandbox", "--disable-background-networking"],
                timeout=PATIENCE,
            )
            try:
                yield Board(Host(cli, embedder), browser)
            finally:
                browser.close()
    finally:
        cli.close()
