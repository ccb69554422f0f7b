"""The private folder of one Ansible run: inventory, pinned host keys, variables, ansible.cfg. Mode 0700, files 0600."""

from __future__ import annotations

import configparser
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.folders import PREFIX, discard, places, private_folder
from clusterctl.edges.ansible.ssh_options import ssh_options
from clusterctl.edges.disk import disk_explained
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import HostAddress

SOCKET_PATH_MAX = 107  # sun_path of unix(7), less the closing NUL
CONTROL_NAME = len(f"/{PREFIX}XXXXXXXX/c/") + 10 + len(".") + 16  # run folder, Ansible's hash, ssh's temporary suffix


@dataclass(frozen=True, slots=True)
class Settings:
    """How Ansible shall run. Seconds; `task_timeout` ends a task that hangs, on its host alone."""

    forks: int
    connect_timeout: int = 15
    task_timeout: int = 1800
    gather_timeout: int = 30


def tool_path() -> str:
    """Where runs look for programs: beside our Python first, then where the system has its own."""
    return f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folder of one run, locked as long as this process lives and works in it.

    `create` makes it, `remove` takes it away; when the caller dies the supervisor does, or else the next run.
    """

    root: Path
    lock: int

    @classmethod
    def create(cls, work_dir: Path, fallback: Path | None = None) -> Workspace:
        """A fresh folder below `work_dir`, or below `fallback` (ours in the temporary folder) where that is too long.

        Too long means that the kernel cannot hold the path of ssh's control socket: every host would look unreachable.
        """
        parent = next((path for path in places(work_dir, fallback) if _is_short(path)), None)
        if parent is None:
            raise EnvironmentBrokenError(
                f"the path is too long for ssh's control sockets (at most {SOCKET_PATH_MAX - CONTROL_NAME} bytes)",
                where=str(work_dir),
                remedy="set TMPDIR to a shorter path",
            )
        with disk_explained("cannot create Ansible's work directory", parent):
            return cls(*private_folder(parent))

    @property
    def inventory(self) -> Path:
        return self.root / "inventory.json"

    @property
    def environment(self) -> dict[str, str]:
        """All that Ansible inherits: no agent, no proxies, no settings of the person who started us."""
        return {
            "PATH": tool_path(),
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
        with disk_explained("cannot write what Ansible needs", self.root):
            for name in ("c", "tmp", "env"):
                (self.root / name).mkdir(mode=0o700)
            self._write("inventory.json", json.dumps(inventory(hosts)))
            self.pin(hosts)
            self._write("env/extravars", json.dumps(dict(variables)))
            self._write("ansible.cfg", self._config(roles_dir, settings))

    def pin(self, hosts: Sequence[HostAddress]) -> Path:
        """Write the only host keys that are trusted; the file that holds them."""
        with disk_explained("cannot write the hosts' keys", self.root):
            self._write("known_hosts", "".join(known_hosts_line(host) for host in hosts))
        return self.root / "known_hosts"

    def remove(self) -> None:
        discard(self.root)
        os.close(self.lock)

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
            "ssh_args": " ".join(ssh_options(self.root / "known_hosts", ControlMaster="auto", ControlPersist="60s")),
        }
        text = io.StringIO()
        config.write(text)
        return text.getvalue()


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
