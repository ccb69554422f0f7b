"""The private folder of one Ansible run: inventory, pinned host keys, variables, ansible.cfg. Mode 0700, files 0600."""

from __future__ import annotations

import configparser
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import HostAddress

SOCKET_PATH_MAX = 107  # sun_path of unix(7), less the closing NUL
CONTROL_NAME = len("/rXXXXXXXX/c/") + 10 + len(".") + 16  # run folder, Ansible's hash, ssh's temporary suffix


@dataclass(frozen=True, slots=True)
class Settings:
    """How Ansible shall run. Seconds; `task_timeout` ends a task that hangs, on its host alone."""

    forks: int
    connect_timeout: int = 15
    task_timeout: int = 1800
    gather_timeout: int = 30


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folder of one run. `create` makes it, `remove` takes it away; the supervisor does too when the caller dies."""

    root: Path

    @classmethod
    def create(cls, work_dir: Path, fallback: Path | None = None) -> Workspace:
        """A fresh folder below `work_dir`, or below `fallback` (the system's temporary folder) where that is too long.

        Too long means that the kernel cannot hold the path of ssh's control socket: every host would look unreachable.
        """
        parent = next((path for path in (work_dir, fallback or Path(tempfile.gettempdir())) if _is_short(path)), None)
        if parent is None:
            raise EnvironmentBrokenError(
                f"the path is too long for ssh's control sockets (at most {SOCKET_PATH_MAX - CONTROL_NAME} bytes)",
                where=str(work_dir),
                remedy="set TMPDIR to a shorter path",
            )
        try:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            root = Path(tempfile.mkdtemp(prefix="r", dir=parent))
            for name in ("c", "tmp", "env"):
                (root / name).mkdir(mode=0o700)
        except OSError as error:
            raise EnvironmentBrokenError(
                f"cannot create Ansible's work directory: {error.strerror}",
                where=str(parent),
                remedy="make it writable, or choose another",
            ) from error
        return cls(root)

    @property
    def inventory(self) -> Path:
        return self.root / "inventory.json"

    @property
    def environment(self) -> dict[str, str]:
        """All that Ansible inherits: no agent, no proxies, no settings of the person who started us."""
        tools = Path(sys.executable).parent
        return {
            "PATH": f"{tools}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.root),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.root / "tmp"),
            "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.root / "tmp"),
        }

    def fill(
        self, hosts: Sequence[HostAddress], variables: Mapping[str, Any], roles_dir: Path, settings: Settings
    ) -> None:
        """Write every file. Variables go by file, never by argv: they may hold secrets."""
        self._write("inventory.json", json.dumps(inventory(hosts)))
        self._write("known_hosts", "".join(known_hosts_line(host) for host in hosts))
        self._write("env/extravars", json.dumps(dict(variables)))
        self._write("ansible.cfg", self._config(roles_dir, settings))

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def _write(self, name: str, text: str) -> None:
        descriptor = os.open(self.root / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    def _config(self, roles_dir: Path, settings: Settings) -> str:
        config = configparser.RawConfigParser()
        config["defaults"] = {
            "roles_path": str(roles_dir),
            "forks": str(settings.forks),
            "timeout": str(settings.connect_timeout),
            "task_timeout": str(settings.task_timeout),
            "gather_timeout": str(settings.gather_timeout),
            "local_tmp": str(self.root / "tmp"),
            "retry_files_enabled": "false",
            "host_key_checking": "true",
            "nocows": "true",
        }
        config["ssh_connection"] = {
            "pipelining": "true",
            "retries": "2",
            "control_path_dir": str(self.root / "c"),
            "ssh_args": " ".join(self._ssh_args()),
        }
        text = io.StringIO()
        config.write(text)
        return text.getvalue()

    def _ssh_args(self) -> Sequence[str]:
        """Only our pins and our key; a hung host is noticed in 45 s; curve25519 costs a sixth of sntrup761."""
        options = {
            "ControlMaster": "auto",
            "ControlPersist": "60s",
            "UserKnownHostsFile": str(self.root / "known_hosts"),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "UpdateHostKeys": "no",
            "KexAlgorithms": "^curve25519-sha256,curve25519-sha256@libssh.org",
            "PreferredAuthentications": "publickey",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "ServerAliveInterval": "15",
            "ServerAliveCountMax": "3",
        }
        return ["-F", "none", *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]


def _is_short(work_dir: Path) -> bool:
    return len(os.fsencode(work_dir)) + CONTROL_NAME <= SOCKET_PATH_MAX


def inventory(hosts: Sequence[HostAddress]) -> dict[str, Any]:
    """Ansible's inventory as its YAML plugin reads it."""
    return {
        "all": {
            "hosts": {
                host.name: {
                    "ansible_host": host.address,
                    "ansible_port": host.port,
                    "ansible_user": host.user,
                    "ansible_ssh_private_key_file": host.key_file,
                    "ansible_python_interpreter": "/usr/bin/python3",
                }
                for host in hosts
            }
        }
    }


def known_hosts_line(host: HostAddress) -> str:
    """One line of sshd(8)'s known_hosts: a port other than 22 stands behind the bracketed address."""
    address = str(ip_address(host.address)) if _is_address(host.address) else host.address
    name = address if host.port == 22 else f"[{address}]:{host.port}"
    return f"{name} {host.host_key}\n"


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
