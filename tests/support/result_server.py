"""A search engine on loopback: result pages, in each of the ways that lead to the next one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from penstock.model.browser import SearchEngineConfig
from tests.support.counting_server import Answer, CountingServer, Hit

CHROMIUM = Path(sys.prefix) / "chromium"
"""Where tools/get_chromium.py has put it."""
SIZE = 10
WAYS = ("page", "offset", "link", "form", "more")
"""How the next page is come to: by an address with its number, or with the number of its first
result; by a link; by a form that is sent; by a script that puts it in place of the one before."""
ADDRESSES = {
    "page": "/page?q={query}&p={page}",
    "offset": "/offset?q={query}&from={offset}",
    "link": "/link?q={query}",
    "form": "/form?q={query}",
    "more": "/more?q={query}",
}
HTML = {"content-type": "text/html; charset=utf-8", "set-cookie": "who=you"}
MORE = """<button id=more onclick="turn()">more</button><script>
let from = 0;
async function turn() {
  from += 10;
  const answer = await fetch(`/rows?from=${from}`);
  document.querySelector("main").innerHTML = await answer.text();
  if (from + 10 >= %d) document.querySelector("#more").remove();
}
</script>"""


class ResultServer(CountingServer):
    """`titles` is what it has, in this order."""

    def __init__(self) -> None:
        super().__init__()
        self.titles: list[str] = []
        self.faults: dict[str, Answer] = {}
        """What is answered instead, by path."""
        self.extra = ""
        """HTML in every page."""
        self.delay = 0.0

    def engine(self, way: str = "page", **changes: Any) -> SearchEngineConfig:
        settings = self.settings(way) | changes
        return SearchEngineConfig(**settings)

    def settings(self, way: str = "page") -> dict[str, Any]:
        """As a config file has them, with lists as tuples."""
        nexts = {"link": "a.next", "form": "#next", "more": "#more"}
        return {
            "url": self.url(ADDRESSES[way]),
            "result": ".result",
            "title": "h2 a",
            "link": "h2 a@href",
            "snippet": "p",
            "unwrap": "to",
            "no_results": (".nothing",),
            "captcha": ("#captcha", "text=are you a robot"),
            "blocked_urls": ("*/sorry*",),
            "wait_seconds": 5.0,
            **({"next": nexts[way]} if way in nexts else {}),
        }

    def asked(self, way: str) -> list[Hit]:
        return self.at(f"/{way}")

    def answer(self, path: str) -> Answer:
        way = path.removeprefix("/")
        if path in self.faults:
            return self.faults[path]
        hit = self.at(path)[-1]
        given = {name: values[0] for name, values in parse_qs(hit.query).items()}
        given |= {name: values[0] for name, values in parse_qs(hit.body.decode()).items()}
        if way == "rows":
            return Answer(headers=HTML, body=self.rows(int(given["from"])).encode())
        if way not in WAYS:
            return Answer(404)
        start = int(given.get("from", "0"))
        if way == "page":
            start = (int(given["p"]) - 1) * SIZE
        return Answer(headers=HTML, body=self.page(way, start).encode(), delay=self.delay)

    def page(self, way: str, start: int) -> str:
        rows = self.rows(start) or "<p class=nothing>Nothing found.</p>"
        return f"<!doctype html><main>{rows}</main>{self.next(way, start + SIZE)}{self.extra}"

    def rows(self, start: int) -> str:
        numbers = range(start, min(start + SIZE, len(self.titles)))
        return "".join(_row(number, self.titles[number]) for number in numbers)

    def next(self, way: str, start: int) -> str:
        if start >= len(self.titles):
            return ""
        match way:
            case "link":
                return f"<a class=next href='/link?q=x&from={start}'>next</a>"
            case "form":
                return (
                    "<form action=/form method=post><input type=hidden name=from "
                    f"value={start}><input type=submit id=next></form>"
                )
            case "more":
                return MORE % len(self.titles)
        return ""


def _row(number: int, title: str) -> str:
    """Every second link leads through the engine, as some do with all."""
    target = f"https://site.example/{title.replace(' ', '-')}"
    href = target if number % 2 else f"/leave?x=1&amp;to={quote(target, safe='')}"
    return (
        f'<div class=result><h2><a href="{href}">{title}</a></h2>'
        f"<p>Water turns\n wheels.</p><img src=/picture></div>"
    )
