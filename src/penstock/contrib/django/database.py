"""Finds the queue that is in a database of Django's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

TLS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslpassword")
"""Options of a database that the queue's connections have, too."""


def queue_in(alias: str) -> str:
    """The URL of the queue in this database. ImproperlyConfigured where it cannot have one."""
    connection = connections[alias]
    settings: dict[str, Any] = connection.settings_dict
    match connection.vendor:
        case "sqlite" if not connection.is_in_memory_db():
            return f"sqlite:///{Path(settings['NAME']).absolute()}"
        case "postgresql":
            return url_of_postgres(settings)
        case vendor:
            raise ImproperlyConfigured(
                f"a {vendor} database has no place for a queue; name one in OPTIONS: "
                '{"queue": "sqlite:////srv/jobs.db"}'
            )


def url_of_postgres(settings: dict[str, Any]) -> str:
    """The URL of a database of PostgreSQL. How the server is to prove who it is goes with it: less
    than what was asked for would do for nobody."""
    user, password = (quote(settings[one], safe="") for one in ("USER", "PASSWORD"))
    host, port = settings["HOST"], settings["PORT"]
    options = settings.get("OPTIONS", {})
    given = {name: str(options[name]) for name in TLS if name in options}
    if host.startswith("/"):
        given |= {"host": host} | ({"port": str(port)} if port else {})
        place = ""
    else:
        place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    at = (user + (f":{password}" if password else "") + "@") if user or password else ""
    query = f"?{urlencode(given)}" if given else ""
    return f"postgresql://{at}{place}/{quote(settings['NAME'], safe='')}{query}"
