"""dmesg: the messages that this machine's kernel would have logged since its boot; `-T` prints times of day, `-x`
facility and level.

The messages of a virtual machine's own kernel come first; those of its missing hardware follow.

Lines as the kernel's PCI core and mlx5 driver (Linux 5.15) print them, a port's changes as NVIDIA's MLNX_OFED does
(leptonai/gpud#1209); those of NVIDIA's GPU driver are in `xid_messages.py`.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence

from clusterctl_lab.emulators.host_tools.host import adapter_flash, xid_messages
from clusterctl_lab.emulators.host_tools.host.boot import uptime
from clusterctl_lab.emulators.host_tools.host.bridges import bridge_of
from clusterctl_lab.emulators.host_tools.host.facts import Facts, Hca, driver_version, load
from clusterctl_lab.emulators.host_tools.host.loaded import FACTS

REAL = "/usr/bin/dmesg"
FULL_GBPS = 504.112
LANES = 16
BRING_UP = 1
"""A link may go down once while it is brought up (variation.py): the first time is that of the boot."""


def main(argv: Sequence[str]) -> int:
    options = set(argv)
    if unknown := options - {"-T", "--ctime", "-x", "--decode", "-k", "--kernel", "--nopager", "-P"}:
        sys.stderr.write(f"dmesg: the lab's stand-in does not know {' '.join(sorted(unknown))}\n")
        return 1
    facts = load()
    if facts.own_kernel and (status := os.spawnv(os.P_WAIT, REAL, [REAL, *argv])):  # noqa: S606 — no shell
        return status
    age = uptime()
    booted = time.time() - age
    of_day, decoded = bool(options & {"-T", "--ctime"}), bool(options & {"-x", "--decode"})
    for at, text in _timed(facts, age, booted):
        stamp = time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(booted + at)) if of_day else f"{at:12.6f}"
        sys.stdout.write(f"{_decoded(text) if decoded else ''}[{stamp}] {text}\n")
    return 0


def _timed(facts: Facts, age: float, booted: float) -> list[tuple[float, str]]:
    """Return each message with its seconds since the boot, the oldest first; `age`: those of now.

    GPUs and links fail while the machine runs: when its description was changed last.
    """
    messages, failures = [*_kernel(facts), *_hardware(facts)], list(_failures(facts))
    step = min(1.0, age / max(1, len(messages) + len(failures)))  # nothing was logged after now
    timed = [(number * step, text) for number, text in enumerate(messages)]
    failed = max(len(messages) * step, min(os.stat(FACTS).st_mtime - booted, age - len(failures) * step))  # noqa: PTH116
    return sorted([*timed, *((failed + at * step, text) for at, text in enumerate(failures))], key=lambda one: one[0])


def _decoded(text: str) -> str:
    """Facility and level, each in six columns as util-linux 2.38 prints them."""
    facility = "daemon" if text.startswith("systemd") else "kern"
    return f"{facility:6}:{_level(text):6}: "


def _level(text: str) -> str:
    """What drivers pass to printk: mlx5_core_err, NVIDIA's nv_printf, which has the default level, and pr_info."""
    if "mlx5_cmd_out_err" in text:
        return "err"
    return "warn" if text.startswith("NVRM: ") and "loading" not in text else "info"


def _kernel(facts: Facts) -> Iterator[str]:
    """Return the first lines of a log; hosts in namespaces see none of them in the controller's kernel."""
    if not facts.own_kernel:
        yield f"Linux version {platform.release()} (lab)"
        yield f"DMI: {facts.manufacturer} {facts.model}, BIOS"


def _hardware(facts: Facts) -> Iterator[str]:
    for hca in facts.hcas:
        yield from _adapter(hca)
    yield from facts.kernel_log
    if driver_version():
        yield f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {driver_version()}"
    for hca in facts.hcas:
        yield from _downs(hca, min(hca.downs, BRING_UP))


def _failures(facts: Facts) -> Iterator[str]:
    """Return what the drivers have logged of links that went down and up again, and of GPUs."""
    for hca in facts.hcas:
        yield from _downs(hca, max(0, hca.downs - BRING_UP))
    if driver_version():
        for gpu in facts.gpus:
            yield from xid_messages.messages(gpu)


def _downs(hca: Hca, times: int) -> Iterator[str]:
    for _ in range(times):
        yield f"mlx5_core {hca.pci} {hca.name}: Port: 1 Link DOWN"
        yield f"mlx5_core {hca.pci} {hca.name}: Port: 1 Link ACTIVE"


def _adapter(hca: Hca) -> Iterator[str]:
    full = f"{FULL_GBPS} Gb/s"
    yield f"mlx5_core {hca.pci}: firmware version: {adapter_flash.running(hca)}"
    width = min(hca.pcie_width, hca.switch_width)
    if width == LANES:
        yield f"mlx5_core {hca.pci}: {full} available PCIe bandwidth (32.0 GT/s PCIe x{LANES} link)"
    else:
        have = f"{FULL_GBPS * width / LANES:.3f} Gb/s"
        yield (
            f"mlx5_core {hca.pci}: {have} available PCIe bandwidth, limited by 32.0 GT/s PCIe x{width} link "
            f"at {bridge_of(hca)} (capable of {full} with 32.0 GT/s PCIe x{LANES} link)"
        )
    event = "plugged" if hca.plugged else "unplugged"
    yield f"mlx5_core {hca.pci}: Port module event: module 0, Cable {event}"
