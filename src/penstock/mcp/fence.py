"""Text of others, set off so that it cannot pass for anything else."""

from __future__ import annotations

import secrets


def fenced(text: str, source: str) -> str:
    """`text` between two lines that it cannot have known, with where it came from."""
    mark = secrets.token_hex(8)
    shown = " ".join(source.split())
    return f"<untrusted {mark} source={shown!r}>\n{text}\n</untrusted {mark}>"
