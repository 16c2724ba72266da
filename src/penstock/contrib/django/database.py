"""Finds the queue that is in a database of Django's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import connections


def queue_in(alias: str) -> str:
    """The URL of the queue in this database. ImproperlyConfigured where it cannot have one."""
    connection = connections[alias]
    settings: dict[str, Any] = connection.settings_dict
    match connection.vendor:
        case "sqlite" if not connection.is_in_memory_db():
            return f"sqlite:///{Path(settings['NAME']).absolute()}"
        case "postgresql":
            return _postgres(settings)
        case vendor:
            raise ImproperlyConfigured(
                f"a {vendor} database has no place for a queue; name one in OPTIONS: "
                '{"queue": "sqlite:////srv/jobs.db"}'
            )


def _postgres(settings: dict[str, Any]) -> str:
    user = ":".join(quote(settings[one], safe="") for one in ("USER", "PASSWORD") if settings[one])
    host, port = settings["HOST"], settings["PORT"]
    where = {"host": host} if host.startswith("/") else {}
    if where and port:
        where["port"] = str(port)
    place = "" if where else host + (f":{port}" if port else "")
    at = f"{user}@" if user else ""
    given = f"?{urlencode(where)}" if where else ""
    return f"postgresql://{at}{place}/{quote(settings['NAME'], safe='')}{given}"
