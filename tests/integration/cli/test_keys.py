"""`penstock keys`: create, list, revoke."""

import re
import time

import pytest

from penstock import Penstock
from penstock.model.access import ApiKey, hash_of
from tests.support.cli import Cli
from tests.support.postgres import new_url

SECRET = re.compile(r"pk_([0-9a-f]{32})_[a-z2-7]{52}")


def key_of(cli: Cli, secret: str) -> ApiKey | None:
    """What a server finds by a secret."""
    app = Penstock(cli.url, durable=False)
    access = app.use("keys").keys.store
    return cli.call(access.key_by_hash(hash_of(secret)), app)


def test_the_secret_alone_is_printed_and_opens_the_door(cli: Cli) -> None:
    done = cli("keys", "create", "ci")
    secret = done.out.removesuffix("\n")
    named = SECRET.fullmatch(secret)
    assert named
    assert done.err == (
        f"key {named[1]} of tenant default: read, write\n"
        "save the secret now: it is not stored and cannot be shown again\n"
    )
    key = key_of(cli, secret)
    assert key is not None
    assert (key.id, key.name, key.tenant, sorted(key.scopes)) == (
        named[1],
        "ci",
        "default",
        ["read", "write"],
    )


def test_the_secret_is_nowhere_in_the_files_nor_in_the_list(cli: Cli) -> None:
    secret = cli("keys", "create", "ci").out.strip()
    random = secret.rpartition("_")[2].encode()
    files = [path for path in cli.folder.rglob("*") if path.is_file()]
    assert cli.path in files
    assert not [path for path in files if random in path.read_bytes()]
    shown = cli("keys", "list").out + cli("keys", "list", "--json").out
    assert secret not in shown
    assert hash_of(secret) not in shown


def test_options_decide_tenant_scopes_and_limit(cli: Cli) -> None:
    made = cli(
        *("keys", "create", "ops", "--tenant", "kim", "--scope", "admin", "--scope", "read"),
        *("--requests-per-minute", "30", "--json"),
    ).json
    secret = made.pop("secret")
    assert SECRET.fullmatch(secret)
    assert made.pop("created_at") == pytest.approx(time.time(), abs=60)
    assert made == {
        "id": secret.split("_")[1],
        "name": "ops",
        "tools": None,
        "tenant": "kim",
        "scopes": ["admin", "read"],
        "requests_per_minute": 30,
        "last_used_at": None,
        "revoked_at": None,
    }
    (listed,) = cli("keys", "list", "--json").json
    assert {name: listed[name] for name in made} == made


def test_the_list_tells_what_a_key_is_good_for_and_when_it_was_used(cli: Cli) -> None:
    assert cli("keys", "create", "ci", "--scope", "write", "--scope", "read").code == 0
    used = cli("keys", "create", "ops", "--tenant", "kim", "--requests-per-minute", "1200")
    assert key_of(cli, used.out.strip()) is not None
    head, ops, ci = cli("keys", "list").out.splitlines()
    assert " ".join(head.split()) == "ID NAME TENANT SCOPES PER MINUTE AGE USED STATE"
    assert re.search(r" ops +kim +read, write +1,200 +[\d.]+ s +[\d.]+ s ago +good$", ops)
    assert re.search(r" ci +default +read, write +- +[\d.]+ s +never +good$", ci)
    assert "ops" in cli("keys", "list", "--tenant", "kim").out
    assert cli("keys", "list", "--tenant", "lee").err == "no keys match\n"


def test_a_revoked_key_is_refused_from_then_on(cli: Cli) -> None:
    secret = cli("keys", "create", "ci").out.strip()
    key_id = secret.split("_")[1]
    assert cli("keys", "revoke", key_id).out == f"{key_id}  revoked\n"
    assert key_of(cli, secret) is None
    assert cli("keys", "list").out.endswith("revoked\n")
    again = cli("keys", "revoke", key_id, "--json").json
    assert again["revoked_at"] == pytest.approx(time.time(), abs=60)


def test_revoking_what_is_not_there_does_not_repeat_it(cli: Cli) -> None:
    secret = cli("keys", "create", "ci").out.strip()
    done = cli("keys", "revoke", secret, code=3)
    assert done.err == "error: no key with that id; `penstock keys list` lists them\n"
    assert cli("keys", "revoke", "none", "--json", code=3).error["type"] == "NotFound"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["ci", "--scope", "root"], "--scope"),
        (["ci", "--requests-per-minute", "0"], "--requests-per-minute"),
        (["line\nbreak"], "name is 1 to 240 printable characters"),
        (["ci", "--tenant", ""], "tenant is 1 to 240 printable characters"),
        ([], "NAME"),
    ],
)
def test_a_wrong_key_is_refused_before_anything_is_made(
    cli: Cli, arguments: list[str], complaint: str
) -> None:
    assert complaint in cli("keys", "create", *arguments, code=2).err
    assert not cli.path.exists()


def test_without_keys_the_list_says_so(cli: Cli) -> None:
    cli.enqueue("mail")
    assert cli("keys", "list").err == "no keys\n"
    assert cli("keys", "list", "--json").json == []


def test_keys_are_where_the_store_is(cli: Cli) -> None:
    elsewhere = {"PENSTOCK_STORE": f"sqlite:///{cli.folder}/store.db"}
    cli("keys", "create", "ci", environment=elsewhere)
    assert len(cli("keys", "list", "--json", environment=elsewhere).json) == 1
    assert cli("keys", "list", "--json").json == []


def test_keys_in_postgresql_need_no_folder_for_originals(cli: Cli) -> None:
    url = new_url()
    cli("keys", "create", "ci", "--queue", url)
    (key,) = cli("keys", "list", "--queue", url, "--json").json
    assert cli("keys", "revoke", key["id"], "--queue", url).out == f"{key['id']}  revoked\n"


def test_on_redis_alone_the_missing_setting_is_named(cli: Cli) -> None:
    for arguments in (["create", "ci"], ["list"], ["revoke", "none"]):
        done = cli("keys", *arguments, "--queue", "redis://127.0.0.1:9/0", code=2)
        assert "API keys need a store: set `store: sqlite:///" in done.err
