"""Settings files that the build has turned into JSON; `clusterctl.formats.site.yaml_document` in the node's file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from clusterctl.fleet.errors import UsageError
from clusterctl_burnin.node_check.models import ValidationError, convert

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Document:
    """The content of `file`."""

    file: str
    data: Any
    lines: Mapping[Any, int] = field(default_factory=dict)

    def where(self, *path: str | int) -> str:
        """Return the file and the field."""
        return f"{self.file} {'.'.join(map(str, path))}".rstrip()


def parse_yaml(text: str, file: str) -> Document:
    """Return the document."""
    return Document(file, json.loads(text))


def validate(document: Document, model: type[M], explained_in: str) -> M:
    """Return the document as `model`. Raises `UsageError` for the first field that does not fit."""
    try:
        found: M = convert(model, document.data)
    except ValidationError as error:
        raise UsageError(error.message, where=document.where(*error.at), remedy=f"see {explained_in}") from None
    return found
