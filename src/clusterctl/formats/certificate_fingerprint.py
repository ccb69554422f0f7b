"""Fingerprints of certificates, as people write and read them."""

from __future__ import annotations

import re

_SHA256 = re.compile(r"[0-9a-f]{64}")


def fingerprint(text: str) -> str:
    """The SHA-256 of a certificate's DER as 64 lower-case digits, from what OpenSSL or a browser shows (`AB:CD:…`).

    Raises ValueError.
    """
    digits = re.sub(r"^sha-?256(\s+fingerprint)?\s*[=:]?", "", text.strip().lower()).replace(":", "").replace(" ", "")
    if not _SHA256.fullmatch(digits):
        raise ValueError("must be a SHA-256 fingerprint: 64 hexadecimal digits, with or without colons")
    return digits


def shown(digits: str) -> str:
    """A fingerprint as OpenSSL prints it."""
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)).upper()
