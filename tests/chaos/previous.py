"""The code as it was before the last change to it, for processes of a rolling deploy."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
MIGRATIONS = "src/penstock/adapters/sqlite/migrations"


def unpack_previous(folder: Path, queue: str) -> Path | None:
    """A tree with the code before the newest commit that changed it; None where the history is
    not at hand, or did not know this queue yet, or, in a file, knew only an older schema."""
    needed = f"src/penstock/adapters/{'redis' if queue == 'valkey' else queue}"
    commits = _git("log", "-n", "2", "--format=%H", "--", "src/penstock").split()
    if len(commits) < 2 or not _git("ls-tree", "--name-only", commits[1], needed):
        return None
    if queue == "sqlite":
        then = _git("ls-tree", "--name-only", commits[1], f"{MIGRATIONS}/").split()
        if len(then) != len(list((ROOT / MIGRATIONS).glob("*.sql"))):
            return None
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", commits[1], "src", "tests"], cwd=ROOT, check=True, capture_output=True
    )
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def environment(tree: Path) -> dict[str, str]:
    """Lets a process import that tree's code instead of ours."""
    return {"PYTHONPATH": f"{tree / 'src'}:{tree}", "PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}
