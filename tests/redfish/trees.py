"""Trees of Redfish resources for the tests: our own small one, and the recorded ones where they are at hand."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from clusterctl.formats.redfish.tree import Answer, Answers, Unreadable, Wanted

T = TypeVar("T")
Tree = dict[str, Any]
_RECORDED = Path(__file__).parents[2].parent / "shared" / "samples" / "redfish"
_DATA = Path(__file__).parent / "data"


def small() -> Tree:
    """A machine of our own making: 2 GPUs and an empty socket, 2 HCAs, 2 Ethernet ports, 2 drives and an empty bay."""
    found: Tree = json.loads((_DATA / "small.json").read_text())
    return found


def recorded(vendor: str) -> Tree:
    """What a real BMC (dell, hpe, supermicro) answered; skips where the recordings are not at hand."""
    archive = _RECORDED / f"{vendor}.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no recording of a {vendor} BMC here")
    return {path: json.loads(text) for path, text in _texts(archive).items()}


@cache
def _texts(archive: Path) -> dict[str, bytes]:
    wanted = ("/Systems", "/Chassis", "/Managers", "/UpdateService/FirmwareInventory")
    found = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            _, slash, inner = member.name.partition("/redfish/v1")
            path, _, name = f"/redfish/v1{inner}".rpartition("/")
            if not slash or name != "index.json" or not (inner.startswith(wanted) or path == "/redfish/v1"):
                continue
            content = tar.extractfile(member)
            assert content is not None
            found[path] = content.read()
    return found


def ask(read: Callable[[Answers], T | Wanted], tree: Tree) -> T:
    """The answer that a parser gives on this tree, fed as an edge feeds it."""
    answers: dict[str, Answer] = {}
    while isinstance(found := read(answers), Wanted):
        answers |= {path: tree.get(path, Unreadable("HTTP 404")) for path in found.paths}
    return found
