"""What `import penstock` promises."""

import importlib
import inspect
import subprocess
import sys
from importlib.metadata import version

import penstock


def test_everything_in_all_can_be_imported() -> None:
    missing = [name for name in penstock.__all__ if not hasattr(penstock, name)]

    assert missing == []


def test_all_is_sorted_and_has_no_duplicates() -> None:
    assert list(penstock.__all__) == sorted(set(penstock.__all__))


def test_all_names_every_public_class() -> None:
    public = {
        name
        for name, value in vars(penstock).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }

    assert public <= set(penstock.__all__)


def test_every_error_is_public() -> None:
    errors = importlib.import_module("penstock.errors")
    names = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }

    assert names <= set(penstock.__all__)


def test_public_classes_have_a_contract() -> None:
    undocumented = [
        name
        for name in penstock.__all__
        if inspect.isclass(getattr(penstock, name)) and not getattr(penstock, name).__doc__
    ]

    assert undocumented == []


def test_version_is_that_of_the_package() -> None:
    assert penstock.__version__ == version("penstock")


def test_importing_loads_no_heavy_library() -> None:
    """They are loaded when first needed: the command line has to start at once."""
    heavy = ("pydantic", "yaml", "rich", "typer", "sqlite3")
    code = f"import sys, penstock; print([name for name in {heavy!r} if name in sys.modules])"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=250
    ).stdout

    assert output.strip() == "[]"
