"""A model that looks at pictures: what it is asked, and which of its answers are taken."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from penstock.adapters.models.vision import Post, VisionModel
from penstock.errors import ModelError
from penstock.model.llm import ServedModel
from tests.support.scans import MODEL, VisionServer
from tests.support.waiting import PATIENCE

PNG = b"\x89PNG not looked at"
USELESS = {
    "no json": "no chat completion",
    "no choices": "no chat completion",
    "no content": "an empty answer",
    "empty": "an empty answer",
    "cut short": "cut short",
    "too long": "more than 40000 characters",
}


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:

        async def post(url: str, *, max_bytes: int, **options: Any) -> httpx2.Response:
            return await client.post(url, **options)

        yield post


async def read(vision: VisionServer, post: Post) -> str:
    return await VisionModel(ServedModel(MODEL, vision.url("/v1/"))).read(PNG, post, 40_000)


async def test_picture_is_sent_as_it_is(vision: VisionServer, post: Post) -> None:
    vision.texts = ["What stands there."]
    assert await read(vision, post) == "What stands there."
    assert vision.pictures == [PNG]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("NO TEXT", ""),
        ("NO TEXT.\n", ""),
        ("  a\nb \n", "a\nb"),
        ("```markdown\na\n\nb\n```", "a\n\nb"),
        ("```\na\n```\nb", "```\na\n```\nb"),
    ],
)
async def test_answer_is_the_text_of_the_page(
    vision: VisionServer, post: Post, answer: str, text: str
) -> None:
    vision.texts = [answer]
    assert await read(vision, post) == text


@pytest.mark.parametrize("fault", USELESS)
async def test_useless_answer_is_an_error_that_does_not_quote_it(
    vision: VisionServer, post: Post, fault: str
) -> None:
    vision.texts, vision.fault = ["canary"], fault
    with pytest.raises(ModelError, match=USELESS[fault]) as caught:
        await read(vision, post)
    assert "canary" not in str(caught.value)
