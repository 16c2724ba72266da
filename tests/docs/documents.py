"""Search providers for guides, on loopback, and a server where a guide says that one is running."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.support.cli import Cli, wait_until
from tests.support.counting_server import Answer
from tests.support.research import ResearchSite
from tests.support.serve_process import PATIENCE

SERVER = "localhost:8321"
TITLES = {b"Work 0": b"The ageing of water wheels", b"Work 1": b"Decay of oak in mill wheels"}


class Documents(ResearchSite):
    """Works with titles that a guide can show."""

    def answer(self, path: str) -> Answer:
        answer = super().answer(path)
        body = answer.body
        for plain, title in TITLES.items():
            body = body.replace(plain, title)
        return replace(answer, body=body)


def serve(cli: Cli, *app: str) -> str:
    """The address of a server, started."""
    running = cli.start("serve", *app, "--port", "0")
    wait_until(lambda: "http://" in running.err, "the server", PATIENCE)
    return str(re.findall(r"http://(\S+)", running.err)[0])
