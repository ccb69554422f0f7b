"""The passwords that clusterctl gave to BMCs: one file a password, `NODE.NUMBER`, each written once.

A password is on disk before its BMC is asked to take it. That the BMC was seen to take it is a second file,
`NODE.NUMBER.proven`: so whatever is interrupted, no password is lost, and it is known which of them are still in doubt.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clusterctl.edges.disk import disk_explained
from clusterctl.edges.private_file import write_once
from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site.secrets import private_text
from clusterctl.fleet.bmc_accounts import expected_serial, same
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.password_rule import PasswordRule
from clusterctl.fleet.secret import Kept
from clusterctl.fleet.state import NodeState
from clusterctl.ports.accounts import Generation

_NAME = re.compile(r"(?P<node>[^.].*)\.(?P<number>[1-9][0-9]{0,8})(?P<proven>\.proven)?")
_TEXTS = ("name", "bmc", "serial", "user", "password")
_REMEDY = "restore it from a copy; without it nobody knows the password of that BMC"


class KeptPasswords(Kept):
    """Those in `folder` (mode 0700). Read again where files have come since. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._seen: tuple[str, ...] = ()
        self._all: tuple[Generation, ...] = ()

    @property
    def empty(self) -> bool:
        return not self._folder.is_dir()

    def all(self) -> tuple[Generation, ...]:
        """Each, oldest first of each machine. Raises `UsageError` for a file that is no password of ours."""
        if self.empty:
            return ()
        with self._lock:
            with disk_explained("cannot be read", self._folder):
                names = tuple(sorted(file.name for file in self._folder.iterdir() if not file.name.startswith(".")))
            if names != self._seen:
                self._all = _read(self._folder, names)
                self._seen = names
            return self._all

    def of(self, serial: str, name: str, bmc: str) -> tuple[Generation, ...]:
        """Those of one machine, by its serial where it is known of both, else by its node's name and BMC's address."""
        return tuple(one for one in self.all() if _is_of(one, serial, name, bmc))

    def write(self, generation: Generation) -> None:
        """On disk when this returns, also where the controller loses its power."""
        KNOWN.add([generation.password])
        told = {field: getattr(generation, field) for field in _TEXTS}
        self._write(f"{generation.node}.{generation.number}", {"version": 1, **told})

    def prove(self, generation: Generation, serial: Serial | None) -> None:
        """Likewise."""
        told = {"version": 1, "serial": serial or generation.serial}
        self._write(f"{generation.node}.{generation.number}.proven", told)

    def place(self, generation: Generation) -> str:
        """For people: where it is kept."""
        return str(self._folder / f"{generation.node}.{generation.number}")

    def _write(self, name: str, told: Mapping[str, Any]) -> None:
        write_once(self._folder / name, f"{json.dumps(told)}\n".encode())
        for folder in (self._folder, self._folder.parent):
            _sync(folder)


@dataclass(frozen=True, slots=True)
class PasswordVault(Kept):
    """Meets `Vault`: draws passwords by the site's rule and keeps them."""

    kept: KeptPasswords
    rule: PasswordRule

    def latest(self, node: NodeState) -> Generation | None:
        """By the serial of the machine that the node is or shall be, else by name and address."""
        found = self.kept.of(expected_serial(node) or "", node.name, node.bmc)
        return found[-1] if found else None

    def draw(self, node: NodeState, user: str, length: int, serial: str) -> Generation:
        """Numbers go on: neither the node's nor the machine's are used again."""
        password = self.rule.draw(length, secrets.choice)
        taken = [
            one.number
            for one in self.kept.all()
            if one.node == node.id or _is_of(one, serial or expected_serial(node) or "", node.name, node.bmc)
        ]
        number = max(taken, default=0) + 1
        generation = Generation(node.id, number, node.name, node.bmc, serial, user, password)
        self.kept.write(generation)
        return generation

    def prove(self, generation: Generation, serial: Serial | None) -> None:
        self.kept.prove(generation, serial)

    def place(self, generation: Generation) -> str:
        return self.kept.place(generation)


def _is_of(one: Generation, serial: str, name: str, bmc: str) -> bool:
    if serial and one.serial:
        return same(serial, one.serial)
    return bool(name) and (one.name, one.bmc) == (name, bmc)


def _read(folder: Path, names: Iterable[str]) -> tuple[Generation, ...]:
    found: dict[tuple[str, int], Generation] = {}
    proven: dict[tuple[str, int], str] = {}
    for name in names:
        file = folder / name
        parts = _NAME.fullmatch(name)
        if parts is None:
            raise UsageError("is no password of a BMC", where=str(file), remedy="take it out of this folder")
        key = (parts["node"], int(parts["number"]))
        if parts["proven"]:
            proven[key] = _texts(file, ("serial",))["serial"]
        else:
            found[key] = _generation(*key, _texts(file, _TEXTS))
    orphan = next((key for key in proven if key not in found), None)
    if orphan is not None:
        raise UsageError("is missing", where=str(folder / f"{orphan[0]}.{orphan[1]}"), remedy=_REMEDY)
    KNOWN.add(one.password for one in found.values())
    marked = [replace(one, proven=True, serial=proven[key]) if key in proven else one for key, one in found.items()]
    return tuple(sorted(marked, key=lambda one: (one.number, one.node)))


def _generation(node: str, number: int, told: Mapping[str, str]) -> Generation:
    return Generation(NodeId(node), number, told["name"], told["bmc"], told["serial"], told["user"], told["password"])


def _texts(file: Path, fields: Iterable[str]) -> dict[str, str]:
    """The fields of one file; no error repeats what stands in it."""
    text = private_text(file, "state/bmc_passwords")
    try:
        told = json.loads(text)
        found = {field: told[field] for field in fields}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError("is no password of a BMC", where=str(file), remedy=_REMEDY) from None
    if told.get("version") != 1:
        remedy = "use the clusterctl that wrote it, or a newer one"
        raise UsageError("was written by another version of clusterctl", where=str(file), remedy=remedy)
    if not all(isinstance(value, str) for value in found.values()) or found.get("password") == "":
        raise UsageError("is no password of a BMC", where=str(file), remedy=_REMEDY)
    return found


def _sync(folder: Path) -> None:
    """A new name is durable when its folder is (fsync(2))."""
    with disk_explained("cannot be written", folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
