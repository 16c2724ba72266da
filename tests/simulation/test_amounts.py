"""A lane that counts tokens, under faults."""

import pytest

from tests.simulation.amounts import run


@pytest.mark.parametrize("server", [False, True], ids=["file", "server"])
def test_no_window_at_the_receiver_has_more_tokens_than_the_lane(server: bool) -> None:
    assert run(range(8), server=server) >= 8 * 24
