"""Stores uploaded files, and adds the documents once the form is complete."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePath
from typing import Any

from fastapi import Request

from penstock.api.tenant_view import TenantView
from penstock.model.document import Document
from penstock.ports.blobs import Blob
from penstock.server.bodies import parse, stream, value_of
from penstock.server.multipart import parts
from penstock.server.problems import Problem
from penstock.server.schemas import NewDocument

FORM = "multipart/form-data"
FIELDS = ("id", "collection", "title", "metadata", "priority", "retry")


class Uploads:
    """An upload form: files, already stored, and options that apply to all of them."""

    def __init__(self, tenant_view: TenantView) -> None:
        self._tenant_view = tenant_view
        self.files: list[tuple[str, Blob]] = []
        self.fields: dict[str, str] = {}

    def said(self) -> NewDocument:
        """Validate the options of the files; raises 422."""
        if not self.files:
            raise Problem(422, "invalid", "the form has no file; send it as `file`")
        if "id" in self.fields and len(self.files) > 1:
            raise Problem(422, "invalid", "an `id` is for one file; these are several")
        said: dict[str, Any] = dict(self.fields)
        for name in ("metadata", "retry"):
            if name in said:
                said[name] = value_of(said[name], f"`{name}`")
        return parse(json.dumps({"text": "", **said}).encode(), NewDocument)

    async def accept(self, new: NewDocument) -> list[Document]:
        """Add a document for each file."""
        said = new.model_dump(include={"title", "collection", "metadata", "priority", "retry"})
        store, tenant, documents = self._tenant_view.documents, self._tenant_view.tenant, []
        while self.files:
            name, blob = self.files.pop(0)  # the library's from here on
            documents.append(
                await store.add(blob, id=new.id or name or None, origin=name, tenant=tenant, **said)
            )
        return documents


@asynccontextmanager
async def receive(request: Request, tenant_view: TenantView) -> AsyncIterator[Uploads]:
    """Store the files of a form as they arrive. Nothing is accepted before the form is complete, so
    a caller that hangs up has sent nothing. Files that are not accepted in the end are dropped."""
    config = request.app.state.config
    received = Uploads(tenant_view)
    body = stream(request, config.upload_bytes)
    try:
        async for part in parts(body, request.headers["content-type"]):
            if part.filename is None:
                if part.name not in FIELDS:
                    raise Problem(422, "invalid", f"no field {part.name!r}; a file needs a name")
                received.fields[part.name] = await part.text()
                continue
            if len(received.files) == config.upload_files:
                raise Problem(413, "too-large", f"over {config.upload_files} files in one request")
            name = PurePath(part.filename.replace("\\", "/")).name
            received.files.append((name, await tenant_view.documents.receive(aiter(part))))
        yield received
    finally:
        for _, blob in received.files:
            await tenant_view.documents.drop(blob)
