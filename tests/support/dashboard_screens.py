"""What the tests of several screens of the dashboard need: hostile text, keys, sizes."""

from __future__ import annotations

import httpx2 as httpx

from tests.support.dashboard import LAPTOP, PHONE, Board, Look
from tests.support.serve_process import Served
from tests.support.waiting import PATIENCE

HOSTILE = (
    "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'><b onclick=pwned>"
    "{{7*7}}\x1b[31m\x07\u202eright\u200f مرحبا " + "w" * 3000
)
NAME = "".join(sign for sign in HOSTILE if sign.isprintable())[:200]
"""All of it that a name may hold."""
LOOKS = ("laptop-light", "laptop-dark", "phone-light", "phone-dark")
DEVICES = {"laptop": LAPTOP, "phone": PHONE}


def harmless(look: Look) -> None:
    """Nothing of a hostile text was obeyed, and it fits in the page."""
    assert look.page.evaluate("window.pwned") is None
    assert look.find("img[src=x], [onclick], [onerror], [onload]").count() == 0
    assert "\u202e" not in look.find("main").inner_text()
    look.fits()
    look.fine()


def signed_in(board: Board, served: Served, key: str) -> Look:
    return board.look(None, served=served).sign_in(key)


def posted(served: Served, path: str, fields: dict[str, str], key: str | None = None) -> int:
    """A form that is sent past the page it is on; the status of the answer."""
    headers = {"Origin": served.url}
    if key is not None:
        headers["Cookie"] = f"penstock_key={key}"
    return httpx.post(served.url + path, data=fields, headers=headers, timeout=PATIENCE).status_code


def from_elsewhere(served: Served, path: str, fields: dict[str, str]) -> int:
    """The same, as a page of another site would have a browser do it."""
    headers = {"Origin": served.url, "Sec-Fetch-Site": "cross-site"}
    return httpx.post(served.url + path, data=fields, headers=headers, timeout=PATIENCE).status_code
