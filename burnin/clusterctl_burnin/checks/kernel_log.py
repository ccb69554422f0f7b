"""kernel_log: no Xid or SXid, no PCIe link trained down, no other message that keeps a node from training.

The log since boot is judged, so an old message leaves with the reboot that cures it. What is neither judged nor
known is told as new.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, at_least, exactly
from clusterctl.formats.host.kernel_log import (
    KernelLog,
    LineKind,
    Message,
    board_serials,
    limited_links,
    read_kernel_log,
    sxids,
    template,
    xids,
)
from clusterctl.formats.nvidia.nvidia_smi import GpuReading, parse_query
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.kernel_log.known_lines import KnownLines, KnownTest
from clusterctl_burnin.kernel_log.nvidia_codes import sxid_table
from clusterctl_burnin.kernel_log.patterns import PATTERNS, Pattern
from clusterctl_burnin.kernel_log.xids import gpu_errors
from clusterctl_burnin.probe import Probe, Readings, Status, UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI

DMESG = Probe("dmesg", ("dmesg", "-T", "-x"), timeout=20, max_bytes=16 * 1024 * 1024)
"""With facility and level; the kernel's buffer has at most some MiB."""
_NAME = "kernel_log"
_UNKNOWN = "look the message up with the vendor, then add it to the table of known messages"
_WORTH = frozenset({"warn", "err", "crit", "alert", "emerg", ""})
"""Levels of messages that should be known; what the kernel calls a notice is one. Empty: the level is not told."""
_QUOTED = 5
_NVIDIA = re.compile("NVRM:|SXid|available PCIe bandwidth, limited")


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    result = readings.text(DMESG)
    if len(result) >= DMESG.max_bytes or not result.endswith("\n"):
        raise UnmeasuredError("the kernel log could not be read to its end", remedy="reboot the node")
    log = read_kernel_log(result)
    messages = log.messages(_notable)
    found = [
        *_gpu_errors(messages, _gpus(readings), _told(messages, expected)),
        *_switch_errors(messages),
        *_links(messages),
    ]
    found += [finding for pattern in PATTERNS for finding in _matches(pattern, messages)]
    found += [*_strangers(log, expected.known_lines), *_lost_beginning(log)]
    yield from found
    if not found:
        yield passed(_NAME, "nothing in the kernel log speaks against the node")


def _notable(text: str) -> bool:
    return _NVIDIA.search(text) is not None or any(pattern.regex.search(text) for pattern in PATTERNS)


def _judged(text: str) -> bool:
    """It has a finding of its own, or says more of one that has."""
    message = (Message("", text),)
    told = (xids(message), board_serials(message), tuple(sxids(message)), tuple(limited_links(message)))
    return any(told) or any(pattern.regex.search(text) for pattern in PATTERNS)


def _strangers(log: KernelLog, known_lines: KnownLines) -> Iterator[Finding]:
    """One warning over all kinds of messages, at level warn or above, that no table judges or calls known."""
    known, kinds = known_lines.test(), Counter[str]()
    strangers = [kind for kind in log.kinds if _strange(kind, known)]
    for kind, times in log.counts(strangers).items():
        kinds[template(kind.message.text)] += times
    if kinds:
        most = "; ".join(f"{text[:300]} ({times} times)" for text, times in kinds.most_common(_QUOTED))
        more = f"; and {len(kinds) - _QUOTED} more" if len(kinds) > _QUOTED else ""
        cause = f"the kernel logged messages of {len(kinds)} unknown kinds: {most}{more}"
        remedy = (
            "look them up; write those that are harmless into kernel_log.yml of the site (docs/reference/kernel-log.md)"
        )
        yield Finding(
            check=_NAME,
            verdict=Verdict.WARN,
            code=Code.KERNEL_MESSAGES_UNKNOWN,
            cause=cause,
            measured=Quantity(len(kinds), "kinds"),
            expected=exactly(0, "kinds"),
            remedy=remedy,
        )


def _strange(kind: LineKind, known: KnownTest) -> bool:
    text = kind.message.text
    return kind.message.level in _WORTH and not known(text) and not _judged(text) and not _judged(kind.ones)


def _lost_beginning(log: KernelLog) -> Iterator[Finding]:
    """The kernel's buffer is a ring: what it has overwritten was not judged."""
    if not any(kind.message.text.startswith("Linux version ") for kind in log.kinds):
        cause = "the kernel's buffer has lost the earliest messages since the boot, so they were not judged"
        remedy = "boot with log_buf_len=16M; read the lost messages with journalctl -k -b on the node"
        yield Finding(check=_NAME, verdict=Verdict.WARN, code=Code.KERNEL_LOG_CUT, cause=cause, remedy=remedy)


