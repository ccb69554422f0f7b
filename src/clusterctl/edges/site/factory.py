"""The vendor's list of factory logins (`bmc.factory`): a user and a password for each machine, by serial or BMC MAC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site.secrets import private_text, resolve
from clusterctl.fleet.bmc.observation import Listed
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.fleet.secret import NeverPickled
from clusterctl.formats.site.sheets import ListRow, read_bmc_list
from clusterctl.site.fields import SecretRef


@dataclass(frozen=True, slots=True)
class FactoryList(NeverPickled):
    """Secrets that the list refers to are read when they are asked for."""

    folder: Path
    rows: tuple[ListRow, ...] = field(default=(), repr=False)
    by_serial: Mapping[str, ListRow] = field(default_factory=dict, repr=False)
    by_mac: Mapping[Mac, ListRow] = field(default_factory=dict, repr=False)

    @property
    def machines(self) -> tuple[Listed, ...]:
        """The list without its logins."""
        return tuple(row.machine for row in self.rows)

    def login(self, serial: str, mac: Mac | None) -> tuple[str, str] | None:
        """Return the user (or empty) and password of the machine; None where the list has none. Raise `UsageError`."""
        row = self.by_serial.get(serial.lower()) if serial else None
        row = row or (self.by_mac.get(mac) if mac is not None else None)
        if row is None or not (row.password or row.password_ref):
            return None
        return row.user, row.password or self._resolved(row)

    def passwords(self) -> tuple[str, ...]:
        """Return the passwords of all machines that it has one for; references are read now."""
        rows = [row for row in self.rows if row.password or row.password_ref]
        return tuple(row.password or self._resolved(row) for row in rows)

    def serial_of(self, mac: Mac | None) -> str:
        """Return the serial of the machine with a BMC of this MAC address; empty where the list does not have it."""
        row = self.by_mac.get(mac) if mac is not None else None
        return row.machine.serial if row is not None else ""

    def check(self) -> None:
        """Resolve every reference once. Raises `UsageError` for the first that is wrong."""
        for row in self.rows:
            if row.password_ref:
                self._resolved(row)

    def _resolved(self, row: ListRow) -> str:
        """Return the password of a row: `file:PATH` and `env:NAME` are resolved, as in site.yml."""
        kind, _, kept = row.password_ref.partition(":")
        where = f"{row.machine.where} password_ref"
        if kind not in ("file", "env") or not kept:
            remedy = "write file:PATH or env:NAME, never the secret itself"
            raise UsageError("is no reference to a secret", where=where, remedy=remedy)
        return resolve(SecretRef(**{kind: kept}), self.folder, where)


def read_factory(folder: Path, name: str, named_by: str) -> FactoryList:
    """Return the list that `bmc.factory` names, empty without one; only its owner may read it."""
    if not name:
        return FactoryList(folder)
    file = folder / name
    rows = read_bmc_list(private_text(file, named_by), str(file))
    KNOWN.add(row.password for row in rows if row.password)
    by_serial = {row.machine.serial.lower(): row for row in rows if row.machine.serial}
    by_mac = {row.machine.bmc_mac: row for row in rows if row.machine.bmc_mac is not None}
    return FactoryList(folder, rows, by_serial, by_mac)
