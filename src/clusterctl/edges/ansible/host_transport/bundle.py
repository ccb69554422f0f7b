"""Ansible for hosts: the controller's ansible-core and ansible-runner as one archive without machine code.

It is packed once per set of versions and kept next to the folders of the runs; a host keeps it unpacked, by its digest.
Left out: compiled extensions (PyYAML and MarkupSafe work without them), cryptography (only vaults need it, and no vault
is sent) and resolvelib (only ansible-galaxy needs it).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import lzma
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType

from clusterctl.edges.ansible import supervisor
from clusterctl.edges.ansible.host_transport.programs import module_server, package_managers, payload_run, quick_start
from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.fleet.errors import EnvironmentBrokenError

DISTRIBUTIONS = (
    "ansible-core",
    "ansible-runner",
    "jinja2",
    "markupsafe",
    "packaging",
    "pexpect",
    "ptyprocess",
    "pyyaml",
)
TAKEN = {"ansible", "ansible_runner", "jinja2", "markupsafe", "packaging", "pexpect", "ptyprocess", "yaml"}
NOT_TAKEN = frozenset({".c", ".pyc", ".pyd", ".pyi", ".pyx", ".so"})
OLDEST_PYTHON = (3, 11)
"""Of ansible-core 2.19, where the package does not name it; see the support matrix in Ansible's documentation:
https://docs.ansible.com/ansible/latest/reference_appendices/release_and_maintenance.html
"""
PRESET = 3  # 1.5 MB; the highest one saves a tenth and takes five times as long

LAUNCHER = b"""\
#!/usr/bin/python3 -I
import os
import sys

here = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "lib"))
os.environ["PATH"] = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if part != here)
os.umask(int(os.environ.pop("CLUSTERCTL_UMASK"), 8))
os.chdir(os.environ.pop("CLUSTERCTL_FOLDER"))

from pathlib import Path

from clusterctl.edges.ansible.host_transport.programs.module_server import start
from clusterctl.edges.ansible.host_transport.programs.quick_start import read_imports_once, use_libyaml

alive = start(Path(here).parent, os.environ["CLUSTERCTL_MODULES"])
use_libyaml()

from ansible.cli.playbook import main
from ansible.executor import module_common

read_imports_once(Path(here).parent, module_common)

if __name__ == "__main__":
    main()
"""
"""`bin/ansible-playbook`: starts the module server, and gives tasks the PATH, umask and folder as over SSH."""
PACKAGES = ("", "edges", "edges/ansible", "edges/ansible/host_transport", "edges/ansible/host_transport/programs")
CONNECTION = Path(__file__).parent / "programs/local_connection.py"
PROGRAMS = (supervisor, package_managers, payload_run, module_server, quick_start)
MODULE_UTILS = "lib/ansible/module_utils/"


@dataclass(frozen=True, slots=True)
class Bundle:
    """The packed archive. `digest` (SHA-256) is its name on hosts; `oldest_python` is the oldest that can run it."""

    content: bytes
    digest: str
    oldest_python: tuple[int, int]


def ensure_bundle(folder: Path) -> Bundle:
    """Return the archive of this controller's versions; pack it into `folder` if it is not there yet.

    Several processes may do so at once: the file is written completely or not at all, with the same bytes.
    """
    file = folder / f"ansible-{_key()}.tar.xz"
    with disk_explained("cannot keep Ansible for hosts", folder):
        if not file.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(file, pack(), mode=0o600, over=False)
            for other in folder.glob("ansible-*.tar.xz"):
                if other != file:
                    other.unlink(missing_ok=True)
        content = file.read_bytes()
    return Bundle(content, hashlib.sha256(content).hexdigest(), oldest_python())


def oldest_python() -> tuple[int, int]:
    """Return the oldest Python that this ansible-core supports, by its metadata (`>=3.11`)."""
    required = re.search(r">=\s*(\d+)\.(\d+)", str(importlib.metadata.metadata("ansible-core")["Requires-Python"]))
    return (int(required[1]), int(required[2])) if required else OLDEST_PYTHON


def pack() -> bytes:
    """Return the archive: `lib/` (packages, metadata, our programs) and `bin/ansible-playbook`; reproducible."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        files = sorted(_files())
        if not any(name.startswith("lib/ansible/") for name, _ in files):
            raise EnvironmentBrokenError(
                "ansible-core's list of files is not installed, so it cannot be packed for hosts",
                where=str(importlib.metadata.distribution("ansible-core").locate_file("")),
                remedy="install clusterctl with its dependencies by pip",
            )
        for name, content in files:
            _add(archive, name, content, 0o644)
        _add(archive, f"lib/{quick_start.TABLE}", quick_start.import_table(_module_utils(files)).encode(), 0o644)
        for name in PACKAGES:
            _add(archive, f"{PurePosixPath('lib/clusterctl', name)}/__init__.py", b"", 0o644)
        for program in PROGRAMS:
            _add(archive, f"lib/{program.__name__.replace('.', '/')}.py", _source(program), 0o644)
        _add(archive, "connection/local_connection.py", CONNECTION.read_bytes(), 0o644)
        _add(archive, "bin/ansible-playbook", LAUNCHER, 0o755)
    return lzma.compress(packed.getvalue(), preset=PRESET)


def _files() -> Iterator[tuple[str, bytes]]:
    for distribution in map(importlib.metadata.distribution, DISTRIBUTIONS):
        for path in distribution.files or ():
            if _is_taken(path):
                yield f"lib/{path}", Path(str(path.locate())).read_bytes()


def _module_utils(files: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Return the files that Ansible packs with its modules, by their names in Python."""
    return {
        name.removeprefix("lib/").removesuffix(".py").removesuffix("/__init__").replace("/", "."): content
        for name, content in files
        if name.startswith(MODULE_UTILS) and name.endswith(".py")
    }


def _is_taken(path: PurePosixPath) -> bool:
    top = path.parts[0]
    if top.endswith(".dist-info"):
        return path.name == "METADATA" and len(path.parts) == 2  # importlib.metadata reads versions there
    return top in TAKEN and path.suffix not in NOT_TAKEN


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _source(module: ModuleType) -> bytes:
    return Path(str(module.__file__)).read_bytes()


def _key() -> str:
    """Return a key that changes with every version in the archive, and with our programs."""
    versions = " ".join(f"{name}={importlib.metadata.version(name)}" for name in DISTRIBUTIONS)
    ours = (*map(_source, PROGRAMS), CONNECTION.read_bytes(), Path(__file__).read_bytes())
    return hashlib.sha256(b"\0".join((versions.encode(), *ours))).hexdigest()[:16]
