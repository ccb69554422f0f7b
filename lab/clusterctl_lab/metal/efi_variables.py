"""What a BMC gives its firmware for a boot over HTTPS, as QEMU's firmware (OVMF) reads it.

The URI of the next boot as EFI variables (UEFI 2.10: 3.1.3 load options, 10.3.4.23 URI device path; EDK II's
VariableFormat.h), and the authorities as EFI signature lists (UEFI 2.10, 32.4.1), which OVMF takes by fw_cfg
(OvmfPkg/README, "HTTPS Boot").
"""

from __future__ import annotations

import ssl
import struct
import uuid
from collections.abc import Iterable

from clusterctl.fleet.errors import EnvironmentBrokenError

GLOBAL = uuid.UUID("8be4df61-93ca-11d2-aa0d-00e098032b8c")
X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072")
OPTION = "UEFI HTTPS"
"""The name of that boot, which OVMF prints on its console."""
_FIRST = 0x64
"""Where the first variable of an empty store is: after the headers of volume and store."""
_KEPT = 0x7
"""NON_VOLATILE, BOOTSERVICE_ACCESS, RUNTIME_ACCESS."""


def boot_next_from(uri: str, empty: bytes) -> bytes:
    """Return an `empty` store of variables with the next boot in it, as `HttpBootUri` with `UefiHttp` once does."""
    content = bytearray(empty)
    path = struct.pack("<BBH", 3, 24, 4 + len(uri)) + uri.encode() + struct.pack("<BBH", 0x7F, 0xFF, 4)
    option = struct.pack("<IH", 1, len(path)) + f"{OPTION}\0".encode("utf-16-le") + path
    kept = _variable("Boot0099", option) + _variable("BootNext", struct.pack("<H", 0x99))
    if content[_FIRST : _FIRST + len(kept)] != b"\xff" * len(kept):
        raise EnvironmentBrokenError(
            "OVMF's store of variables is not empty", remedy="apt-get install --reinstall ovmf"
        )
    content[_FIRST : _FIRST + len(kept)] = kept
    return bytes(content)


def _variable(name: str, data: bytes) -> bytes:
    named = f"{name}\0".encode("utf-16-le")
    head = struct.pack("<HBBIQ16xIII", 0x55AA, 0x3F, 0, _KEPT, 0, 0, len(named), len(data)) + GLOBAL.bytes_le
    whole = head + named + data
    return whole + b"\xff" * (-len(whole) % 4)


def signature_lists(authorities: Iterable[str]) -> bytes:
    """Return the authorities (PEM), a list of one each."""
    return b"".join(map(_signature_list, authorities))


def _signature_list(pem: str) -> bytes:
    der = ssl.PEM_cert_to_DER_cert(pem)
    size = 16 + len(der)
    return X509.bytes_le + struct.pack("<III", 28 + size, 0, size) + GLOBAL.bytes_le + der
