"""kernel_log: no Xid or SXid, no PCIe link trained down, no other message that keeps a node from training.

The log since boot is judged, so an old message leaves with the reboot that cures it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from clusterctl.burnin.check import Check, Expected
from clusterctl.burnin.gpus import NVIDIA_SMI
from clusterctl.burnin.kernel_patterns import PATTERNS, Pattern
from clusterctl.burnin.nvidia_errors import Action, recovery, sxid_table, xid_table
from clusterctl.burnin.probe import Probe, Readings, Status
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.formats.dmesg import Message, Xid, board_serials, limited_links, parse_dmesg, sxids, xids
from clusterctl.formats.nvidia_smi import GpuReading, parse_query

DMESG = Probe("dmesg", ("dmesg", "-T"), max_bytes=1024 * 1024)
_NAME = "kernel_log"
_UNKNOWN = "look the message up with the vendor, then add it to the table of known ones"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    messages = parse_dmesg(readings.text(DMESG))
    found = [
        *_gpu_errors(messages, _gpus(readings), _told(messages, expected)),
        *_switch_errors(messages),
        *_links(messages),
    ]
    found += [finding for pattern in PATTERNS for finding in _matches(pattern, messages)]
    yield from found
    if not found:
        yield Finding(_NAME, Verdict.PASS, cause="nothing in the kernel log speaks against the node")


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
    errors = xids(messages)
    counts = Counter((xid.pci, xid.code) for xid in errors)
    first = {(xid.pci, xid.code): xid for xid in reversed(errors)}
    for key, xid in first.items():
        gpu = gpus.get(xid.pci)
        subject = gpu.subject if gpu else f"gpu {xid.pci}".rstrip()
        serial = (gpu.serial if gpu else None) or serials.get(xid.pci, "")
        verdict, meaning, remedy = _meaning(xid)
        times = f", {counts[key]} times" if counts[key] > 1 else ""
        cause = f"Xid {xid.code} at {xid.at}{times}: {meaning}"
        yield Finding(_NAME, verdict, subject, cause, f"Xid {xid.code}", "no Xid", "", remedy, serial)


def _meaning(xid: Xid) -> tuple[Verdict, str, str]:
    row = xid_table().get(xid.code)
    if row is None:
        return Verdict.INCONCLUSIVE, f"a code that is not in the table ({xid.text[:120]})", _UNKNOWN
    if row.action is Action.VERDICT:
        verdict, remedy = recovery(xid.text) or (Verdict.INCONCLUSIVE, row.action.remedy)
        return verdict, xid.text[:160], remedy
    return row.action.verdict, row.meaning, row.action.remedy


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
            verdict, remedy = Verdict.WARN, "keep an eye on this NVSwitch"
        cause = f"SXid {sxid.code} at {sxid.at}: {row.meaning if row else sxid.text[:120]}"
        subject = f"nvswitch {sxid.pci}"
        yield Finding(_NAME, verdict, subject, cause, f"SXid {sxid.code}", "no SXid", "", remedy)


def _links(messages: Sequence[Message]) -> Iterator[Finding]:
    """Adapters behind a narrower PCIe link than they could use."""
    adapters = [m for m in messages if m.text.startswith("mlx5_core ")]
    for link in {limited.pci: limited for limited in limited_links(adapters)}.values():
        cause = f"the adapter's PCIe bandwidth is limited by a {link.link} link"
        remedy = "power off, reseat the adapter and its riser or cable; update the PCIe switch's firmware"
        subject, have, want = f"hca {link.pci}", f"{link.have:g}", f"{link.capable:g}"
        yield Finding(_NAME, Verdict.FAIL, subject, cause, have, want, "Gb/s", remedy)


def _matches(pattern: Pattern, messages: Sequence[Message]) -> Iterator[Finding]:
    """One finding per part that the pattern names."""
    hits: dict[str, Message] = {}
    for message in messages:
        if match := pattern.regex.search(message.text):
            part = match.groupdict().get("part")
            hits.setdefault(f"{pattern.subject} {part}" if part else pattern.subject, message)
    for subject, message in hits.items():
        cause = f"{pattern.cause} ({message.at}: {message.text.splitlines()[0][:160]})"
        yield Finding(_NAME, pattern.verdict, subject, cause, remedy=pattern.remedy)


CHECK = Check(_NAME, (DMESG, NVIDIA_SMI), _judge)
