"""What `import penstock` promises."""

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version

import pytest

import penstock
from penstock import JobContext, Penstock, types
from penstock.answers.service import Answers
from penstock.documents.service import Documents
from penstock.research.service import Research


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


SERVICE_ERRORS = "penstock.errors.services"


def test_errors_of_services_are_had_from_where_all_are() -> None:
    errors = importlib.import_module("penstock.errors")

    assert errors.ParserError is importlib.import_module(SERVICE_ERRORS).ParserError
    with pytest.raises(AttributeError, match="NoSuchError"):
        _ = errors.NoSuchError


def test_every_error_is_a_penstock_error() -> None:
    errors = [importlib.import_module(name) for name in ("penstock.errors", SERVICE_ERRORS)]
    own = [
        value
        for module in errors
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    errors_of_ours = [one for one in own if issubclass(one, Exception)]
    others = [one for one in errors_of_ours if not issubclass(one, penstock.PenstockError)]

    assert errors_of_ours
    assert others == []


PUBLIC = (Penstock, JobContext, Documents, Answers, Research)
"""What people hold in hand; what their methods return, they may want to name."""


def returned(owner: type) -> Iterator[type]:
    """The classes of ours in what public methods and properties return."""
    for name, member in inspect.getmembers(owner):
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not callable(function):
            continue
        function = inspect.unwrap(function)
        words = re.findall(r"[A-Za-z_]\w*", str(function.__annotations__.get("return", "")))
        known = {**vars(importlib.import_module(function.__module__)), **vars(types)}
        for word in words:
            found = known.get(word)
            if inspect.isclass(found) and found.__module__.startswith("penstock."):
                yield found


@pytest.mark.parametrize("owner", PUBLIC, ids=lambda owner: owner.__name__)
def test_every_type_that_a_public_method_returns_can_be_imported(owner: type) -> None:
    found = set(returned(owner))
    assert found
    public = {getattr(module, name) for module in (penstock, types) for name in module.__all__}
    assert {one.__name__ for one in found - public} == set()


def test_the_root_exports_a_dozen_names() -> None:
    assert len(set(penstock.__all__) - {"__version__"}) == 12


def test_types_are_sorted() -> None:
    assert list(types.__all__) == sorted(set(types.__all__))


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
