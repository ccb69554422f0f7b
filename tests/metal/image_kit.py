"""A container image of a few files, as `docker save` would write it: no registry is needed."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
from pathlib import Path

NAME = "clusterctl-lab/busybox:1"
PROGRAM = Path("/bin/busybox")


def image() -> bytes:
    """The busybox of this machine with the libraries that it is linked to (Docker Image Specification v1.2)."""
    layer = _layer()
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": [str(PROGRAM), "true"]},
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    files = {
        "layer.tar": layer,
        "config.json": json.dumps(config).encode(),
        "manifest.json": json.dumps(manifest).encode(),
    }
    return _tar(files, 0o644)


def _layer() -> bytes:
    linked = subprocess.run(["ldd", str(PROGRAM)], capture_output=True, text=True, check=False).stdout
    libraries = re.findall(r"(/\S+) \(0x", linked)
    return _tar({path.lstrip("/"): Path(path).read_bytes() for path in (str(PROGRAM), *libraries)}, 0o755)


def _tar(files: dict[str, bytes], mode: int) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
