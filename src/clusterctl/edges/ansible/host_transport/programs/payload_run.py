"""Runs on a host, from the bundle: unpacks the payload into memory, and starts the supervisor."""

from __future__ import annotations

import configparser
import io
import json
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.host_transport.programs.package_managers import end_without_package_managers
from clusterctl.edges.ansible.supervisor import serve

SHELL_UMASK, SHELL_FOLDER = "CLUSTERCTL_UMASK", "CLUSTERCTL_FOLDER"
"""`bin/ansible-playbook` restores these, so that tasks run in the same environment as over SSH."""

MODULES = "CLUSTERCTL_MODULES"
"""The socket of `module_server`."""


@dataclass(frozen=True)
class Surroundings:
    """Where a play runs.

    home        the unpacked bundle
    runs        a folder in memory that only root can read
    cwd, umask  as the SSH session had them
    """

    home: Path
    runs: Path
    cwd: str
    umask: int


def run(payload: bytes, job: Mapping[str, Any], surroundings: Surroundings, silence_s: float) -> None:
    """Run the play; never return."""
    home, runs = surroundings.home, surroundings.runs
    root = runs / "run"
    root.mkdir(mode=0o700)
    with tarfile.open(fileobj=io.BytesIO(payload), mode="r:gz") as archive:
        archive.extractall(root)  # noqa: S202 — ours, over our own connection
    (root / "tmp").mkdir(mode=0o700)
    (root / "inventory.json").write_text(json.dumps(inventory(job)))
    (root / "ansible.cfg").write_text(config(root, home, job))
    os.environ.update(
        {
            "PATH": f"{home}/bin{os.pathsep}{os.environ.get('PATH') or os.defpath}",
            "ANSIBLE_CONFIG": str(root / "ansible.cfg"),
            "ANSIBLE_HOME": str(root / "tmp"),
            SHELL_UMASK: f"{surroundings.umask:o}",
            SHELL_FOLDER: surroundings.cwd,
            MODULES: str(root / "modules"),
        }
    )
    os.environ.setdefault("LC_CTYPE", "C.UTF-8")  # as Python does where none is set (PEP 538)
    settings = {
        "private_dir": str(root),
        "project_dir": str(root / "playbooks"),
        "playbook": str(root / "playbooks" / job["playbook"]),
        "inventory": str(root / "inventory.json"),
        "roles_path": str(root / "roles"),
        "flags": job["flags"],
        "silence_s": silence_s,
    }
    serve(settings, wind_down=end_without_package_managers, keep_children=True)


def inventory(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return an inventory of this host alone; `job["host"]` holds its variables."""
    local = {
        "ansible_connection": "local_connection",
        "ansible_user": "root",
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    return {"all": {"hosts": {job["name"]: {**job["host"], **local}}}}


def config(root: Path, home: Path, job: Mapping[str, Any]) -> str:
    """Return an ansible.cfg that makes no difference to tasks from the one over SSH."""
    parts = configparser.RawConfigParser()
    parts["defaults"] = {
        "roles_path": str(root / "roles"),
        "connection_plugins": str(home / "connection"),
        "forks": "1",
        "internal_poll_interval": "0.01",  # 1,000 polls a second cost 3 % of a processor
        "task_timeout": str(job["task_timeout"]),
        "gather_timeout": str(job["gather_timeout"]),
        "local_tmp": str(root / "tmp"),
        "retry_files_enabled": "false",
        "nocows": "true",
        "no_target_syslog": "true",  # modules log their arguments, secrets among them
    }
    parts["connection"] = {"pipelining": "true"}
    text = io.StringIO()
    parts.write(text)
    return text.getvalue()
