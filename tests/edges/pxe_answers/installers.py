"""Runs the shell of the answers as an installer would: another shell, other tools, folders of the test's own.

Nothing of it may touch this machine: clock and power are stand-ins by absolute path, and a test that runs it as root has lost
the right to set the clock.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

TOOLS = "awk cat chmod cp cut date dd grep head kill mkdir mv printf rm sed sleep sort sync tail tar gzip tr wc"
DISK_BYTES = 8 << 20


@dataclass(frozen=True)
class Installer:
    """`shell`: the words that start it; `bin`: all the tools it has; `folder`: what stands for the machine's files."""

    shell: tuple[str, ...]
    bin: Path
    folder: Path

    def run(self, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = self.folder / "install.sh"
        script.write_text(program)
        return self.start(str(script), *arguments, **environment)

    def start(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        argv = [*_without_rights(), *self.shell, *arguments]
        return subprocess.run(
            argv, env=self.environment(**environment), capture_output=True, text=True, timeout=600, check=False
        )

    def popen(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        argv = [*_without_rights(), *self.shell, *arguments]
        return subprocess.Popen(argv, env=self.environment(**environment), stdout=subprocess.DEVNULL)

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "PAUSE": "0",
            "TRIES": "50",
            "SET_CLOCK": str(self.bin / "set-clock"),
            "POWER_OFF": str(self.bin / "power-off"),
            "TARGET": str(self.folder / "target"),
            "IN_TARGET": f"{self.bin}/in-target",
            "http_proxy": "http://127.0.0.1:9",
        } | more

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    @property
    def probe(self) -> str:
        """The probe of a machine with two drives, one of them `disk`."""
        lines = ["serial=SN1", "mac=52:54:00:00:00:01", f"disk={self.disk}\tROOT1\t\t{DISK_BYTES}\tModel\tabc"]
        return "".join(f"echo '{line}'\n" for line in [*lines, "disk=/dev/nvme9n1\tDATA1\t\t1000\tModel\tdef"])

    @property
    def accepted(self) -> str:
        return f"root={self.disk}\ntime=1767225600\n"

    def done(self, what: str) -> list[str]:
        """Return the arguments of a stand-in, one line for each call."""
        reported = self.folder / what
        return reported.read_text().splitlines() if reported.exists() else []


def installer(folder: Path, shell: str, transport: str) -> Installer:
    """`shell`: dash or busybox; `transport`: curl or wget."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    (folder / "target" / "etc" / "ssh").mkdir(parents=True)
    (folder / "disk").write_bytes(b"\x55" * DISK_BYTES)
    for name in TOOLS.split():
        _link(bin_folder, name)
    _stand_ins(bin_folder, folder)
    _link(bin_folder, transport)
    words = (_found("busybox"), "sh") if shell == "busybox" else (_found("dash"),)
    (bin_folder / "sh").write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
    (bin_folder / "sh").chmod(0o755)
    return Installer(words, bin_folder, folder)


def _stand_ins(bin_folder: Path, folder: Path) -> None:
    key = "ssh-ed25519 AAAAkey root@node001"
    programs = {
        "set-clock": f'echo "$*" >> {folder}/clock',
        "power-off": f'echo "$*" >> {folder}/power',
        "debconf-set": f'echo "$*" >> {folder}/debconf',
        "blockdev": f'echo "$*" >> {folder}/blockdev',
        "in-target": f'echo "$*" >> {folder}/in-target\n'
        f"[ \"$1\" != ssh-keygen ] || echo '{key}' > {folder}/target/etc/ssh/ssh_host_ed25519_key.pub",
    }
    for name, text in programs.items():
        path = bin_folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)


def _link(bin_folder: Path, name: str) -> None:
    (bin_folder / name).symlink_to(_found(name))


def _found(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} here: scripts/debian-packages names it")
    return path


def _without_rights() -> list[str]:
    setpriv = shutil.which("setpriv")
    return [setpriv, "--bounding-set", "-sys_time,-sys_boot"] if os.geteuid() == 0 and setpriv else []
