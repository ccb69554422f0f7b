"""The files that dnsmasq reads, in a folder that its own user reaches: the site's state is closed to it.

As root the folder is below /run; the truth about who is answered stays in the site's state. Only `leases` belongs to
dnsmasq's user: root writes in no folder of another user.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.edges.pxe.accounts import InstallAccount

RUN = Path("/run/clusterctl")


@dataclass(frozen=True, slots=True)
class DhcpFolder:
    """`state` is the site's `state/pxe/dnsmasq`; `account` that of dnsmasq, None where it keeps ours."""

    state: Path
    account: InstallAccount | None

    @property
    def path(self) -> Path:
        if self.account is None:
            return self.state / "run"
        return RUN / f"pxe-{hashlib.sha256(str(self.state.resolve()).encode()).hexdigest()[:16]}"

    @property
    def configuration(self) -> Path:
        return self.path / "dnsmasq.conf"

    @property
    def hosts(self) -> Path:
        return self.path / "hosts"

    @property
    def tftp(self) -> Path:
        return self.path / "tftp"

    @property
    def leases(self) -> Path:
        return self.path / "leases" / "dnsmasq.leases"

    def prepare(self, hosts: Path, loaders: Path) -> None:
        """Fill the folder: the hosts that are answered, and the boot loaders. Raises `EnvironmentBrokenError`."""
        with disk_explained("cannot be made", self.path):
            if self.account is not None:
                RUN.mkdir(mode=0o755, exist_ok=True)
            self._make(self.path)
            for folder, source in ((self.hosts, hosts), (self.tftp, loaders)):
                shutil.rmtree(folder, ignore_errors=True)
                self._make(folder)
                for file in source.iterdir() if source.is_dir() else ():
                    if file.is_file() and not file.name.startswith("."):
                        self._put(folder / file.name, file.read_bytes())
            self._make(self.leases.parent)
            if self.account is not None:
                os.chown(self.leases.parent, self.account.user, self.account.group)

    def write_configuration(self, text: str) -> None:
        with disk_explained("cannot be written", self.configuration):
            self._put(self.configuration, text.encode())

    def add_host(self, name: str, line: bytes) -> None:
        """Have the machine answered, where the folder is in use; dnsmasq reads it at its next signal."""
        if self.hosts.is_dir():
            with disk_explained("cannot be written", self.hosts / name):
                self._put(self.hosts / name, line)

    def remove(self) -> None:
        """Remove the folder. Leases go with it: each address is reserved, and given to the same machine again."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _make(self, folder: Path) -> None:
        folder.mkdir(mode=0o750, exist_ok=True)
        self._give(folder, 0o750)

    def _put(self, file: Path, content: bytes) -> None:
        write_whole(file, content, mode=0o640, over=True)
        self._give(file, 0o640)

    def _give(self, path: Path, mode: int) -> None:
        """Let dnsmasq's group read it, and no further user."""
        if self.account is not None:
            os.chown(path, 0, self.account.group)
        path.chmod(mode)
