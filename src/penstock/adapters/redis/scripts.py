"""The Lua scripts: each file under lua/, with the common files it needs in front."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_FOLDER = files("penstock.adapters.redis") / "lua"
_NEEDS = "-- needs: "


@dataclass(slots=True, frozen=True)
class Script:
    name: str
    text: str
    digest: str
    """What the server knows it by."""


@cache
def script(name: str) -> Script:
    """The script in `lua/<name>.lua`. Its first line says what it may do, its second which of
    `lua/common` it needs, in order."""
    shebang, needs, text = (_FOLDER / f"{name}.lua").read_text().split("\n", 2)
    text = assembled(shebang, needs.removeprefix(_NEEDS), text)
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def given(ask: dict[str, Any]) -> dict[str, Any]:
    """Without what is None: Lua has no null."""
    return {name: value for name, value in ask.items() if value is not None}


def assembled(shebang: str, needs: str, text: str) -> str:
    common = [(_FOLDER / "common" / f"{part}.lua").read_text() for part in needs.split()]
    return "\n".join([shebang, *common, text])
