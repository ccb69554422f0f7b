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
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clusterctl.edges.disk import disk_explained, write_once
from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site.secrets import private_text
from clusterctl.edges.site.site_keys import SiteKeys, is_encrypted
from clusterctl.fleet.bmc.accounts import PasswordRule, expected_serial, same
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.secret import NeverPickled
from clusterctl.fleet.state import NodeState
from clusterctl.ports.accounts import Generation

_NAME = re.compile(r"(?P<node>[^.].*)\.(?P<number>[1-9][0-9]{0,8})(?P<proven>\.proven)?")
_TEXTS = ("name", "bmc", "serial", "user", "password")
_SETTLED_NS = 2_000_000_000
"""A folder that was changed so lately may change again without a new time: file systems count in ticks."""
_REMEDY = "restore it from a copy: it is the only record of the password of that BMC"
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Part:
    """Content of a file's name: node and number, and whether it is the proof that the password was taken."""

    name: str
    key: _Key
    is_proof: bool


class KeptPasswords(NeverPickled):
    """Those in `folder` (mode 0700). Files that have come since are read too; none ever changes. Thread-safe."""

    def __init__(self, folder: Path, keys: SiteKeys | None = None) -> None:
        self._folder = folder
        self._keys = keys or SiteKeys()
        self._lock = threading.Lock()
        self._stamp = 0
        self._names: frozenset[str] = frozenset()
        self._plain: set[str] = set()
        self._found: dict[_Key, Generation] = {}
        self._near: defaultdict[str, dict[_Key, Generation]] = defaultdict(dict)

    @property
    def empty(self) -> bool:
        return not self._folder.is_dir()

    def all(self) -> tuple[Generation, ...]:
        """Return all, oldest first of each machine. Raise `UsageError` for a file that is no password of ours."""
        with self._lock:
            self._read_again()
            return tuple(sorted(self._found.values(), key=_age))

    def of(self, serial: str, name: str, bmc: str) -> tuple[Generation, ...]:
        """Return those of one machine, by its serial where both have one, else by its node's name and BMC's address."""
        with self._lock:
            self._read_again()
            near = self._near.get(_by_serial(serial), {}) | self._near.get(_by_place(name, bmc), {})
        return tuple(sorted((one for one in near.values() if _is_of(one, serial, name, bmc)), key=_age))

    def _read_again(self) -> None:
        """Read the files again where the folder has changed."""
        if self.empty:
            self._forget()
            return
        with disk_explained("cannot be read", self._folder):
            stamp = self._folder.stat().st_mtime_ns
            if stamp == self._stamp:
                return
            names = frozenset(file.name for file in self._folder.iterdir() if not file.name.startswith("."))
        if self._names - names:
            self._forget()
        new = sorted((_parts(self._folder / name) for name in names - self._names), key=lambda part: part.is_proof)
        KNOWN.add([self._take_in(part) for part in new])
        self._names = names
        self._stamp = stamp if time.time_ns() - stamp > _SETTLED_NS else 0

    def _forget(self) -> None:
        self._stamp, self._names = 0, frozenset()
        self._plain.clear()
        self._found.clear()
        self._near.clear()

    def _take_in(self, part: _Part) -> str:
        """Read one file; a proof comes after its password. Return the password, empty for a proof."""
        file = self._folder / part.name
        if not part.is_proof:
            one = _generation(*part.key, self._texts(file, _TEXTS))
            self._put(one, part.key)
            return one.password
        known = self._found.get(part.key)
        if known is None:
            where = str(self._folder / f"{part.key[0]}.{part.key[1]}")
            raise UsageError("is missing", where=where, remedy=_REMEDY)
        self._near[_by_serial(known.serial)].pop(part.key, None)
        self._put(replace(known, proven=True, serial=self._texts(file, ("serial",))["serial"]), part.key)
        return ""

    def _put(self, one: Generation, key: _Key) -> None:
        self._found[key] = one
        for place in (_by_serial(one.serial), _by_place(one.name, one.bmc)):
            self._near[place][key] = one

    def write(self, generation: Generation) -> None:
        """Write it; on disk when this returns, also where the controller loses its power."""
        KNOWN.add([generation.password])
        document = {field: getattr(generation, field) for field in _TEXTS}
        self._write(f"{generation.node}.{generation.number}", {"version": 1, **document})

    def prove(self, generation: Generation, serial: Serial | None) -> None:
        """Record the proof; on disk when this returns."""
        document = {"version": 1, "serial": serial or generation.serial}
        self._write(f"{generation.node}.{generation.number}.proven", document)

    def place(self, generation: Generation) -> str:
        """Return the place where it is kept, for messages."""
        return str(self._folder / f"{generation.node}.{generation.number}")

    def _write(self, name: str, document: Mapping[str, Any]) -> None:
        write_once(self._folder / name, f"{self._keys.encrypt(json.dumps(document))}\n".encode())
        for folder in (self._folder, self._folder.parent):
            _sync(folder)

    def unencrypted(self) -> tuple[Generation, ...]:
        """Return the passwords that are in use and stand unencrypted in their files, though the site names keys."""
        if not self._keys:
            return ()
        newest = {one.node: one for one in self.all()}
        return tuple(one for one in newest.values() if f"{one.node}.{one.number}" in self._plain)

    def _texts(self, file: Path, fields: Iterable[str]) -> dict[str, str]:
        text = private_text(file, "state/bmc_passwords")
        if not is_encrypted(text):
            self._plain.add(file.name)
        return _texts(self._keys.decrypt(text, str(file)), file, fields)


