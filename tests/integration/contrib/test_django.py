"""Django's tasks on Penstock, in real processes of a real site."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from penstock.adapters.postgres.address import parse
from penstock.contrib.django.database import url_of_postgres
from tests.support.database_servers import postgres_url

ROOT = Path(__file__).parents[3]


def on_postgres(name: str) -> dict[str, str]:
    url = urlsplit(postgres_url())
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "HOST": url.hostname or "",
        "PORT": str(url.port or ""),
        "USER": url.username or "",
        "PASSWORD": url.password or "",
    }


def on_sqlite(folder: Path) -> dict[str, str]:
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "site.db")}


@pytest.fixture
def database() -> Iterator[str]:
    """The name of a database of the site's own."""
    name = f"site_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(parse(postgres_url()).dsn, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        yield name
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_site_on_postgres_finds_the_interface_as_it_is_promised(
    database: str, tmp_path: Path
) -> None:
    check(on_postgres(database), tmp_path)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_site_on_sqlite_finds_the_interface_as_it_is_promised(
    elsewhere: bool, tmp_path: Path
) -> None:
    options = {"queue": f"sqlite:///{tmp_path}/jobs.db"} if elsewhere else {}
    check(on_sqlite(tmp_path), tmp_path, **options)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (
            {"USER": "a", "PASSWORD": "b@", "HOST": "db", "PORT": "5"},
            "postgresql://a:b%40@db:5/site",
        ),
        ({"PASSWORD": "secret", "HOST": "::1"}, "postgresql://:secret@[::1]/site"),
        ({"HOST": "/run/pg", "PORT": 5}, "postgresql:///site?host=%2Frun%2Fpg&port=5"),
        (
            {"HOST": "db", "OPTIONS": {"sslmode": "verify-full", "sslrootcert": "/a b", "pool": 1}},
            "postgresql://db/site?sslmode=verify-full&sslrootcert=%2Fa+b",
        ),
    ],
)
def test_the_queue_is_where_the_database_is_and_no_less_protected(
    given: dict[str, Any], url: str
) -> None:
    usual = {"NAME": "site", "USER": "", "PASSWORD": "", "HOST": "", "PORT": ""}
    found = url_of_postgres(usual | given)
    assert found == url
    assert "secret" not in parse(found).shown


def check(database: dict[str, str], tmp_path: Path, **options: str) -> None:
    """Go through the interface in processes of a site with this database."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.support.django_site.settings",
        "SITE_DATABASE": json.dumps(database),
        "SITE_OPTIONS": json.dumps(options),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.django_site.checks"],
        capture_output=True,
        text=True,
        timeout=280,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["sent"] == ["ada", "row"]
