"""The guide to testing is true: its blocks are an app and the tests of it, and pass."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import TESTING_GUIDE, blocks_of


def test_guide_to_testing_runs_as_written(tmp_path: Path) -> None:
    texts: dict[str, list[str]] = {"ini": [], "python": []}
    for block in blocks_of(TESTING_GUIDE):
        texts[block.language].append(block.text)
    [options] = texts["ini"]
    (tmp_path / "pytest.ini").write_text(f"{options}filterwarnings = error\n")
    shop, *tests = texts["python"]
    (tmp_path / "shop.py").write_text(shop)
    for number, text in enumerate(tests):
        (tmp_path / f"test_{number}.py").write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_penstock", "-p", "pytest_asyncio.plugin"],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{sum(text.count('def test_') for text in tests)} passed" in ended.stdout
    assert not (tmp_path / "shop.db").exists()
