"""Runs the commands of a page, and compares what they print with what the page shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile

from tests.docs.run_blocks import blocks
from tests.support.forks import Started, start

PROGRAMS = Path(sys.executable).parent


def run(command: list[str], folder: Path, programs: Path = PROGRAMS) -> str:
    """What a command printed, on both streams; fails if it does. `python` and `penstock` are those
    in `programs`."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
    environment["PYTHONWARNINGS"] = "error"
    forked = _forked(command) if programs == PROGRAMS else None
    with TemporaryFile() as printed:
        process: Started
        if forked:
            process = start(
                *forked,
                folder=folder,
                environment=environment,
                stdout=printed.fileno(),
                stderr=printed.fileno(),
            )
        else:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
            )
        try:
            code = process.wait(250)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        printed.seek(0)
        text = printed.read().decode().replace("\r\n", "\n")
    assert code == 0, f"{command} in {folder}:\n{text}"
    return text


def _forked(command: list[str]) -> tuple[str, list[str]] | None:
    """What to run in a fork, where that does the same: Penstock, or a program in Python, of which
    no shell has to make anything. Quickstart is followed without (integration/test_wheel.py)."""
    words = command
    if words[:2] == ["bash", "-c"]:
        if set(re.sub(r"'[^']*'", "", words[2])) & set("|&;<>()$`*?~={}\\#\n"):
            return None
        words = shlex.split(words[2])
    match words:
        case ["penstock", *rest]:
            return "penstock.cli", rest
        case ["python" | sys.executable, file, *rest] if file.endswith(".py"):
            return file, rest
    return None


def follow(page: str, folder: Path, programs: Path = PROGRAMS) -> None:
    """Do what a page says: save its programs, and run its commands."""
    for language, text, line in blocks(page):
        if language == "python":
            file = re.match(r"# (\S+\.py)\n", text)
            assert file, f"line {line}: the first line names the file to save it as"
            (folder / file[1]).write_text(text)
        elif language == "console":
            run_console(text, folder, programs)


def run_console(text: str, folder: Path, programs: Path = PROGRAMS) -> None:
    """Commands run, and what they print is what the page shows, but for ids, times and process
    numbers. Where the page shows `...` there may be anything."""
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        printed = run(["bash", "-c", command], folder, programs)
        if "..." in shown:
            pattern = re.escape(_steady(shown)).replace(re.escape("..."), ".*")
            assert re.fullmatch(pattern, _steady(printed), re.DOTALL), f"{command}\n{printed}"
        elif shown:
            assert _lines(printed) == _lines(shown), f"{command}\n{printed}"


def _lines(output: str) -> list[str]:
    """In any order: a pipe for both streams does not keep it."""
    return sorted(" ".join(line.split()) for line in _steady(output).splitlines() if line.strip())


def without_pauses(output: str) -> str:
    """Without what is said where the machine stood still while a job was at work."""
    pause = r"has blocked the event loop for|released the event loop after"
    return re.sub(rf"^.*({pause}).*\n", "", output, flags=re.MULTILINE)


def _steady(output: str) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\b[0-9a-f]{32}\b", "ID", without_pauses(output))
    return re.sub(r"\b\d+(\.\d+)?\b", "N", text).strip()