def _gpus(readings: Readings) -> dict[str, GpuReading]:
    """The GPUs by PCI address, to name them; nothing where nvidia-smi does not tell (gpu_count says so)."""
    result = readings.probes.get(NVIDIA_SMI.name)
    if result is None or result.status is not Status.OK or result.rc != 0:
        return {}
    try:
        return {gpu.pci: gpu for gpu in parse_query(result.stdout).gpus}
    except ParseError:
        return {}


def _told(messages: Sequence[Message], expected: Expected) -> dict[str, str]:
    """PCI address → serial, of GPUs that nvidia-smi may have lost: as the BMC told, or the driver in the log."""
    inventory = (expected.inventory.gpus if expected.inventory else None) or ()
    return {gpu.pci: gpu.serial for gpu in inventory if gpu.pci and gpu.serial} | dict(board_serials(messages))


def _gpu_errors(messages: Sequence[Message], gpus: dict[str, GpuReading], serials: dict[str, str]) -> Iterator[Finding]:
    """One finding per GPU and code, its first message quoted."""
    for error in gpu_errors(xids(messages)):
        xid, gpu = error.first, gpus.get(error.first.pci)
        subject = gpu.subject if gpu else f"gpu {xid.pci}".rstrip()
        serial = (gpu.serial if gpu else None) or serials.get(xid.pci, "")
        times = f", {error.times} times" if error.times > 1 else ""
        cause = f"Xid {xid.code} at {xid.at}{times}: {error.meaning}"
        yield Finding(
            check=_NAME,
            verdict=error.verdict,
            code=error.code,
            subject=subject,
            cause=cause,
            measured=f"Xid {xid.code}",
            expected="no Xid",
            remedy=error.remedy,
            serial=serial,
        )


def _switch_errors(messages: Sequence[Message]) -> Iterator[Finding]:
    """NVSwitch errors; what the line says of its severity outranks the table."""
    seen: set[tuple[str, int]] = set()
    for sxid in sxids(messages):
        if (sxid.pci, sxid.code) in seen or sxid.text.startswith(("Severity", "Data")):
            continue
        seen.add((sxid.pci, sxid.code))
        row = sxid_table().get(sxid.code)
        if row is None and not sxid.text.startswith(("Fatal", "Non-fatal")):
            verdict, remedy = Verdict.INCONCLUSIVE, _UNKNOWN
        elif sxid.text.startswith("Fatal") or (row and row.fatal and not sxid.text.startswith("Non-fatal")):
            verdict, remedy = Verdict.FAIL, "reboot the node; if it comes back, replace the NVSwitch's tray"
        else:
            verdict, remedy = Verdict.WARN, "check this NVSwitch again after the next burn-in"
        cause = f"SXid {sxid.code} at {sxid.at}: {row.meaning if row else sxid.text[:120]}"
        subject = f"nvswitch {sxid.pci}"
        yield Finding(
            check=_NAME,
            verdict=verdict,
            code=Code.SXID,
            subject=subject,
            cause=cause,
            measured=f"SXid {sxid.code}",
            expected="no SXid",
            remedy=remedy,
        )


def _links(messages: Sequence[Message]) -> Iterator[Finding]:
    """Adapters behind a narrower PCIe link than they could use."""
    adapters = [m for m in messages if m.text.startswith("mlx5_core ")]
    for link in {limited.pci: limited for limited in limited_links(adapters)}.values():
        cause = f"a {link.link} link limits the adapter's PCIe bandwidth"
        remedy = "power off, reseat the adapter and its riser or cable; update the PCIe switch's firmware"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.PCIE_BANDWIDTH_LIMITED,
            subject=f"hca {link.pci}",
            cause=cause,
            measured=Quantity(link.have, "Gb/s"),
            expected=at_least(link.capable, "Gb/s"),
            remedy=remedy,
        )


def _matches(pattern: Pattern, messages: Sequence[Message]) -> Iterator[Finding]:
    """One finding per part that the pattern names."""
    hits: dict[str, Message] = {}
    for message in messages:
        if match := pattern.regex.search(message.text):
            part = match.groupdict().get("part")
            hits.setdefault(f"{pattern.subject} {part}" if part else pattern.subject, message)
    for subject, message in hits.items():
        cause = f"{pattern.cause} ({message.at}: {message.text.splitlines()[0][:160]})"
        yield Finding(
            check=_NAME,
            verdict=pattern.verdict,
            code=Code.KERNEL_MESSAGE,
            subject=subject,
            cause=cause,
            remedy=pattern.remedy,
        )


CHECK = Check(_NAME, (DMESG, NVIDIA_SMI), _judge, area=Area.SYSTEM)
