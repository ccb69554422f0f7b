"""The payload of a run, sent to every host: the playbook, its roles and variables, as one archive in memory."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.host_transport.portable import Portable

SKIPPED = frozenset({"__pycache__", "README.md"})


def pack(
    playbook: Path, portable: Portable, roles_dir: Path, variables: Mapping[str, Any], secrets: Mapping[str, str]
) -> bytes:
    """Return `playbooks/`, `roles/` and `env/extravars`, compressed. Nothing is written to the controller's disk.

    A secret variable is included only if the playbook or one of its roles names it.
    """
    files = dict(_files(playbook, portable, roles_dir))
    given = {**variables, **named(secrets, files)}
    files["env/extravars"] = json.dumps(given).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o600
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def named(secrets: Mapping[str, str], files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the secrets with names that are words in one of the files."""
    words = {word for content in files.values() for word in re.findall(rb"\w+", content)}
    return {name: value for name, value in secrets.items() if name.encode() in words}


def _files(playbook: Path, portable: Portable, roles_dir: Path) -> Iterator[tuple[str, bytes]]:
    for file in portable.files:
        yield f"playbooks/{file.relative_to(playbook.parent)}", file.read_bytes()
    for role in portable.roles:
        for file in sorted((roles_dir / role).rglob("*")):
            if file.is_file() and SKIPPED.isdisjoint(file.parts):
                yield f"roles/{file.relative_to(roles_dir)}", file.read_bytes()
