"""Config files from settings that are known by their names alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from penstock.config.setting_names import PLAIN, listed


def sectioned(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as a config file has them: each in its section."""
    whole = {key: dict(one) if isinstance(one, dict) else one for key, one in settings.items()}
    for key in [key for key in whole if key in PLAIN]:
        *sections, _ = PLAIN[key]
        value, place = listed(key, whole.pop(key)), whole
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
    return whole


def config_text(settings: Mapping[str, Any]) -> str:
    """JSON, which is YAML too."""
    return json.dumps(sectioned(settings))
