"""Who is at the other end of a connection on this machine."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from penstock.server import peers

WAYS = [peers._asked, peers._looked_up]
PLACES = [
    (socket.AF_INET, socket.AF_INET, "127.0.0.1"),
    (socket.AF_INET6, socket.AF_INET6, "::1"),
    (socket.AF_INET, socket.AF_INET6, "::ffff:127.0.0.1"),
]


@contextmanager
def connected(
    family: socket.AddressFamily, client: socket.AddressFamily, host: str
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection to a server: its two ends, the server's first."""
    with closing(socket.socket(family)) as server, closing(socket.socket(client)) as far:
        server.bind((host.removeprefix("::ffff:"), 0))
        server.listen()
        far.connect((host, server.getsockname()[1]))
        near, _ = server.accept()
        with closing(near):
            yield near, far


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("family", "client", "host"), PLACES)
def test_the_user_at_the_far_end_is_told_while_it_is_open(
    way: Callable[..., int | None],
    family: socket.AddressFamily,
    client: socket.AddressFamily,
    host: str,
) -> None:
    with connected(family, client, host) as (near, far):
        ends = family, near.getsockname()[:2], near.getpeername()[:2]
        assert way(*ends) == peers.peer_uid(*ends) == os.geteuid()
        far.close()
        # Of a socket that was closed the kernel may say that root has it.
        assert peers.peer_uid(*ends) is None
        assert peers._looked_up(*ends) is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_told_apart(way: Callable[..., int | None]) -> None:
    os.seteuid(65534)
    try:
        with connected(socket.AF_INET, socket.AF_INET, "127.0.0.1") as (near, _):
            ends = socket.AF_INET, near.getsockname()[:2], near.getpeername()[:2]
            assert way(*ends) == 65534
    finally:
        os.seteuid(0)
