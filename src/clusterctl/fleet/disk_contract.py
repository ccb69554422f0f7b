"""Which of the drives that a machine itself sees gets the OS: exactly one, or none is touched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError


@dataclass(frozen=True, slots=True)
class SeenDrive:
    """A whole drive as the machine's own kernel tells it.

    path         `/dev/nvme0n1`
    serial, wwn  as udev or sysfs tell them; empty where they do not
    fingerprint  SHA-256 over parts of the drive, read before anything was written; empty where nobody read it
    """

    path: str
    serial: str
    wwn: str = ""
    model: str = ""
    size_bytes: int = 0
    fingerprint: str = ""

    def __str__(self) -> str:
        identity = self.serial or self.wwn or "without a serial"
        return f"{self.path} {identity} {self.model} {self.size_bytes / 1e9:.0f} GB".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class DiskContract:
    """The drive that may be overwritten, by the identity that the BMC told: its serial, or its WWN where it has one."""

    serial: str
    wwn: str = ""

    def __str__(self) -> str:
        return f"serial {self.serial}" + (f" or WWN {self.wwn}" if self.wwn else "")

    def choose(self, drives: Sequence[SeenDrive], where: str = "") -> SeenDrive:
        """The one drive that is meant. Raises `EdgeError`, naming all drives, where it is none or several."""
        fitting = [drive for drive in drives if self.fits(drive)]
        if len(fitting) == 1:
            return fitting[0]
        number = f"{len(fitting)} drives" if fitting else "no drive"
        raise EdgeError(
            f"the machine sees {number} with the root disk's {self}; it sees "
            f"{', '.join(map(str, drives)) or 'none at all'}",
            where=where,
            remedy="compare the drives that BMC and machine tell: reseat or replace the root disk, and after an "
            "exchange run clusterctl discover on it again",
        )

    def fits(self, drive: SeenDrive) -> bool:
        """By serial, or by WWN: what a drive does not tell is never equal to anything."""
        by_serial = bool(self.serial) and same_identity(self.serial, drive.serial)
        return by_serial or same_name(self.wwn, drive.wwn)


def same_identity(one: str, other: str) -> bool:
    """Serials of one drive as different tools tell them: case, blanks and udev's underscores for blanks may differ."""
    plain = [re.sub(r"[\s_]+", "", text).casefold() for text in (one, other)]
    return bool(plain[0]) and plain[0] == plain[1]


def same_name(one: str, other: str) -> bool:
    """World-wide names of one drive, whatever their prefix (`0x`, `naa.`, `eui.`), dashes and case."""
    return same_identity(_bare(one), _bare(other))


def _bare(wwn: str) -> str:
    return re.sub(r"^(0x|naa\.|eui\.|nvme\.)", "", wwn.strip().casefold()).replace("-", "").replace(":", "")
