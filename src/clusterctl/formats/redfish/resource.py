"""One Redfish resource as a BMC answered it, and typed access to its fields.

Terms and fields: DMTF DSP0266 (protocol), DSP2046 (schemas).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import ParseError

ROOT = "/redfish/v1"
_PATH = re.compile(r"/redfish/v1(/[^\s#\\]*)?")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The BMC did not give this resource; `reason` in words (`HTTP 403: insufficient privilege`)."""

    reason: str


Answer = Mapping[str, Any] | Unreadable
"""What came back for one path: the JSON object, or why there is none."""

Answers = Mapping[str, Answer]
"""By path, as `normal` writes it."""


def normal(path: str, where: str) -> str:
    """The path without fragment and trailing slash; `ParseError` where it leads out of the Redfish service."""
    bare = path.split("#", 1)[0].replace("//", "/").rstrip("/")
    if not _PATH.fullmatch(bare) or ".." in bare:
        raise ParseError(f"link {path!r} leads out of the Redfish service", where=where)
    return bare


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource (or an object inside one). Getters take null and absent as the same: "not told".

    A field of another type than asked for is a `ParseError` that names resource and field.
    """

    path: str
    body: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The last part of the path: unlike the field `Id` it cannot be missing."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def absent(self) -> bool:
        """An empty socket, bay or slot that the BMC lists nevertheless."""
        return self.text("Status", "State") == "Absent"

    def where(self, *keys: str) -> str:
        return f"{self.path} {'.'.join(keys)}".strip()

    def value(self, *keys: str) -> Any:
        """The raw value below `keys`; None where it, or an object on the way, is null or absent."""
        here: Any = self.body
        for depth, key in enumerate(keys):
            if here is None:
                return None
            if not isinstance(here, Mapping):
                raise self._mistyped(keys[:depth], "an object", here)
            here = here.get(key)
        return here

    def text(self, *keys: str) -> str:
        """A string without the padding that some vendors add; empty where not told."""
        found = self.value(*keys)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self._mistyped(keys, "text", found)
        return found.strip()

    def number(self, *keys: str) -> float | None:
        found = self.value(*keys)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
            raise self._mistyped(keys, "a number", found)
        return found

    def whole(self, *keys: str) -> int | None:
        found = self.number(*keys)
        if found is None:
            return None
        if found < 0 or found != int(found):
            raise self._mistyped(keys, "a whole number", found)
        return int(found)

    def flag(self, *keys: str) -> bool | None:
        found = self.value(*keys)
        if found is not None and not isinstance(found, bool):
            raise self._mistyped(keys, "true or false", found)
        return found

    def texts(self, *keys: str) -> tuple[str, ...]:
        """A list of strings; empty where not told."""
        found = self._list(keys)
        if not all(isinstance(item, str) for item in found):
            raise self._mistyped(keys, "a list of text", found)
        return tuple(found)

    def each(self, *keys: str) -> tuple[Resource, ...]:
        """The objects of a list that stands inside this resource."""
        pointer = f"{self.path}#/{'/'.join(keys)}"
        items = self._list(keys)
        if not all(isinstance(item, Mapping) for item in items):
            raise self._mistyped(keys, "a list of objects", items)
        return tuple(Resource(f"{pointer}/{index}", item) for index, item in enumerate(items))

    def link(self, *keys: str) -> str | None:
        """The path that an `{"@odata.id": …}` points to; None where there is no such link."""
        found = self.value(*keys)
        if found is None:
            return None
        target = found.get("@odata.id") if isinstance(found, Mapping) else None
        if not isinstance(target, str):
            raise self._mistyped(keys, "a link", found)
        return normal(target, self.where(*keys))

    def links(self, *keys: str) -> tuple[str, ...]:
        """The paths that a list of links points to, each once; never fewer than its `@odata.count` claims."""
        paths = self.references(*keys)
        count = self.whole(*keys[:-1], f"{keys[-1]}@odata.count")
        if count is not None and count != len(paths):
            raise ParseError(f"it counts {count} links but lists {len(paths)}", where=self.where(*keys))
        return tuple(dict.fromkeys(paths))

    def references(self, *keys: str) -> list[str]:
        """The paths that a list of links points to, as they stand; empty where not told."""
        found = [item.link() for item in self.each(*keys)]
        return [path for path in found if path]

    def has(self, *keys: str) -> bool:
        return self.value(*keys) is not None

    def _list(self, keys: tuple[str, ...]) -> list[Any]:
        found = self.value(*keys)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self._mistyped(keys, "a list", found)
        return found

    def _mistyped(self, keys: tuple[str, ...], expected: str, found: object) -> ParseError:
        return ParseError(f"expected {expected}, found {type(found).__name__}", where=self.where(*keys))
