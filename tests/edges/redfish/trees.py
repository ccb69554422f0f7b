"""Trees of Redfish resources for the tests: our own small one, and the recorded ones where they are at hand."""

from __future__ import annotations

import enum
import json
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from clusterctl.formats.redfish.tree import Answer, Answers, ReadRequest, Unreadable
from tests.paths import SHARED

T = TypeVar("T")
Tree = dict[str, Any]
_RECORDED = SHARED / "samples" / "redfish"
_DATA = Path(__file__).parent / "data"


class Manner(enum.Enum):
    """What a BMC does with `$expand`, whatever it claims to support."""

    PLAIN = "does not know it"
    EXPANDS = "puts the members into the collection"
    IGNORES = "answers as if it were not there"
    REFUSES = "answers 501"
    LOSES = "leaves the last member out"
    SHORTENS = "puts in less than it has"


def small() -> Tree:
    """A machine of our own making: 2 GPUs and an empty socket, 2 HCAs, 2 Ethernet ports, 2 drives and an empty bay."""
    found: Tree = json.loads((_DATA / "small.json").read_text())
    return found


def dgx() -> Tree:
    """A machine of our own making like an AMI BMC with an HGX board: two systems, GPUs on the second, a null
    serial that only the chassis' assembly has, sensors one by one, no Ethernet port of the host.
    """
    found: Tree = json.loads((_DATA / "dgx.json").read_text())
    return found


def recorded(vendor: str) -> Tree:
    """What a real BMC (dell, hpe, supermicro) answered; skips where the recordings are not at hand."""
    archive = _RECORDED / f"{vendor}.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no recording of a {vendor} BMC here")
    return {path: json.loads(text) for path, text in _texts(archive).items()}


@cache
def _texts(archive: Path) -> dict[str, bytes]:
    wanted = ("/Systems", "/Chassis", "/Managers", "/UpdateService", "/CertificateService")
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


def answer(tree: Tree, path: str, manner: Manner = Manner.PLAIN) -> Answer:
    """Return this BMC's answer to a GET of the path."""
    plain, _, query = path.partition("?$expand=")
    if not query or manner is Manner.IGNORES:
        return tree.get(plain if manner is Manner.IGNORES else path, Unreadable("HTTP 404"))
    body = tree.get(plain, Unreadable("HTTP 404"))
    if manner in (Manner.PLAIN, Manner.REFUSES) or isinstance(body, Unreadable):
        return Unreadable("HTTP 501")
    members = body.get("Members")
    if not isinstance(members, list):
        return body
    carried = [_carried(tree, member) for member in members]
    if manner is Manner.LOSES:
        carried = carried[:-1]
    if manner is Manner.SHORTENS:
        carried = [{key: value for key, value in item.items() if key.startswith("@")} for item in carried]
    return {**body, "Members": carried}


def _carried(tree: Tree, member: Any) -> Any:
    target = member.get("@odata.id") if isinstance(member, dict) else None
    found = tree.get(target.rstrip("/")) if isinstance(target, str) else None
    return {**found, "@odata.id": target} if isinstance(found, dict) else member


def ask(read: Callable[[Answers], T | ReadRequest], tree: Tree, manner: Manner = Manner.PLAIN) -> T:
    """The answer that a parser gives on this tree, fed as an edge feeds it."""
    return asked(read, tree, manner)[0]


def asked(read: Callable[[Answers], T | ReadRequest], tree: Tree, manner: Manner = Manner.PLAIN) -> tuple[T, list[str]]:
    """The same, and the paths that were read for it, in order."""
    answers: dict[str, Answer] = {}
    while isinstance(found := read(answers), ReadRequest):
        answers |= {path: answer(tree, path, manner) for path in found.paths}
    return found, list(answers)
