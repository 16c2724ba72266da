"""Identifies the local user at the other end of a loopback connection, by the kernel.

A header can be forged or left out, and an address proves nothing: a proxy or tunnel on this machine
connects from loopback on behalf of anybody. The kernel knows the user whose process opened the
other end, and that cannot be forged.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from pathlib import Path

NETLINK_SOCK_DIAG = 4
BY_FAMILY = 20
"""SOCK_DIAG_BY_FAMILY: the type of the request, and of a successful reply."""
REQUEST = 1
ESTABLISHED = 1
"""Required state: the kernel reports root as the owner of a socket that its process has closed."""
NO_COOKIE = 0xFFFFFFFF
HEADER = struct.Struct("=IHHII")
UID_AT = HEADER.size + 64
TABLES = {socket.AF_INET: ("tcp", "tcp6"), socket.AF_INET6: ("tcp6",)}
MAPPED = bytes(10) + b"\xff\xff"
"""Prefix of an IPv4 address mapped to IPv6."""

Address = tuple[str, int]


def is_own_user(transport: asyncio.BaseTransport) -> bool:
    """Whether the peer is a process of the same user as this one; False if unknown."""
    connection = transport.get_extra_info("socket")
    try:
        near, far = connection.getsockname()[:2], connection.getpeername()[:2]
    except OSError:  # it is gone already
        return False
    return peer_uid(connection.family, near, far) == os.geteuid()


def peer_uid(family: socket.AddressFamily, near: Address, far: Address) -> int | None:
    """Return the user at the far end of a connection on this machine; None if it is closed, or the
    kernel does not tell."""
    try:
        return _asked(family, near, far)
    except OSError:  # no such question is allowed here, as in some containers
        return _looked_up(family, near, far)


def _asked(family: socket.AddressFamily, near: Address, far: Address) -> int | None:
    """Query the kernel by sock_diag(7): one request about one socket, however many there are."""
    source, target = (socket.inet_pton(family, one[0]).ljust(16, b"\0") for one in (far, near))
    question = (
        struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 1 << ESTABLISHED)
        + struct.pack("!HH16s16s", far[1], near[1], source, target)
        + struct.pack("=III", 0, NO_COOKIE, NO_COOKIE)
    )
    head = HEADER.pack(HEADER.size + len(question), BY_FAMILY, REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.setblocking(False)  # the answer is there when the question is sent
        kernel.send(head + question)
        answer = kernel.recv(8192)
    if HEADER.unpack_from(answer)[1] != BY_FAMILY:
        code: int = struct.unpack_from("=i", answer, HEADER.size)[0]
        raise OSError(-code, os.strerror(-code))
    if answer[HEADER.size + 1] != ESTABLISHED:
        return None
    uid: int = struct.unpack_from("=I", answer, UID_AT)[0]
    return uid


def _looked_up(family: socket.AddressFamily, near: Address, far: Address) -> int | None:
    """Search the table of all sockets."""
    for table in TABLES[family]:
        wanted = [_written(family, one, table) for one in (far, near)]
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for words in map(str.split, lines):
            if words[1:3] == wanted and int(words[3], 16) == ESTABLISHED:
                return int(words[7])
    return None


def _written(family: socket.AddressFamily, address: Address, table: str) -> str:
    """Format an address as in that table: hexadecimal, in words of the machine's byte order."""
    packed = socket.inet_pton(family, address[0])
    if family == socket.AF_INET and table == "tcp6":
        packed = MAPPED + packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{address[1]:04X}"
