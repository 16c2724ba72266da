"""Follows an answer: progress on stderr, its text on stdout as it is written."""

from __future__ import annotations

import sys

from penstock.answers.event_text import in_words
from penstock.cli.answers import print_grounds, write_text
from penstock.cli.output import console, is_terminal, note, print_event, print_json, say
from penstock.cli.text import printable
from penstock.model.answer import Answer, AnswerState
from penstock.model.change import Change
from penstock.wire.answers import AnswerDetails, details_of, line_of


class AnswerDisplay:
    def begin(self, answer: Answer) -> None:
        """Called with the question."""

    def tell(self, change: Change) -> None:
        """Called with each entry of the answer's log, once."""

    def end(self, answer: Answer) -> None:
        """Called with the finished answer."""

    def left(self, answer: Answer, who: str) -> None:
        """Called when the command stops waiting, with who continues the work."""


class AnswerJsonLines(AnswerDisplay):
    def begin(self, answer: Answer) -> None:
        print_event("asked", line_of(answer))

    def tell(self, change: Change) -> None:
        print_event(change.what, **change.data)

    def end(self, answer: Answer) -> None:
        print_event("summary", details_of(answer, AnswerDetails))

    def left(self, answer: Answer, who: str) -> None:
        print_event("left", answer_id=answer.id)


class JsonWhole(AnswerDisplay):
    """Prints one JSON value at the end."""

    def end(self, answer: Answer) -> None:
        print_json(details_of(answer, AnswerDetails))

    def left(self, answer: Answer, who: str) -> None:
        print_json(line_of(answer))


class Reading(AnswerDisplay):
    """Output for people. `stream`: the text as it is written, else all at once."""

    def __init__(self, *, stream: bool) -> None:
        self._stream = stream
        self._written = ""

    def begin(self, answer: Answer) -> None:
        _aside(f"answer {answer.id}")

    def tell(self, change: Change) -> None:
        if change.what == "token":
            if self._stream:
                piece = str(change.data["text"])
                self._written += piece
                write_text(piece)
        elif words := in_words(change):
            if change.what == "writing":
                self._begin_anew()
            _aside(words)

    def _begin_anew(self) -> None:
        """Discard what was written so far: its writer was interrupted."""
        if self._written:
            say()
            _aside("interrupted; starting over:")
            self._written = ""

    def end(self, answer: Answer) -> None:
        if self._written:
            say()
        if answer.text and answer.text.strip() != self._written.strip():
            if self._written:
                _aside("the text above was revised; the final answer is:")
            write_text(answer.text)
            say()
        print_grounds(answer)
        if answer.state is not AnswerState.COMPLETED:
            note(f"{answer.state}: {printable(answer.error)}" if answer.error else answer.state)

    def left(self, answer: Answer, who: str) -> None:
        if self._written:
            say()
        note(f"interrupted before it was answered; {who}")
        note(f"to show it: penstock answers show {answer.id}")


def _aside(words: str) -> None:
    """Print a line beside the answer, to stderr."""
    if is_terminal(sys.stderr):
        from rich.text import Text

        line = Text(printable(words), "dim", no_wrap=True, overflow="ellipsis")
        console(sys.stderr).print(line)
    else:
        note(printable(words))


def show_for(*, as_json: bool, stream: bool) -> AnswerDisplay:
    if as_json:
        return AnswerJsonLines() if stream else JsonWhole()
    return Reading(stream=stream)
