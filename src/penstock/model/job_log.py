"""The lines that a job's handler has logged (`ctx.log`), kept with the job.

Stored as text, a JSON array in each line, so that every queue can append to it and cut off its
beginning without reading it. A line that was cut is no JSON; one that was appended twice, because
the answer to the first time was lost, is the same to the letter.
"""

from __future__ import annotations

import json

from penstock.text.normalize import storable

LOG_LIMIT = 64 * 1024
"""Characters of a job's log; the oldest lines go first."""
LINE_LIMIT = 2000
"""Characters of a line's message."""


def log_line(at: float, attempt: int, level: str, message: str) -> str:
    """A line as it is stored."""
    message = storable(message)
    if len(message) > LINE_LIMIT:
        message = f"{message[:LINE_LIMIT]}... ({len(message):,} characters)"
    return json.dumps([at, attempt, level, message]) + "\n"


def parse_log(text: object) -> list[dict[str, object]]:
    """The stored lines, oldest first; none of what is no text."""
    found = []
    for line in dict.fromkeys(text.split("\n") if isinstance(text, str) else ()):
        try:
            at, attempt, level, message = json.loads(line)
        except (ValueError, TypeError):
            continue  # the first, cut in the middle; or damaged
        found.append({"at": at, "attempt": attempt, "level": level, "message": message})
    return found
