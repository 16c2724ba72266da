"""Pictures of text, documents made of them, and a model on loopback that can be told to fail."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from tests.support.counting_server import Answer, CountingServer, Hit, as_json

TESSERACT = Path(sys.prefix) / "tesseract"
"""Where tools/get_tesseract.py has put it."""
LINE = 100
PAGE = (595, 842)
MODEL = "looker"
PATH = "/v1/chat/completions"


def picture(*lines: str, size: tuple[int, int] | None = None) -> Image.Image:
    """Black on white, as a scanner at about 300 dots an inch sees it."""
    image = Image.new("L", size or (1600, LINE * (len(lines) + 1)), 255)
    draw = ImageDraw.Draw(image)
    font = ImageFont.truetype(TESSERACT / "cjk.ttc", 48)
    for number, line in enumerate(lines):
        draw.text((80, 50 + LINE * number), line, font=font, fill=0)
    return image


def noise(side: int) -> Image.Image:
    """Takes tesseract a minute and more, so that there is time to do something to it."""
    return Image.frombytes("L", (side, side), random.Random(1).randbytes(side * side))


def saved(image: Image.Image, how: str, *more: Image.Image) -> bytes:
    """As a file; `more` are further pages of a TIFF."""
    buffer = io.BytesIO()
    options: dict[str, Any] = {"save_all": True, "append_images": list(more)} if more else {}
    if how == "JPEG":
        options["quality"] = 95
    image.save(buffer, how, **options)
    return buffer.getvalue()


def pdf(*pages: str | Image.Image | None, footer: str = "", bookmarks: Sequence[str] = ()) -> bytes:
    """A page for each: text as text, a picture all over it, or nothing."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=PAGE, invariant=1)
    for number, page in enumerate(pages):
        if isinstance(page, str):
            canvas.drawString(72, 760, page)
        elif page is not None:
            height = PAGE[0] * page.height / page.width
            canvas.drawImage(ImageReader(page), 0, PAGE[1] - height, PAGE[0], height)
            canvas.drawString(72, 20, footer)
        for title in bookmarks[number : number + 1]:
            canvas.bookmarkPage(title)
            canvas.addOutlineEntry(title, title)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


class VisionServer(CountingServer):
    """OpenAI's `/v1/chat/completions`, for pictures. The first picture it sees is answered with the
    first of `texts`, every other one with the next; the same picture with the same text.

    `fault` is how it fails; from the `fault_from`-th picture on. With a `gate`, the pictures from
    the `held_from`-th on are not answered before it is set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.fault: str | None = None
        self.fault_from = 1
        self.delay = 0.0
        self.gate: threading.Event | None = None
        self.held_from = 1
        self._seen: list[str] = []

    @property
    def requests(self) -> list[Hit]:
        return self.at(PATH)

    @property
    def pictures(self) -> list[bytes]:
        """Every picture it was sent."""
        return [_picture(json.loads(hit.body)) for hit in self.requests]

    def config(self, key_variable: str = "") -> str:
        """The section of a config file."""
        key = f"\n  key_variable: {key_variable}" if key_variable else ""
        return f"llm:\n  base_url: {self.url('/v1')}\n  models: {{ingest: {MODEL}}}{key}\n"

    def answer(self, path: str) -> Answer:
        mark = hashlib.sha256(_picture(json.loads(self.hits[-1].body))).hexdigest()
        if mark not in self._seen:
            self._seen.append(mark)
        number = self._seen.index(mark)
        fault = self.fault if number + 1 >= self.fault_from else None
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        text: str | None = self.texts[number] if number < len(self.texts) else "NO TEXT"
        match fault:
            case "429":
                return Answer(429, headers={"retry-after": "1"})
            case "500" | "400" | "401":
                return Answer(int(fault), body=b'{"error": {"message": "canary"}}')
            case "reset":
                return Answer(reset=True)
            case "hang":
                return Answer(hang=True)
            case "no json":
                return Answer(body=b"<html>canary</html>")
            case "no choices":
                return as_json({"choices": []})
            case "no content":
                text = None
            case "empty":
                text = " \n"
            case "cut short":
                choice["finish_reason"] = "length"
            case "too long":
                text = "canary " * 10_000
            case "far too long":
                text = "canary " * 300_000
        choice["message"] = {"role": "assistant", "content": text}
        body = as_json({"object": "chat.completion", "choices": [choice]}).body
        held = number + 1 >= self.held_from
        return Answer(body=body, delay=self.delay, until=self._may_answer if held else None)

    def _may_answer(self) -> bool:
        return self.gate is None or self.gate.is_set()


def _picture(question: dict[str, Any]) -> bytes:
    (_, user) = question["messages"]
    (part,) = user["content"]
    head, _, data = part["image_url"]["url"].partition(",")
    assert (part["type"], head) == ("image_url", "data:image/png;base64")
    return base64.b64decode(data, validate=True)
