"""How OpenSSH is told to enter a host: by our key, trusting our pins and nothing else."""

from __future__ import annotations

from pathlib import Path


def ssh_options(known_hosts: Path, **more: str) -> list[str]:
    """Arguments of ssh(1). A hung host is noticed in 45 s; curve25519 costs a sixth of sntrup761."""
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
