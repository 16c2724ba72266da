"""Imports the app that `MODULE:APP` names, and optional parts; or explains what is wrong."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from penstock.app import Penstock
from penstock.cli.errors import InputError, UsageError
from penstock.config import hide_secrets
from penstock.errors.extras import needing


def need_extra(what: str, extra: str, module: str) -> None:
    """Raise ConfigError unless the extra that provides `module` is installed."""
    with needing(f"{what} needs", extra):
        importlib.import_module(module)


def load_for_work(target: str | None, queue: str | None, config: str | None) -> Penstock:
    """Load the app that `target` names, or one with only the built-in jobs."""
    if target is None:
        return Penstock(queue, config_file=config).use("answers")
    # By way of the environment: the module makes the app, and reads it only while it does.
    if queue is not None:
        os.environ["PENSTOCK_QUEUE"] = queue
    if config is not None:
        os.environ["PENSTOCK_CONFIG"] = config
    app = load_app(target)
    if queue is not None and app.config.queue != queue:
        raise UsageError(
            f"{target} sets its queue to {hide_secrets(app.config.queue)}, so --queue "
            "cannot; leave out --queue, or the URL in Penstock(...)"
        )
    return app


def load_app(target: str) -> Penstock:
    """Load the Penstock object that `target` names; modules are searched in the current directory
    first."""
    module_name, colon, name = target.partition(":")
    if not colon or not module_name or not name:
        raise InputError(
            f"{target!r} is not MODULE:APP; for `app = Penstock(...)` in shop.py, use shop:app"
        )
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise InputError(f"{module_name!r} is a file; name the module: {dotted}:{name}")
    module = _import(module_name)
    found = getattr(module, name, None)
    if isinstance(found, Penstock):
        return found
    apps = [other for other, value in vars(module).items() if isinstance(value, Penstock)]
    hint = (
        f"; did you mean {module_name}:{apps[0]}?"
        if apps
        else f"; it holds no Penstock: add `{name} = Penstock(...)`"
    )
    if not hasattr(module, name):
        raise InputError(f"{module.__file__ or module.__name__} has no {name!r}{hint}")
    raise InputError(f"{module_name}:{name} is a {type(found).__name__}, not a Penstock{hint}")


def _import(name: str) -> ModuleType:
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(_missing(error.name, folder)) from None
        raise InputError(_broken(name, error)) from error
    except (Exception, SystemExit) as error:
        raise InputError(_broken(name, error)) from error


def _missing(name: str, folder: str) -> str:
    *parents, last = name.split(".")
    near = [
        path.stem
        for path in Path(folder, *parents).glob("*")
        if path.suffix == ".py" or (path.is_dir() and path.stem.isidentifier())
    ]
    close = get_close_matches(last, near, n=1)
    hint = f"; did you mean {'.'.join([*parents, close[0]])}?" if close else ""
    return f"no module {name!r} in {folder} or on the Python path{hint}"


def _broken(name: str, error: BaseException) -> str:
    """Describe the error of a module's import, and its line."""
    if isinstance(error, SyntaxError):
        where = f"{error.filename} line {error.lineno}"
        return f"cannot import {name!r}: SyntaxError: {error.msg} ({where})"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and frame.filename != __file__
    ]
    frames = [frame for frame in frames if not frame.filename.endswith("importlib/__init__.py")]
    where = f" ({frames[-1].filename} line {frames[-1].lineno})" if frames else ""
    return f"cannot import {name!r}: {type(error).__name__}: {error}{where}"
