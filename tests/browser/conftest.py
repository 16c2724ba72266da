"""What the tests of the dashboard share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.dashboard import Board, board_in, browser_of


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with browser_of() as browser:
        yield browser


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Board]:
    """A folder with a queue, and a browser; a module serves what it wants to look at."""
    with board_in(tmp_path_factory.mktemp("board"), browser) as board:
        yield board


@pytest.fixture(autouse=True)
def _pages_closed(board: Board) -> Iterator[None]:
    yield
    board.close_pages()
