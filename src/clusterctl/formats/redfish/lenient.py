"""Reading from a machine that nobody knows yet: what it tells in a wrong shape counts as not told.

For a sweep only, which says who is there. Whoever judges a machine reads strictly (`Resource`, `Tree`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.node import Mac
from clusterctl.formats.macs import read_mac
from clusterctl.formats.redfish.tree import Answers, Resource

T = TypeVar("T")
_SERIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/:-]{0,63}")
_NO_UUID = re.compile(r"0{8}-(?:0{4}-){3}0{12}|f{8}-(?:f{4}-){3}f{12}|03000200-0400-0500-0006-000700080009")
_MAX_WORDS = 100


def told(read: Callable[[], T]) -> T | None:
    """What `read` gives; None where the BMC tells something else than it should."""
    try:
        return read()
    except ClusterctlError:
        return None


def words(resource: Resource | None, *keys: str) -> str:
    """Printable and short, for it is shown on a terminal and written to a sheet; empty where not told."""
    if resource is None:
        return ""
    found = told(lambda: resource.text(*keys)) or ""
    return "".join(sign for sign in found if sign.isprintable())[:_MAX_WORDS].strip()


def serial_like(text: str | None) -> str:
    """The text where it can be a serial number, else empty."""
    return text if text and _SERIAL.fullmatch(text) else ""


def uuid(resource: Resource | None) -> str:
    """Lower case; empty where it is one that boards have before anybody gave them theirs."""
    found = words(resource, "UUID").lower()
    return "" if _NO_UUID.fullmatch(found) else found


def mac(text: str) -> Mac | None:
    try:
        return read_mac(text)
    except ValueError:
        return None


def link(resource: Resource | None, *keys: str) -> str | None:
    return told(lambda: resource.link(*keys)) if resource is not None else None


def links(resource: Resource | None, *keys: str) -> list[str]:
    found = told(lambda: resource.references(*keys)) if resource is not None else None
    return list(dict.fromkeys(found or ()))


def read(answers: Answers, path: str | None) -> Resource | None:
    """What was read of a path; None where it was not, or could not be."""
    found = answers.get(path) if path is not None else None
    return Resource(path or "", found) if isinstance(found, Mapping) else None
