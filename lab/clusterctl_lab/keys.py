"""Makes a lab's secrets."""

from __future__ import annotations

import secrets
import string

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from clusterctl_lab.site_files import Keys

PASSWORD_LENGTH = 20
"""iDRAC takes at most 40 characters (IPMI 2.0 at most 20)."""

_ALPHABET = string.ascii_letters + string.digits


def make_keys(comment: str) -> Keys:
    """Fresh ones. MAAS's key has three parts: consumer, token, secret."""
    private, public = ssh_key_pair()
    return Keys(
        bmc_password=_random(PASSWORD_LENGTH),
        maas_api_key=":".join((_random(18), _random(18), _random(32))),
        ssh_private=private,
        ssh_public=f"{public} {comment}",
    )


def ssh_key_pair() -> tuple[str, str]:
    """An ed25519 key in OpenSSH's form: private and public."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return private.decode(), key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
