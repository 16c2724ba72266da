"""What the tests of the dashboard share."""

from collections.abc import Iterator

import pytest

from tests.support.dashboard import Board, board_in


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """A folder with a queue, and a browser; a module serves what it wants to look at."""
    with board_in(tmp_path_factory.mktemp("board")) as board:
        yield board


@pytest.fixture(autouse=True)
def _pages_closed(board: Board) -> Iterator[None]:
    yield
    board.close_pages()
