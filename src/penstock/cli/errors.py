"""Turns errors into one line on stderr and an exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from enum import IntEnum

import typer

from penstock.cli.output import printable
from penstock.errors import PenstockError


class ExitCode(IntEnum):
    OK = 0
    UNSUCCESSFUL = 1
    INVALID = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    """128 + SIGPIPE, as in `penstock jobs list | head`."""


EXIT_CODES = """\b
Exit codes:
  0    ok
  1    a watched or awaited job failed, was cancelled, or timed out;
       a document could not be ingested; a research task failed or was stopped;
       an answer failed or was cancelled; the doctor found something broken;
       the app's lifespan failed to start
  2    usage error or invalid input
  3    job, lane, schedule, document, task, answer, key or queue not found
  4    the queue, the store or a message broker is unreachable or unusable
  130  interrupted
  141  the output was closed (SIGPIPE)"""


class UsageError(PenstockError):
    """The command was called incorrectly; the message says what is correct."""


class InputError(PenstockError):
    """The command's input is not valid."""


class NotFound(PenstockError):
    """The named thing does not exist."""

    exit_code = 3


class QueueMissing(NotFound):
    """There is no queue yet, and the command does not create one."""


def guarded(invoke: Callable[[], None], *, as_json: bool) -> int:
    """Run a command, report errors, and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Names and messages may hold anything; an ASCII terminal must not make us fail. And who
        # reads a pipe sees each line at once, also what a handler prints.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    try:
        invoke()
        sys.stdout.flush()
        return ExitCode.OK
    except typer.Exit as ended:
        sys.stdout.flush()
        return ended.exit_code
    except PenstockError as error:
        message = "; ".join([str(error), *getattr(error, "__notes__", ())])
        report(type(error).__name__, message, as_json=as_json)
        return ExitCode(error.exit_code)
    except typer.TyperException as error:
        report("UsageError", _usage(error), as_json=as_json)
        return ExitCode.INVALID
    except (KeyboardInterrupt, typer.Abort):
        if as_json:
            report("Interrupted", "interrupted", as_json=True)
        else:
            sys.stderr.write("interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Else the interpreter complains when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.PIPE_CLOSED


def report(kind: str, message: str, *, as_json: bool) -> None:
    if as_json:
        sys.stderr.write(json.dumps({"error": {"type": kind, "message": message}}) + "\n")
    else:
        sys.stderr.write(f"error: {printable(message)}\n")


def _usage(error: typer.TyperException) -> str:
    message = error.format_message().rstrip(".").replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "penstock"
    return f"{message[:1].lower()}{message[1:]} (see {command} --help)"
