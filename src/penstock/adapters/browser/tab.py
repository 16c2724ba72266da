"""A browser tab that does not trust the page it shows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.errors import BrowserLost, PenstockError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page, Request, Response, Route

SKIPPED = ("image", "media", "font")
"""Kinds of files that pages are read without."""
MAX_HOPS = 10
"""Pages that lead on to others, by script, before results are there."""
_CODE = re.compile(r"net::(ERR_\w+)")
_MOVED = re.compile(r"(?i)context was destroyed|cannot find context|target navigated")
_LOST = re.compile(r"(?i)crashed|has been closed|target closed|connection closed")


class LoadFailed(PenstockError):
    """A page did not come: `chromium_code` is Chromium's, `url` is where it was to come from."""

    def __init__(self, code: str, url: str) -> None:
        super().__init__(code)
        self.chromium_code = code
        self.url = url


class ScriptFailed(PenstockError):
    """A script that was run in a page raised an error."""


class PageMoved(PenstockError):
    """The page is being replaced by another: look again at that one."""


@dataclass(slots=True)
class PageResponse:
    """The HTTP response to the newest page."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


class Tab:
    """A page in a context of its own. Requests that are not to `hosts` are not made; the proxy sees
    to redirects, which do not come by here."""

    def __init__(self, page: Page, session: CDPSession, hosts: Collection[str]) -> None:
        self._page = page
        self._session = session
        self._hosts = hosts
        self._hops = 0
        self._newest: Request | None = None
        self._failure: LoadFailed | None = None
        self.answer = PageResponse()

    @classmethod
    async def open(cls, context: BrowserContext, hosts: Collection[str]) -> Tab:
        from playwright.async_api import Error

        try:
            page = await context.new_page()
            tab = cls(page, await context.new_cdp_session(page), hosts)
            await page.route("**/*", tab._decide)
        except Error as error:
            raise BrowserLost(f"the browser ended before it had a tab: {error}") from error
        context.on("page", tab._refuse_popup)
        page.on("request", tab._note_request)
        page.on("response", tab._note_answer)
        page.on("requestfailed", tab._note_failure)
        return tab

    @property
    def url(self) -> str:
        return self._page.url

    def forget(self) -> None:
        """What comes next is about another page."""
        self._hops, self._failure, self.answer = 0, None, PageResponse()

    async def load(self, url: str) -> None:
        """Go to a page, until all of its own text is there. Raises LoadFailed."""
        from playwright.async_api import Error

        self.forget()
        try:
            await self._page.goto(url, wait_until="domcontentloaded", timeout=0)
        except Error as error:
            raise self._meaning(error, url) from error

    async def run(self, function: str, *arguments: Any) -> Any:
        """The value of a JavaScript function, called in a world of its own: it sees the page, and
        the page cannot see or change it. Raises PageMoved, ScriptFailed or LoadFailed."""
        from playwright.async_api import Error

        try:
            tree = await self._session.send("Page.getFrameTree")
            frame = tree["frameTree"]["frame"]["id"]
            world = await self._session.send("Page.createIsolatedWorld", {"frameId": frame})
            answer = await self._session.send(
                "Runtime.callFunctionOn",
                {
                    "functionDeclaration": function,
                    "executionContextId": world["executionContextId"],
                    "arguments": [{"value": one} for one in arguments],
                    "awaitPromise": True,
                    "returnByValue": True,
                },
            )
        except Error as error:
            raise self._meaning(error, self.url) from error
        if self._failure is not None:
            raise self._failure
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            thrown = details.get("exception", {}).get("description", details.get("text", ""))
            raise ScriptFailed(str(thrown).partition("\n")[0][:300])
        return answer["result"].get("value")

    async def settled(self) -> None:
        """Until a page that is on its way is there."""
        from playwright.async_api import Error

        try:
            await self._page.wait_for_load_state("domcontentloaded", timeout=0)
        except Error as error:
            raise self._meaning(error, self.url) from error

    async def _decide(self, route: Route, request: Request) -> None:
        known = urlsplit(request.url).hostname in self._hosts
        wanted = known and request.resource_type not in SKIPPED
        if wanted and self._is_page(request):
            self._hops += 1
            wanted = self._hops <= MAX_HOPS
        with _unless_closed():
            await (route.continue_() if wanted else route.abort("blockedbyclient"))

    def _is_page(self, request: Request) -> bool:
        return request.is_navigation_request() and request.frame == self._page.main_frame

    def _note_request(self, request: Request) -> None:
        if self._is_page(request):
            self._newest, self._failure = request, None

    def _note_answer(self, response: Response) -> None:
        if self._is_page(response.request):
            self.answer = PageResponse(response.status, response.headers)

    def _note_failure(self, request: Request) -> None:
        if request == self._newest:  # one that another took the place of has not failed
            code = _CODE.search(request.failure or "")
            self._failure = LoadFailed(code[1] if code else "ERR_FAILED", request.url)

    async def _refuse_popup(self, page: Page) -> None:
        if page != self._page:
            with _unless_closed():
                await page.close()

    def _meaning(self, error: Exception, url: str) -> PenstockError:
        text = str(error).partition("\n")[0]
        if self._failure is not None:
            return self._failure
        if code := _CODE.search(text):
            return LoadFailed(code[1], url)
        if _LOST.search(text):
            return BrowserLost(f"the browser ended before the page was read: {text}")
        if _MOVED.search(text):
            return PageMoved(text)
        return LoadFailed(text, url)


@contextmanager
def _unless_closed() -> Iterator[None]:
    """What is decided of a request when the tab is closed is of no account."""
    from playwright.async_api import Error

    try:
        yield
    except Error as error:
        if not _LOST.search(str(error)):
            raise
