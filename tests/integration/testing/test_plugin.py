"""The plugin as a user has it: loaded by pytest itself, with pytest-asyncio and with anyio."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

SHOP = """
    from penstock import Penstock

    app = Penstock("sqlite:///shop.db")

    @app.job("mail")
    async def mail(ctx, to):
        return to
"""
TESTS = """
    import pytest
    from penstock.testing import assert_enqueued, refute_enqueued
    from shop import app, mail

    MARK

    async def sign_up(name):
        await mail.enqueue(to=name)

    @pytest.fixture
    def seeded(penstock_app):
        with penstock_app.sync() as q:
            q.enqueue("mail", {"to": "seed"})

    async def test_own(seeded, penstock_app):
        assert penstock_app is app
        await sign_up("ada")
        await penstock_app.drain()
        assert_enqueued("mail", times=2, state="completed")

    async def test_clock(penstock_app, penstock_clock):
        refute_enqueued("mail")
        job = await mail.with_options(delay=3600).enqueue(to="ada")
        penstock_clock.advance(hours=1)
        assert await job.result() == "ada"

    async def test_fails(penstock_app):
        assert_enqueued("mail")

    async def test_vain(penstock_app, penstock_worker):
        penstock_worker.killed_at("step:nothing")
"""


def told(folder: Path, plugin: str, mark: str, options: str) -> str:
    """What a run of pytest says, with no other plugins: some take long to load."""
    (folder / "shop.py").write_text(dedent(SHOP))
    (folder / "test_shop.py").write_text(dedent(TESTS).replace("MARK", mark))
    (folder / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{options}")
    arguments = ["-q", "-p", "pytest_penstock", "-p", plugin]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=folder,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert not (folder / "shop.db").exists()
    return ended.stdout


def test_a_run_with_pytest_asyncio(tmp_path: Path) -> None:
    said = told(
        tmp_path,
        "pytest_asyncio.plugin",
        "",
        "penstock_app = shop:app\nasyncio_mode = auto\n"
        "asyncio_default_fixture_loop_scope = function\n",
    )
    assert "1 failed, 3 passed, 1 error" in said
    assert "AssertionError: expected a job of 'mail', found none" in said
    assert "no run came to step:nothing, where its worker was to be killed" in said


def test_a_run_with_anyio_and_a_fixture_that_is_overridden(tmp_path: Path) -> None:
    mark = dedent("""
        pytestmark = pytest.mark.anyio

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.fixture
        def penstock_source():
            return app
    """)
    assert "1 failed, 3 passed, 1 error" in told(tmp_path, "anyio", mark, "")
