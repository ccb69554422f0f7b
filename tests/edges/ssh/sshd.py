"""A real OpenSSH server on 127.0.0.1, with keys of its own, for the tests of the SSH edge."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from clusterctl.ports import HostAddress
from tests.ports import reserve_port

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")


@dataclass
class Sshd:
    """Started on entry, ended on exit. `address` is what a right configuration would know of it.

    `options`: more lines of sshd_config(5); `command`: what runs in the place of any command that is sent.
    """

    folder: Path
    port: int = 0
    options: str = ""
    command: str = ""
    process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        for name in ("host", "user", "stranger"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.folder / name)]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
        forced = f'command="{self.command}" ' if self.command else ""
        (self.folder / "authorized").write_text(f"{forced}{self.public('user')}\n")
        self.port = reserve_port("127.0.0.1")
        (self.folder / "config").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {self.folder}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self.folder}/authorized\nStrictModes no\nPermitRootLogin yes\n"
            f"{self.options}"
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        argv = [SSHD or "sshd", "-D", "-e", "-f", str(self.folder / "config")]
        self.process = subprocess.Popen(argv, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if b"Server listening" in line:
                break
        return self

    def __exit__(self, *exc: object) -> None:
        assert self.process is not None
        assert self.process.stderr is not None
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def public(self, name: str) -> str:
        return (self.folder / f"{name}.pub").read_text().strip()

    def address(self, *, host_key: str = "host", key: str = "user", port: int = 0) -> HostAddress:
        return HostAddress(
            name="node001",
            address="127.0.0.1",
            user=getpass.getuser(),
            host_key=self.public(host_key),
            key_file=str(self.folder / key),
            port=port or self.port,
        )
