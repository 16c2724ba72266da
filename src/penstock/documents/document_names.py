"""Checks and masks the names, titles and metadata of documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, unquote_plus

from penstock.documents.mask import Masker
from penstock.errors import ValidationError
from penstock.model.document import DocumentRef
from penstock.text.normalize import storable

NAME_LIMIT = 240
"""Maximum characters of an id or a collection: both together, and a little more, are the name of a
log."""
TEXT_LIMIT = 512
WINDOW = 8 * TEXT_LIMIT
"""Characters of a text that are masked; at most TEXT_LIMIT of them are kept. Callers may send
megabytes, and no URL is longer."""
EDGE = 1024
"""Characters before the end of the window that are dropped, because personal data that starts there
may be cut off and not recognized: an email address has up to 254 characters, and three times that
when quoted."""
METADATA_LIMIT = 16 * 1024
KEY_LIMIT = 100

_LETTERS = str.maketrans("0123456789", "ghijklmnop")


class Names:
    """Masks every name, both when stored and when looked up, so that a document is found by its
    original name although that is stored nowhere."""

    def __init__(self, mask: Masker) -> None:
        self._mask = mask

    def ref(self, tenant: str, collection: str, name: str) -> DocumentRef:
        _check("tenant", tenant)
        return DocumentRef(tenant, self.collection(collection), self.id(name))

    def id(self, name: str) -> str:
        return self._name("id", name)

    def collection(self, name: str) -> str:
        return self._name("collection", name)

    def host(self, name: str) -> str:
        """Mask the host of a server, which names a lane."""
        return self._marked(name)

    def _name(self, what: str, name: str) -> str:
        _check(what, name)
        return self._marked(name)

    def _marked(self, name: str) -> str:
        masked = self._masked(name)
        if masked == name:
            return name
        # The mark keeps two apart that look the same now. It has no digits, or it could be
        # taken for personal data itself when the name is asked for again.
        mark = hashlib.sha256(name.encode()).hexdigest()[:8].translate(_LETTERS)
        return f"{masked[: NAME_LIMIT - 9]}-{mark}"

    def text(self, text: str) -> str:
        """Mask a title or source. Only its beginning is masked, and kept."""
        if len(text) <= WINDOW:
            return self._text(text)[:TEXT_LIMIT]
        return self._masked(storable(text[:WINDOW]), EDGE)[:TEXT_LIMIT]

    def metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        for key in metadata:
            if not 0 < len(key) <= KEY_LIMIT or '"' in key:
                raise ValidationError(
                    f"a key of metadata is 1 to {KEY_LIMIT} characters without a quotation mark"
                )
        try:
            text = json.dumps(dict(metadata), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValidationError(f"metadata must be JSON: {error}") from None
        if len(text) > METADATA_LIMIT:
            raise ValidationError(f"metadata is over {METADATA_LIMIT:,} bytes")
        return self._pairs(json.loads(text))

    def _pairs(self, values: dict[str, Any]) -> dict[str, Any]:
        return {self._marked(storable(key)): self._value(one) for key, one in values.items()}

    def _value(self, value: Any) -> Any:
        match value:
            case bool() | None:
                return value
            case str():
                return self._text(value)
            case list():
                return [self._value(one) for one in value]
            case dict():
                return self._pairs(value)
            case _:  # a number can be that of a card
                text = str(value)
                return value if self._text(text) == text else self._text(text)

    def _text(self, text: str) -> str:
        return self._masked(storable(text))

    def _masked(self, text: str, edge: int = 0) -> str:
        """Mask a text that may be URL-encoded: %40 and + hide personal data from the finders, so it
        is decoded where they match. Drops the last `edge` characters."""
        found = self._mask(text)
        masked, kept = found.text, found.position(len(text) - edge)
        for read in (unquote, unquote_plus):
            plain = storable(read(masked))
            # Most names read as they are written, and were looked at.
            if plain != masked and (found := self._mask(plain)).counts:
                kept = found.position(len(storable(read(masked[:kept]))))
                masked = found.text
        return masked[:kept]


def _check(what: str, name: str) -> None:
    # The name is not in the message: it may be personal data, and messages are logged.
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        raise ValidationError(f"{what} must be 1 to {NAME_LIMIT} printable characters")
