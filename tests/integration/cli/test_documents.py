"""`penstock documents`: list, show, delete, retry."""

from typing import Any

from penstock import Penstock
from tests.support.cli import Cli
from tests.support.config_file import config_text
from tests.support.documents import pdf
from tests.support.embedder import EmbedderServer, toy


def accept(cli: Cli, *ids: str, **options: Any) -> None:
    """Documents that are accepted, and not worked on yet."""
    app = Penstock(cli.url, durable=False)
    documents = app.use("documents").documents

    async def add() -> None:
        for document_id in ids:
            await documents.add(f"This is {document_id}.", id=document_id, **options)

    cli.call(add(), app)


def fail(cli: Cli) -> None:
    (cli.folder / "locked.pdf").write_bytes(pdf(password="secret"))
    cli("ingest", "locked.pdf", code=1)


def test_the_newest_come_first_page_by_page(cli: Cli) -> None:
    accept(cli, "one", "two", "three")
    first = cli("documents", "list", "--limit", "2", "--json").json
    assert [one["id"] for one in first] == ["three", "two"]
    hint = cli("documents", "list", "--limit", "2").err
    assert hint == f"there may be more: --before {first[-1]['generation']}\n"
    rest = cli("documents", "list", *hint.split()[-2:], "--json").json
    assert [one["id"] for one in rest] == ["one"]


def test_filters_by_state_collection_and_tenant(cli: Cli) -> None:
    fail(cli)  # first, because its workers would do the others
    accept(cli, "one")
    accept(cli, "two", collection="other")
    accept(cli, "three", tenant="kim")

    def ids(*arguments: str) -> list[str]:
        return [one["id"] for one in cli("documents", "list", "--json", *arguments).json]

    assert ids("--state", "failed") == ["locked.pdf"]
    assert ids("--collection", "other") == ["two"]
    assert ids("--tenant", "kim") == ["three"]
    assert cli("documents", "list", "--state", "completed", "--collection", "other").err == (
        "no documents match\n"
    )
    table = cli("documents", "list").out
    assert "COLLECTION" in table.splitlines()[0]
    assert "ParserError: it is password-protected" in table


def test_show_tells_state_masked_kinds_and_texts(cli: Cli, embedder: EmbedderServer) -> None:
    (cli.folder / "penstock.yaml").write_text(config_text({"embedder": toy(embedder)}))
    (cli.folder / "report.pdf").write_bytes(pdf(pages=1))
    (cli.folder / "call").write_text("Call 010-1234-5678 or write to kim@example.com.")
    cli("ingest", "report.pdf", "call")
    shown = cli("documents", "show", "call").out
    assert "\nstate       completed\n" in shown
    assert "\nmasked      email 1, phone 1\n" in shown
    shown = cli("documents", "show", "report.pdf", "--chunks").out
    assert "page 1" in shown
    assert "  The sluice opens at dawn." in shown
    (text,) = cli("documents", "show", "call", "--chunks", "--json").json["texts"]
    assert text["text"] == "Call [PHONE] or write to [EMAIL]."
    assert text["ordinal"] == 0


def test_show_tells_what_is_wrong_and_what_to_do(cli: Cli) -> None:
    fail(cli)
    shown = cli("documents", "show", "locked.pdf").out
    assert "\nerror       ParserError: it is password-protected\n" in shown
    assert "\nwhat to do  save it without a password and ingest it again\n" in shown
    assert cli("documents", "show", "locked.pdf", "--json").json["error"]["reason"] == "encrypted"
    accept(cli, "waits")
    assert "\nphase       waiting, 0%\n" in cli("documents", "show", "waits").out


def test_deleting_asks_first(cli: Cli) -> None:
    accept(cli, "one", "two")
    assert "--yes" in cli("documents", "delete", "one", code=2).err
    assert "nothing deleted" in cli.on_terminal("documents", "delete", "one", typed="n\n")
    assert "deleted" in cli.on_terminal("documents", "delete", "one", typed="y\n")
    done = cli("documents", "delete", "two", "one", "--yes", "--json", code=3)
    assert done.json == {"deleted": ["two"]}
    assert "'one'" in done.error["message"]
    assert cli("documents", "list").err == "no documents\n"


def test_a_foreign_or_missing_document_is_exit_code_3(cli: Cli) -> None:
    accept(cli, "one")
    for arguments in (["show", "none"], ["show", "one", "--tenant", "kim"]):
        assert "no document" in cli("documents", *arguments, code=3).err
    assert cli("documents", "retry", "none", code=3).err.startswith("error: no document 'none'")


def test_a_failed_document_is_tried_again(cli: Cli) -> None:
    fail(cli)
    done = cli("documents", "retry", "locked.pdf")
    assert "locked.pdf  processing\n" in done.out
    assert done.err == "no worker process handles documents; start one: penstock worker\n"
    cli("worker", "--drain")
    assert cli("documents", "show", "locked.pdf", "--json").json["state"] == "failed"


def test_on_redis_alone_the_missing_setting_is_named(cli: Cli) -> None:
    done = cli("documents", "list", "--queue", "redis://127.0.0.1:9/0", code=2)
    assert "store: sqlite:///" in done.err


def test_json_of_a_listed_document(cli: Cli) -> None:
    accept(cli, "one")
    (one,) = cli("documents", "list", "--json").json
    assert {key: one[key] for key in ("id", "collection", "tenant", "state", "phase")} == {
        "id": "one",
        "collection": "default",
        "tenant": "default",
        "state": "processing",
        "phase": "waiting",
    }
    assert one["error"] is None
    assert one["size"] == len("This is one.")


def test_columns_are_aligned_also_behind_wide_letters(cli: Cli) -> None:
    accept(cli, "one", title="水門")
    accept(cli, "two", title="gate")
    head, *rows = cli("documents", "list").out.splitlines()
    at = head.index("ABOUT")
    assert [row.index("waiting") for row in rows] == [at, at - len("水門")]
