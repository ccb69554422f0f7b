"""dmesg: the messages that this machine's kernel would have logged since its boot; `-T` prints times of day.

Lines as the kernel's PCI core and mlx5 driver (Linux 5.15) and NVIDIA's driver print them; Xid lines as in a recording
of an XE9680 (leptonai/gpud, Apache-2.0) and NVIDIA's Xid catalogue.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from clusterctl.lab.faces.tools.host.facts import DRIVER_VERSION, Facts, load


def main(argv: Sequence[str]) -> int:
    options = set(argv)
    if unknown := options - {"-T", "--ctime", "-k", "--kernel", "--nopager", "-P"}:
        sys.stderr.write(f"dmesg: the lab's stand-in does not know {' '.join(sorted(unknown))}\n")
        return 1
    booted = Path("/proc/1").stat().st_ctime
    of_day = bool(options & {"-T", "--ctime"})
    for seconds, text in enumerate(_messages(load())):
        stamp = (
            time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(booted + seconds)) if of_day else f"{seconds:5}.000000"
        )
        sys.stdout.write(f"[{stamp}] {text}\n")
    return 0


def _messages(facts: Facts) -> Iterator[str]:
    yield f"Linux version {platform.release()} (lab)"
    yield f"DMI: {facts.manufacturer} {facts.model}, BIOS"
    for hca in facts.hcas:
        yield f"mlx5_core {hca.pci}: firmware version: {hca.firmware}"
        yield f"mlx5_core {hca.pci}: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)"
        event = "plugged" if hca.plugged else "unplugged"
        yield f"mlx5_core {hca.pci}: Port module event: module 0, Cable {event}"
    if DRIVER_VERSION.exists():
        yield f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {DRIVER_VERSION.read_text().strip()}"
        for gpu in facts.gpus:
            if gpu.uncorrectable_ecc:
                error = "pid=<unknown>, name=<unknown>, An uncorrectable double bit error (DBE) has been detected"
                yield f"NVRM: Xid (PCI:{gpu.pci[4:14].lower()}): 48, {error}"
