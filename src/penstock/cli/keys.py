"""`penstock keys`: create, list, revoke."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.errors import NotFound
from penstock.cli.options import new_group, option
from penstock.cli.output import Looks, age, note, print_json, print_table, printable, say
from penstock.cli.session import Session
from penstock.model.access import KeyScope
from penstock.wire.view import fields_of

if TYPE_CHECKING:
    from penstock.model.access import ApiKey

group = new_group("Create, list and revoke API keys of the server.")

DEFAULT_SCOPES = [KeyScope.READ, KeyScope.WRITE]


@group.command("create")
def create(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the owner or purpose.")],
    tenant: str = option("T", "Tenant it gives access to.", default="default"),
    scope: list[KeyScope] = option(
        "SCOPE",
        "read, write or admin; repeatable. No scope includes another.",
        default=DEFAULT_SCOPES,
    ),
    requests_per_minute: int | None = option("N", "Rate limit, instead of the server's.", min=1),
    tools: str | None = option("LIST", "Only call these tools, and do nothing else: quote,order."),
    session: Session,
) -> None:
    """Create an API key and print its secret, which is not shown again.

    Only a hash of the secret is stored. Standard output has nothing but the secret, for
    KEY=$(penstock keys create ci).
    """
    from penstock.model.access import new_key

    wanted: dict[str, Any] = {
        "tenant": tenant,
        "scopes": scope,
        "requests_per_minute": requests_per_minute,
        "tools": None if tools is None else [one.strip() for one in tools.split(",")],
    }
    new_key(name, **wanted)  # refuses what is wrong before there is a queue
    with session.opened("keys", create=True) as (app, run):
        key, secret = run(app.keys.create(name, **wanted))
    if session.as_json:
        print_json({**fields_of(key), "secret": secret.reveal()})
        return
    say(secret.reveal())
    note(f"key {key.id} of tenant {printable(tenant)}: {_scopes(key)}{_tools(key)}")
    note("save the secret now: it is not stored and cannot be shown again")


@group.command("list")
def list_keys(
    *, tenant: str | None = option("T", "Only keys of this tenant."), session: Session
) -> None:
    """List keys, newest first, including revoked ones. Secrets are not stored."""
    with session.opened("keys") as (app, run):
        found = run(app.keys.list(tenant))
    session.show_list(found, _print_keys, "no keys match" if tenant is not None else "no keys")


@group.command("revoke")
def revoke(
    *,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Key id, not its secret.")],
    session: Session,
) -> None:
    """Revoke a key: it is refused from now on. This cannot be undone."""
    with session.opened("keys") as (app, run):
        key = run(app.keys.revoke(key_id))
    if key is None:
        # What was given is not repeated: somebody may have pasted a secret.
        raise NotFound("no key with that id; `penstock keys list` lists them")
    session.show(key, f"{key.id}  revoked")


def _scopes(key: ApiKey) -> str:
    return ", ".join(scope for scope in KeyScope if scope in key.scopes)


def _tools(key: ApiKey) -> str:
    return "" if key.tools is None else f"; only the tools {', '.join(sorted(key.tools))}"


def _print_keys(keys: Sequence[ApiKey]) -> None:
    rows = [
        {
            "id": key.id,
            "name": printable(key.name),
            "tenant": printable(key.tenant),
            "scopes": _scopes(key),
            "tools": "all" if key.tools is None else ", ".join(sorted(key.tools)),
            "per minute": "-"
            if key.requests_per_minute is None
            else f"{key.requests_per_minute:,}",
            "age": age(key.created_at),
            "used": "never" if key.last_used_at is None else f"{age(key.last_used_at)} ago",
            "state": "good" if key.revoked_at is None else "revoked",
        }
        for key in keys
    ]
    if all(key.tools is None for key in keys):
        for row in rows:
            del row["tools"]
    styles = {"state": {"revoked": "bold red"}.get}
    right = ["per minute", "age", "used"]
    print_table(rows, Looks(right, fold=["tenant", "scopes", "tools"], cut=["name"], styles=styles))
