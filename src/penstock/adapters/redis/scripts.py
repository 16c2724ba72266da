"""The Lua scripts: each file under lua/, with the common files it needs in front."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

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
    folder = files("penstock.adapters.redis") / "lua"
    first, needs, *rest = (folder / f"{name}.lua").read_text().splitlines()
    common = [
        (folder / "common" / f"{part}.lua").read_text()
        for part in needs.removeprefix(_NEEDS).split()
    ]
    text = "\n".join([first, *common, *rest])
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
