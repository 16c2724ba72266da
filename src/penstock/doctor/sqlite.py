"""Checks a queue or a store in a SQLite file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from penstock.adapters.sqlite.database import OLDEST_SQLITE
from penstock.adapters.sqlite.facts import SqliteFacts
from penstock.adapters.sqlite.facts import look as look_at_file
from penstock.adapters.sqlite.file import SqliteFile
from penstock.doctor.context import Case, in_thread
from penstock.doctor.database_facts import judge_schema
from penstock.doctor.diagnosis import Diagnosis, broken, ok, warning
from penstock.doctor.disk import file_system, unwritable

NETWORKED = frozenset(
    {
        *("afs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "lustre", "ncpfs"),
        *("nfs", "nfs4", "smb3", "smbfs"),
    }
)
"""File systems whose locks and shared memory do not work across machines."""


async def facts(url: str) -> SqliteFacts:
    return await in_thread(look_at_file, SqliteFile(url).path)


async def look(part: str, url: str, case: Case) -> list[Diagnosis]:
    path = SqliteFile(url).path
    found = await facts(url)
    system = await in_thread(file_system, path)
    readonly = await in_thread(unwritable, path)
    return [
        _usable(part, path, readonly),
        judge_schema(part, found.schema),
        judge_durability(part, found, durable=case.config.engine.durable, system=system),
        ok(f"{part} clock", "it is this machine's"),
    ]


def _usable(part: str, path: Path, readonly: str | None) -> Diagnosis:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        found = f"Python's SQLite is {sqlite3.sqlite_version}"
        return broken(part, found, f"use a Python with SQLite {oldest} or newer")
    if readonly is not None:
        advice = "let the user that runs Penstock write to it and to its folder"
        return broken(part, readonly, advice)
    return ok(part, f"{path}, SQLite {sqlite3.sqlite_version}")


def judge_durability(part: str, facts: SqliteFacts, *, durable: bool, system: str) -> Diagnosis:
    name = f"{part} durability"
    if system in NETWORKED:
        found = f"it is on a network file system ({system}), where SQLite's locks do not hold"
        return broken(name, found, "move it to a local disk, or use PostgreSQL or Redis")
    if facts.journal != "wal":
        found = f"its journal mode is {facts.journal}, not wal"
        return warning(name, found, "the next process switches it back; find out who changed it")
    if not durable:
        found = "durable is false: a power loss may undo the last commits"
        return warning(name, found, "set `durable: true`, unless that is acceptable")
    return ok(name, "every commit waits for the disk")
