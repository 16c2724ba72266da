"""All checks, in the order of the report. A new check is a function here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from penstock.doctor import config_file, databases, disk, documents, extras, models, services
from penstock.doctor import conflicts as times
from penstock.doctor import http_server as serving
from penstock.doctor import kafka as messages
from penstock.doctor import queue as work
from penstock.doctor.context import Case
from penstock.doctor.diagnosis import Diagnosis


class Check(NamedTuple):
    part: str
    """What is said to be broken if the check itself comes to nothing."""
    look: Callable[[Case], Awaitable[list[Diagnosis]]]


CHECKS = (
    Check("config", config_file.look),
    Check("settings", times.look),
    Check("extras", extras.look),
    Check("queue", databases.look_at_queue),
    Check("store", databases.look_at_store),
    Check("data folders", disk.look),
    Check("blobs", documents.look_at_blobs),
    Check("embedder", documents.look_at_embedder),
    Check("scans", documents.look_at_scans),
    Check("models", models.look),
    Check("librarian", services.look_at_librarian),
    Check("browser", services.look_at_browser),
    Check("search providers", services.look_at_providers),
    Check("kafka", messages.look),
    Check("server", serving.look),
    Check("work", work.look),
)
