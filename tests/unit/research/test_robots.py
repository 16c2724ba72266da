"""Research where what reads pages is not installed."""

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from penstock import Penstock
from penstock.errors import ConfigError
from penstock.outbound.web_address import web_address
from penstock.research.robots import Robots


async def test_an_app_has_research_and_only_pages_say_what_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "protego", None)
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db")
    assert app.use("research").research.providers
    robots, nobody = Robots(app.lanes), cast(Any, None)
    with pytest.raises(ConfigError, match=r"penstock\[research\]"):
        await robots.allowed(nobody, web_address("https://example.org/"), nobody)
