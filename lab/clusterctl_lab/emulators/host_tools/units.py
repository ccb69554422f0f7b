"""systemd units that every lab host has for its stand-ins."""

from __future__ import annotations

from collections.abc import Mapping

_DOCKER = """\
[Unit]
Description=Stand-in for Docker of a rehearsal lab (starts no containers)

[Service]
ExecStart=/bin/sleep infinity
RuntimeDirectory=clusterctl-lab-docker
Restart=on-failure
"""

_FABRIC_MANAGER = """\
[Unit]
Description=Stand-in for NVIDIA's fabric manager of a rehearsal lab (there are no NVSwitches)

[Service]
ExecStart=/bin/sleep infinity
"""

_WANTED = """\
[Unit]
Wants=docker.service nvidia-fabricmanager.service
"""

_FOLDER = "/usr/lib/systemd/system"


def unit_files() -> Mapping[str, tuple[bytes, int]]:
    """Absolute path → content and mode."""
    return {
        f"{_FOLDER}/docker.service": (_DOCKER.encode(), 0o644),
        f"{_FOLDER}/nvidia-fabricmanager.service": (_FABRIC_MANAGER.encode(), 0o644),
        f"{_FOLDER}/multi-user.target.d/docker.conf": (_WANTED.encode(), 0o644),
    }
