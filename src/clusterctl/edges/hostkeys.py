"""SSH host keys that clusterctl makes for its hosts before they exist, so that nothing is trusted on first use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from clusterctl.edges.disk import disk_explained, write_once, write_over
from clusterctl.edges.site.secrets import private_text
from clusterctl.fleet.errors import UsageError


@dataclass(frozen=True, slots=True)
class HostKeys:
    """One ed25519 key a host in `folder` (mode 0700), made when first asked for, the same until it is renewed."""

    folder: Path

    def get(self, name: str) -> tuple[str, str]:
        """Return (private key in OpenSSH's format, public key as `ssh-ed25519 AAAA…`).

        Raise `UsageError` for a file that another account may have put there.
        """
        file = self.folder / name
        if not file.exists():
            write_once(file, _new_key())
        private = f"{private_text(file, 'state/host_keys')}\n"
        return private, public_key(private, str(file))

    def rename(self, old: str, new: str, pinned: str) -> None:
        """Give the key of one host to its new name; called again, finish it.

        A key that an earlier host with the new name had goes, also where this host has none: that host may still have
        it. `pinned` is the public key that the host is known by; empty where it has none yet.
        """
        file = self.folder / old
        with disk_explained("the host key cannot be renamed", file):
            if file.exists():
                file.replace(self.folder / new)
            elif (self.folder / new).exists() and not (pinned and self.get(new)[1].split() == pinned.split()[:2]):
                self.forget(new)

    def forget(self, name: str) -> None:
        """Remove the key of a host that is retired: the next host with its name gets another one."""
        with disk_explained("the host key cannot be removed", self.folder / name):
            (self.folder / name).unlink(missing_ok=True)

    def renew(self, name: str) -> tuple[str, str]:
        """Return another key in the place of the one that the host had."""
        write_over(self.folder / name, _new_key())
        return self.get(name)


def public_key(private: str, where: str) -> str:
    """Return the public half of an OpenSSH private key without a passphrase."""
    try:
        key = load_ssh_private_key(private.encode(), password=None)
    except (ValueError, TypeError):
        raise UsageError(
            "is no OpenSSH private key without a passphrase",
            where=where,
            remedy="make one: ssh-keygen -t ed25519 -N ''",
        ) from None
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def _new_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
