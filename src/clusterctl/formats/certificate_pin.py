"""Certificate pins: the SHA-256 of a TLS certificate, as OpenSSL and browsers print it."""

from __future__ import annotations

import re

_PREFIX = re.compile(r"^sha-?256(\s+fingerprint)?\s*[=:]?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def parse_pin(text: str) -> str:
    """Return the SHA-256 of a certificate's DER as 64 lower-case digits.

    `text` is what OpenSSL or a browser prints (`AB:CD:…`). Raises ValueError.
    """
    digits = _PREFIX.sub("", text.strip().lower()).replace(":", "").replace(" ", "")
    if not _SHA256.fullmatch(digits):
        raise ValueError("must be a SHA-256 fingerprint: 64 hexadecimal digits, with or without colons")
    return digits


def with_colons(digits: str) -> str:
    """Return a pin as OpenSSL prints it."""
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)).upper()
