"""A host's disk: what the installer wrote above the shared image. It stays while the power is off.

Files are written only into a fresh, empty folder: what a host once running left there (links!) is never followed.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from clusterctl.fleet.errors import UsageError


@dataclass(frozen=True, slots=True)
class Disk:
    """`path` holds `upper` (the host's files), `work` (overlayfs') and `installed.json`, written last."""

    path: Path

    @property
    def upper(self) -> Path:
        return self.path / "upper"

    @property
    def _record(self) -> Path:
        return self.path / "installed.json"

    def erase(self) -> None:
        """Nothing is installed any more."""
        self._record.unlink(missing_ok=True)
        if self.path.exists():
            shutil.rmtree(self.path)

    def format(self) -> None:
        """An empty disk."""
        self.erase()
        self.path.mkdir(mode=0o700, parents=True)
        self.upper.mkdir(mode=0o755)
        self.renew_work()

    def renew_work(self) -> None:
        """Made again for each boot: overlayfs refuses a `volatile` work folder that was used before."""
        work = self.path / "work"
        if work.exists():
            shutil.rmtree(work)
        work.mkdir()

    def record(self, machine_serial: str, disk_serial: str) -> None:
        """The installation is complete."""
        draft = self._record.with_suffix(".new")
        draft.write_text(json.dumps({"machine": machine_serial, "disk": disk_serial}))
        draft.replace(self._record)

    def installed_on(self) -> str:
        """Serial of the drive that the OS was written to; empty where none was."""
        try:
            record = json.loads(self._record.read_text())
        except FileNotFoundError:
            return ""
        serial = record["disk"]
        return serial if isinstance(serial, str) else ""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes into a formatted disk as if the image below it were mounted: follows its links, keeps its modes."""

    upper: Path
    image: Path

    def write(self, path: str, content: bytes, mode: int = 0o644, uid: int = 0, gid: int = 0) -> None:
        """`path` is absolute in the host. New parents belong to `uid`:`gid` only below a home that does."""
        pure = PurePosixPath(path)
        if not pure.is_absolute() or ".." in pure.parts:
            raise UsageError(f"`{path}` is no absolute path", where="user-data write_files", remedy="Give it whole.")
        target = self.directory(str(pure.parent)) / pure.name
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            os.fchown(handle.fileno(), uid, gid)
            os.fchmod(handle.fileno(), mode)

    def directory(self, path: str, mode: int = 0o755, uid: int = 0, gid: int = 0) -> Path:
        """The folder in the upper layer for `path`, made where it is missing."""
        inside = PurePosixPath("/")
        for part in PurePosixPath(path).parts[1:]:
            inside = self._follow(inside / part)
            self._mirror(inside, mode, uid, gid)
        return self._in(self.upper, inside)

    def _follow(self, path: PurePosixPath) -> PurePosixPath:
        """The image's own links in the way, such as /lib → usr/lib."""
        below = self._in(self.image, path)
        if not below.is_symlink():
            return path
        target = path.parent / below.readlink()
        return PurePosixPath(os.path.normpath(target))

    def _mirror(self, path: PurePosixPath, mode: int, uid: int, gid: int) -> None:
        above, below = self._in(self.upper, path), self._in(self.image, path)
        if above.is_dir():
            return
        if path != path.parent and not self._in(self.upper, path.parent).is_dir():
            self._mirror(path.parent, mode, uid, gid)
        above.mkdir()
        if below.is_dir():
            status = below.stat()
            mode, uid, gid = status.st_mode & 0o7777, status.st_uid, status.st_gid
        above.chmod(mode)
        os.chown(above, uid, gid)

    @staticmethod
    def _in(layer: Path, path: PurePosixPath) -> Path:
        return layer / path.relative_to("/")
