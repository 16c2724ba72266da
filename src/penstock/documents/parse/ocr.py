"""OCR by the `tesseract` command. Runs in the parser's child, and ends with it."""

from __future__ import annotations

import os
import resource
import subprocess
from functools import cache, partial

from penstock.documents.parse.child_limits import die_with_parent
from penstock.documents.parse.draft import clean
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.picture import Picture
from penstock.errors import ConfigError, ParserError

_COMMAND = "tesseract"
# Without it, Japanese and Korean come with a blank between any two characters.
_OPTIONS = ("-c", "preserve_interword_spaces=1")
_ONE_THREAD = {"OMP_THREAD_LIMIT": "1"}
"""Its threads make a page slower when several are read at once."""
_CHECK_SECONDS = 30


def read_picture(picture: Picture, languages: str, limits: ParseLimits) -> str:
    """Read the text of an image; '' if there is none. Raises ConfigError that says what to
    install."""
    check(languages)
    command = [_COMMAND, "stdin", "stdout", "-l", languages, *_OPTIONS]
    if picture.dpi is not None:
        command += ["--dpi", str(picture.dpi)]
    # The languages are checked words, and nothing else of the command comes from outside.
    done = subprocess.run(  # noqa: S603
        command,
        input=picture.pgm(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it may quote the document
        env=os.environ | _ONE_THREAD,
        preexec_fn=partial(_restrict, os.getpid(), limits.megabytes),
    )
    if done.returncode != 0:
        raise ParserError(f"tesseract failed on it (exit code {done.returncode})", "corrupt")
    text = clean(done.stdout.decode(errors="replace")).strip()
    if len(text) > limits.page_characters:
        raise ParserError(f"more than {limits.page_characters} characters on a page", "oversized")
    return text


@cache
def check(languages: str) -> None:
    """Raise ConfigError if tesseract or one of the languages is missing: with several it silently
    skips those. Checked once per process."""
    try:
        done = subprocess.run(  # noqa: S603
            [_COMMAND, "--list-langs"], capture_output=True, timeout=_CHECK_SECONDS
        )
    except FileNotFoundError as error:
        raise ConfigError(
            "`scans: ocr` needs tesseract on the PATH; Debian's package is tesseract-ocr"
        ) from error
    known = done.stdout.decode(errors="replace").split("\n")[1:]
    missing = [one for one in languages.split("+") if one not in known]
    if missing:
        packages = " ".join(f"tesseract-ocr-{one.replace('_', '-')}" for one in missing)
        raise ConfigError(
            f"tesseract has no data for {', '.join(missing)} (ocr_languages); "
            f"Debian's packages are: {packages}"
        )


def _restrict(parent: int, megabytes: int) -> None:
    """Limit its memory: the parent process watches only the child."""
    die_with_parent()
    if os.getppid() != parent:  # it died before it could be noticed
        os._exit(1)
    size = megabytes * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
