"""One run: its settings and its private folder (mode 0700) with inventory, host keys, variables and ansible.cfg."""

from __future__ import annotations

import configparser
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.run_folders import PREFIX, discard, places, private_folder
from clusterctl.edges.disk import disk_explained
from clusterctl.fleet.errors import EnvironmentBrokenError, UnreachableError
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.secret import NeverPickled
from clusterctl.formats.identifiers import is_address
from clusterctl.ports import LEASE_S, Clock, Deadline, HostAddress


def ssh_options(known_hosts: Path, **more: str) -> list[str]:
    """Return arguments of ssh(1): our key, our pinned host keys and nothing else.

    A hung host is noticed in 45 s; curve25519 costs a sixth of sntrup761.
    """
    options = {
        **more,
        "UserKnownHostsFile": str(known_hosts),
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


SOCKET_PATH_MAX = 107  # sun_path of unix(7), less the closing NUL
CONTROL_NAME = len(f"/{PREFIX}XXXXXXXX/c/") + 10 + len(".") + 16  # run folder, Ansible's hash, ssh's temporary suffix


BEATS = 5
"""How many signs of life are sent within the silence that ends a play."""


class OutOfTimeError(UnreachableError):
    """The deadline of the whole run has passed."""


def require_time(deadline: Deadline, doing: str) -> None:
    """Check the deadline. Raises `OutOfTimeError` when it has passed, else as `Deadline.check` does."""
    try:
        deadline.check(doing)
    except UnreachableError as error:
        raise OutOfTimeError(error.message) from error


@dataclass(frozen=True, slots=True)
class PlayLimits:
    """The number of hosts at once, and timeouts in seconds; `task_timeout` ends a hung task on its host alone."""

    forks: int
    connect_timeout: int = 15
    task_timeout: int = 1800
    gather_timeout: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(NeverPickled):
    """What all runs of one controller share.

    `secrets` are variables with values that no output repeats. With `check` nothing changes, and `changed` counts the
    changes that a run would make. A play ends when the controller is silent for `silence_s`.
    """

    work_dir: Path
    playbooks_dir: Path
    roles_dir: Path
    limits: PlayLimits
    origin: Origin
    clock: Clock
    check: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    silence_s: float = LEASE_S / 2


def tool_path() -> str:
    """Return the PATH of a run: first the folder of this Python, then the folders of the system."""
    return f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of one run, locked while this process lives.

    `create` makes it, `remove` removes it. When the caller dies, the supervisor or the next run removes it.
    """

    root: Path
    lock: int

    @classmethod
    def create(cls, work_dir: Path, fallback: Path | None = None) -> Workspace:
        """Make a folder below `work_dir`, or below `fallback` (ours in the temporary folder) where that is too long.

        Too long: the path of ssh's control socket exceeds the kernel's limit, and every host seems unreachable.
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
    def known_hosts(self) -> Path:
        return self.root / "known_hosts"

    @property
    def environment(self) -> dict[str, str]:
        """Return all variables that Ansible inherits: no agent, no proxy, no setting of the operator."""
        return {
            "PATH": tool_path(),
            "HOME": str(self.root),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.root / "tmp"),
            "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.root / "tmp"),
        }

    def fill(
        self, hosts: Sequence[HostAddress], variables: Mapping[str, Any], roles_dir: Path, limits: PlayLimits
    ) -> None:
        """Write all files. Variables are in a file, never in argv: they may hold secrets."""
        with disk_explained("cannot write what Ansible needs", self.root):
            for name in ("c", "tmp", "env"):
                (self.root / name).mkdir(mode=0o700)
            self._write("inventory.json", json.dumps(inventory(hosts)))
            self.pin(hosts)
            self._write("env/extravars", json.dumps(dict(variables)))
            self._write("ansible.cfg", self._config(roles_dir, limits))

    def pin(self, hosts: Sequence[HostAddress]) -> Path:
        """Write the trusted host keys, and return their file."""
        with disk_explained("cannot write the hosts' keys", self.root):
            self._write("known_hosts", "".join(known_hosts_line(host) for host in hosts))
        return self.known_hosts

    def remove(self) -> None:
        """Remove and unlock the folder."""
        discard(self.root)
        os.close(self.lock)

    def _write(self, name: str, text: str) -> None:
        descriptor = os.open(self.root / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    def _config(self, roles_dir: Path, limits: PlayLimits) -> str:
        config = configparser.RawConfigParser()
        config["defaults"] = {
            "roles_path": str(roles_dir),
            "forks": str(limits.forks),
            "timeout": str(limits.connect_timeout),
            "task_timeout": str(limits.task_timeout),
            "gather_timeout": str(limits.gather_timeout),
            "local_tmp": str(self.root / "tmp"),
            "retry_files_enabled": "false",
            "host_key_checking": "true",
            "nocows": "true",
            "no_target_syslog": "true",  # modules log their arguments, secrets among them
        }
        config["ssh_connection"] = {
            "pipelining": "true",
            "retries": "2",
            "control_path_dir": str(self.root / "c"),
            "ssh_args": " ".join(ssh_options(self.known_hosts, ControlMaster="auto", ControlPersist="60s")),
        }
        text = io.StringIO()
        config.write(text)
        return text.getvalue()


def _is_short(work_dir: Path) -> bool:
    return len(os.fsencode(work_dir)) + CONTROL_NAME <= SOCKET_PATH_MAX


def inventory(hosts: Sequence[HostAddress]) -> dict[str, Any]:
    """Return the inventory in the form of Ansible's YAML plugin."""
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
    """Return a line of sshd(8)'s known_hosts: a port other than 22 follows the address in brackets."""
    address = str(ip_address(host.address)) if is_address(host.address) else host.address
    name = address if host.port == 22 else f"[{address}]:{host.port}"
    return f"{name} {host.host_key}\n"