@dataclass(frozen=True, slots=True)
class PasswordVault(NeverPickled):
    """Meets `Vault`: draws passwords by the site's rule and keeps them."""

    kept: KeptPasswords
    rule: PasswordRule

    def latest(self, node: NodeState) -> Generation | None:
        """Return the last one, by the serial of the machine that the node is or shall be, else by name and address."""
        found = self.kept.of(expected_serial(node) or "", node.name, node.bmc)
        return found[-1] if found else None

    def draw(self, node: NodeState, user: str, length: int, serial: str) -> Generation:
        """Return a new one. Numbers go on: neither the node's nor the machine's are used again."""
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


def _by_serial(serial: str) -> str:
    return f"serial {serial.strip().casefold()}"


def _by_place(name: str, bmc: str) -> str:
    return f"at {name} {bmc}"


def _age(one: Generation) -> tuple[int, str]:
    return one.number, one.node


def _parts(file: Path) -> _Part:
    parts = _NAME.fullmatch(file.name)
    if parts is None:
        raise UsageError("is no password of a BMC", where=str(file), remedy="take it out of this folder")
    return _Part(file.name, (parts["node"], int(parts["number"])), bool(parts["proven"]))


def _generation(node: str, number: int, document: Mapping[str, str]) -> Generation:
    return Generation(
        NodeId(node),
        number,
        document["name"],
        document["bmc"],
        document["serial"],
        document["user"],
        document["password"],
    )


def _texts(text: str, file: Path, fields: Iterable[str]) -> dict[str, str]:
    """Return the fields of one file; no error repeats what stands in it."""
    try:
        document = json.loads(text)
        found = {field: document[field] for field in fields}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError("is no password of a BMC", where=str(file), remedy=_REMEDY) from None
    if document.get("version") != 1:
        remedy = "use the clusterctl that wrote it, or a newer one"
        raise UsageError("was written by another version of clusterctl", where=str(file), remedy=remedy)
    if not all(isinstance(value, str) for value in found.values()) or found.get("password") == "":
        raise UsageError("is no password of a BMC", where=str(file), remedy=_REMEDY)
    return found


def _sync(folder: Path) -> None:
    """Make a new name durable by its folder (fsync(2))."""
    with disk_explained("cannot be written", folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
