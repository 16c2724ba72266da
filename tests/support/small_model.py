"""A real language model on loopback, small enough for a test: llama.cpp's server, in a process of
its own. Its answers are weak; the protocol is the true one.

    with small_model() as url:   # such as http://127.0.0.1:40123/v1
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(sys.prefix) / "model"
"""Where tools/get_model.py has put it."""
NAME = "smollm2"
CONTEXT = 4096
"""Tokens of a question and its answer."""


@contextmanager
def small_model() -> Iterator[str]:
    """Its base_url; it answers once this is entered, and has ended once it is left."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.small_model"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it logs much
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            address = child.stdout.readline().decode().strip()
            assert address, f"the model did not start: exit code {child.wait()}"
            yield f"{address}/v1"
        except BaseException as error:
            if child.poll() is not None:
                error.add_note(f"the model had ended: exit code {child.returncode}")
            raise
        finally:
            child.stdin.close()
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                child.kill()


def serve() -> None:
    """Until nobody holds the other end of stdin, so it outlives no test."""
    import xllamacpp  # here: only the child needs it

    (path,) = FOLDER.glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 2 * CONTEXT
    params.n_parallel = 2
    params.offline = True
    params.ui = False
    # One: several wait for each other in busy loops, and on a busy machine that takes many times
    # as long.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve()
