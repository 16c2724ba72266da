"""Finds the interface of tasks: Django's own, or that of the package that has it for older ones."""

from importlib import import_module
from typing import Any


def tasks(name: str = "") -> Any:
    """A module of the interface: itself, or one within it."""
    try:
        import_module("django.tasks")
    except ModuleNotFoundError:
        return import_module(f"django_tasks{name}")
    return import_module(f"django.tasks{name}")


def normalized(value: Any) -> Any:
    """A value as JSON has it. TypeError for what it has not."""
    try:
        home = import_module("django.utils.json")
    except ModuleNotFoundError:
        home = tasks(".utils")
    return home.normalize_json(value)
