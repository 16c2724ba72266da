"""The machine a report was made on."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import subprocess
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from benchmarks.served import peers

FSYNCS = 50
PACKAGES = ("penstock", "huey")


def describe(folder: Path) -> dict[str, str]:
    """Facts about this machine, and about the disk that `folder` is on."""
    facts = {
        **moment(),
        "cores": f"{len(os.sched_getaffinity(0))}",
        "CPU": _cpu(),
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "file system": _file_system(folder),
        "fsync of 4 KiB": f"{_fsync_ms(folder):.2f} ms (median of {FSYNCS})",
    }
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    facts |= {package: peers.versions().get(package, "not installed") for package in peers.PACKAGES}
    if changed := commit():
        facts["commit"] = changed
    return facts


def moment() -> dict[str, str]:
    """What is another for each benchmark of a run."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load when started": f"{os.getloadavg()[0]:.2f}",
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file_system(folder: Path) -> str:
    """On tmpfs an fsync is free, and figures for durable queues mean nothing."""
    mounts = [
        partition
        for partition in psutil.disk_partitions(all=True)
        if folder.resolve().is_relative_to(partition.mountpoint)
    ]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else "unknown"


def _fsync_ms(folder: Path) -> float:
    path, spent = folder / "fsync", []
    with path.open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            start = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            spent.append(time.perf_counter() - start)
    path.unlink()
    return statistics.median(spent) * 1000


def commit() -> str:
    """The newest commit that changed what is measured: committing results is not another one."""
    code = [
        "src",
        "benchmarks",
        "tests/chaos",
        *(f":!benchmarks/*.{end}" for end in ("json", "md")),
    ]
    changed = _git("log", "-1", "--format=%h", "--", *code)
    return f"{changed}-dirty" if changed and _git("status", "--porcelain", "--", *code) else changed


def _git(*words: str) -> str:
    root = Path(__file__).parents[1]
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
