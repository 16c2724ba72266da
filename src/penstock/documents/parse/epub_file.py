"""EPUB: chapters in the order of the spine."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from penstock.documents.parse.archive import Archive
from penstock.documents.parse.draft import Draft
from penstock.documents.parse.html_file import read_html
from penstock.documents.parse.text_file import decode
from penstock.errors import ParserError

MAIN = "META-INF/container.xml"
_LOCKS = "META-INF/encryption.xml"


def read_epub(archive: Archive, draft: Draft) -> None:
    package = next(
        (
            attributes["full-path"]
            for kind, name, attributes in archive.xml(MAIN)
            if kind == "start" and name == "rootfile" and "full-path" in attributes
        ),
        None,
    )
    if package is None or package not in archive:
        raise ParserError("the book has no table of its parts", "corrupt")
    locked = _locked(archive)
    for chapter in _spine(archive, package, draft):
        if chapter in locked:
            raise ParserError("its chapters are encrypted", "encrypted")
        if archive.is_new(chapter):
            read_html(decode(archive.read(chapter)), draft, own_title=False)


def _locked(archive: Archive) -> set[str]:
    """Files with DRM. Fonts often have it, chapters rarely."""
    if _LOCKS not in archive:
        return set()
    return {
        unquote(attributes["URI"])
        for kind, name, attributes in archive.xml(_LOCKS)
        if kind == "start" and name == "CipherReference" and "URI" in attributes
    }


def _spine(archive: Archive, package: str, draft: Draft) -> list[str]:
    folder = posixpath.dirname(package)
    files: dict[str, str] = {}
    order: list[str] = []
    said: dict[str, list[str]] = {"title": [], "creator": [], "language": []}
    inside = ""
    for kind, name, attributes in archive.xml(package):
        if kind == "text":
            if inside in said:
                said[inside].append(name)
        elif kind == "end":
            inside = ""
        else:
            inside = name
            if name == "item":
                target = unquote(attributes.get("href", ""))
                files[attributes.get("id", "")] = posixpath.normpath(posixpath.join(folder, target))
            elif name == "itemref":
                order.append(attributes.get("idref", ""))
    draft.title = "".join(said["title"])
    draft.note("author", "".join(said["creator"]))
    draft.note("language", "".join(said["language"]))
    return [files[item] for item in dict.fromkeys(order) if item in files]
