"""kernel_log: no Xid or SXid, no PCIe link trained down, no other message that keeps a node from training.

The log since boot is judged, so an old message leaves with the reboot that cures it. A message that no rule knows is
reported: where it is severe the check is INCONCLUSIVE, else it warns.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, at_least, exactly
from clusterctl.formats.host.hardware_errors import HARDWARE_ERROR
from clusterctl.formats.host.kernel_log import (
    AddedLines,
    KernelLog,
    LineKind,
    Message,
    added_lines,
    board_serials,
    limited_links,
    read_kernel_log,
    sxids,
    template,
    xids,
)
from clusterctl.formats.host.load_samples import LoadSamples
from clusterctl.formats.nvidia.nvidia_smi import GpuReading, parse_query
from clusterctl_burnin.check import Area, Check, Expected, Watch
from clusterctl_burnin.fleet_stats import Sample
from clusterctl_burnin.kernel_log.combined import (
    MEDIA,
    Judgement,
    corrected_pcie,
    explained_kills,
    firmware_errors,
    foreign_drives,
    processor_errors,
)
from clusterctl_burnin.kernel_log.known_lines import SEVERE, KnownLines, KnownTest
from clusterctl_burnin.kernel_log.nvidia_codes import switch_severity, switch_verdict, sxid_table
from clusterctl_burnin.kernel_log.rule_table import shipped_rules
from clusterctl_burnin.kernel_log.rules import Hit
from clusterctl_burnin.kernel_log.slot_power import ADAPTER, ADAPTER_LINE, LOW_POWER, SLOT_POWER, adapters, slot_power
from clusterctl_burnin.kernel_log.xids import gpu_errors
from clusterctl_burnin.probe import Probe, Readings, Status, UnmeasuredError
from clusterctl_burnin.probes.load_samples import LOAD_SAMPLES, samples_of
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI

DMESG = Probe("dmesg", ("dmesg", "-T", "-x"), timeout=20, max_bytes=16 * 1024 * 1024)
"""With facility and level; the kernel's buffer has at most some MiB."""
_NAME = "kernel_log"
_UNKNOWN = "look the message up with the vendor, then add it to the table of known messages"
_WORTH = (*SEVERE, "err", "warn", "")
"""Levels of messages that should be known, the worst first. Empty: the log has no levels."""
_QUOTED = 5
_NVIDIA = re.compile("NVRM:|SXid|available PCIe bandwidth, limited")
_FIRMWARE = re.compile(r"^(?:\{\d+\})?\[Hardware Error\]: |^BERT: ")
_PCI_DEVICE = re.compile(r"\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b")
_JUDGED_LENGTH = 2048
"""Characters of a message that the rules read: the kernel prints at most half of that in one message."""


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    result = readings.text(DMESG)
    if len(result) >= DMESG.max_bytes or not result.endswith("\n"):
        raise UnmeasuredError("the kernel log could not be read to its end", remedy="reboot the node")
    log = read_kernel_log(result)
    messages, gpus = log.messages(_notable), _gpus(readings)
    found = [
        *_gpu_errors(messages, gpus, _serials(messages, expected)),
        *_switch_errors(messages),
        *_links(messages),
        *(_finding(judgement) for judgement in (*_combined(messages), *corrected_pcie(result))),
        *_slot_power(log, messages),
        *_matches(log, messages, gpus),
        *_unknown_messages(log, expected.known_lines),
        *_lost_beginning(log),
    ]
    yield from found
    if not found:
        yield passed(_NAME, "no message in the kernel log keeps the node from training")


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge the messages that were added, together with the older ones that name parts. Raises `UnmeasuredError`."""
    added = _added(before, after, samples_of(after))
    if added.lines:
        old = before.text(DMESG).splitlines()
        context = (one for one in old if ADAPTER_LINE.search(one) or LOW_POWER in one or MEDIA.search(one))
        log = replace(after.result(DMESG), stdout="".join(f"{line}\n" for line in (*context, *added.lines)))
        readings = replace(after, probes={**after.probes, DMESG.name: log})
        yield from (found for found in _judge(readings, expected) if found.code is not Code.KERNEL_LOG_CUT)
    if added.overrun:
        raise UnmeasuredError(
            "the kernel logged more than its buffer holds, and messages are lost",
            remedy="boot with log_buf_len=16M; read the lost messages with journalctl -k -b on the node",
            code=Code.KERNEL_LOG_CUT,
        )


def _added(before: Readings, after: Readings, samples: LoadSamples | None) -> AddedLines:
    """Return the messages that were added, those that were followed with the second of the load.

    What the ring lost is taken from the followed log; nothing is lost where that was whole and began before `before`.
    """
    added = added_lines(before.text(DMESG), after.text(DMESG))
    if samples is None:
        return added
    followed: dict[str, deque[str]] = {}
    read = min(0.0, before.result(DMESG).started.timestamp() - samples.began)
    for second, facility, level, text in samples.kernel.lines:
        if second < read:
            continue  # in the reading before the load
        at = datetime.fromtimestamp(samples.began + second, UTC)
        stamp = f"{facility:6}:{level:6}: [{at:%a %b %e %H:%M:%S %Y}"
        followed.setdefault(text, deque()).append(f"{stamp}, second {max(0.0, second):.0f} of the load] {text}")
    lines = []
    for line in added.lines:
        same = followed.get(line.partition("] ")[2])
        lines.append(same.popleft() if same else line)
    if not added.overrun:
        return AddedLines(tuple(lines), overrun=False)
    whole = samples.kernel.whole and read >= -samples.kernel.earlier
    return AddedLines((*(line for rest in followed.values() for line in rest), *lines), overrun=not whole)


@functools.lru_cache(maxsize=8192)
def _hit(text: str) -> Hit | None:
    """Return the rule for a message; None where no rule fits, or where the message is judged as an Xid or a link."""
    return None if _of_nvidia(text) else shipped_rules().match(text[:_JUDGED_LENGTH])


def _of_nvidia(text: str) -> bool:
    """Return True for an Xid, an SXid, a limited link, and for what the driver adds to one."""
    if _NVIDIA.search(text) is None:
        return False
    message = (Message("", text),)
    return any((xids(message), board_serials(message), tuple(sxids(message)), tuple(limited_links(message))))


def _notable(text: str) -> bool:
    """Return True where each message of the kind must be looked at."""
    hit = _hit(text)
    return (
        (hit is not None and hit.rule.verdict is not Verdict.PASS)
        or _NVIDIA.search(text) is not None
        or HARDWARE_ERROR in text
        or text.startswith("BERT: ")
        or "Machine Check" in text
        or LOW_POWER in text
    )


def _judged(text: str) -> bool:
    """Return True where the message has a finding of its own, or adds to one that has."""
    return (
        _hit(text) is not None
        or _of_nvidia(text)
        or _FIRMWARE.match(text) is not None
        or LOW_POWER in text
        or any(processor_errors((Message("", text),)))
    )


def _combined(messages: Sequence[Message]) -> Iterator[Judgement]:
    """Yield what several messages mean together."""
    yield from firmware_errors(messages)
    yield from processor_errors(messages)


def _slot_power(log: KernelLog, messages: Sequence[Message]) -> Iterator[Finding]:
    if any(LOW_POWER in message.text for message in messages):
        yield from slot_power(_NAME, messages, log.messages(lambda text: ADAPTER.match(text) is not None))


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    for pci, low in adapters(readings.text(DMESG)).items():
        yield Sample(node, SLOT_POWER, float(low), population, f"hca {pci}")


def _finding(judgement: Judgement) -> Finding:
    return Finding(
        check=_NAME,
        verdict=judgement.verdict,
        code=Code.KERNEL_MESSAGE,
        subject=judgement.subject,
        cause=judgement.cause,
        remedy=judgement.remedy,
    )


def _matches(log: KernelLog, messages: Sequence[Message], gpus: Mapping[str, GpuReading]) -> Iterator[Finding]:
    """Yield one finding per rule and part: its first message, and how many there are."""
    groups = _grouped(messages)
    foreign = _foreign(log) if any(hits[0][1].rule.kind == "drive" for hits in groups.values()) else frozenset()
    for (subject, cause), hits in groups.items():
        (message, hit), times = hits[0], len(hits)
        if hit.rule.kind == "drive" and hit.part in foreign:
            continue
        more = f"; {times} messages" if times > 1 else ""
        text = f"{cause} ({message.at}: {message.text.splitlines()[0][:160]}{more})"
        gpu = gpus.get(hit.part) if hit.rule.kind == "gpu" else None
        found = _finding(Judgement(gpu.subject if gpu else subject, hit.rule.verdict, text, hit.rule.remedy))
        yield replace(found, serial=(gpu.serial or "") if gpu else "")


def _foreign(log: KernelLog) -> frozenset[str]:
    return foreign_drives(log.messages(lambda text: MEDIA.search(text) is not None))


def _grouped(messages: Sequence[Message]) -> dict[tuple[str, str], list[tuple[Message, Hit]]]:
    """Return the messages that have a rule of weight, by subject and cause."""
    groups: dict[tuple[str, str], list[tuple[Message, Hit]]] = {}
    explained = explained_kills(messages)
    for message in messages:
        hit = _hit(message.text)
        if hit is not None and hit.rule.verdict is not Verdict.PASS and message.text not in explained:
            groups.setdefault((hit.subject, hit.rule.cause), []).append((message, hit))
    return groups


def _unknown_messages(log: KernelLog, known_lines: KnownLines) -> Iterator[Finding]:
    """Yield findings over all messages, at level warn or above, that no rule judges or calls known.

    A message of a severe level, or one that reports an error of the hardware, must be looked at before the node trains.
    """
    known = known_lines.test()
    unknown = [kind for kind in log.kinds if _unknown(kind, known)]
    counts = log.counts(unknown)
    severe = [kind for kind in unknown if _severe(kind.message)]
    for kinds, verdict in (
        (severe, Verdict.INCONCLUSIVE),
        ([kind for kind in unknown if kind not in severe], Verdict.WARN),
    ):
        if kinds:
            yield _unknown_finding(((kind, counts[kind]) for kind in kinds), verdict)


def _severe(message: Message) -> bool:
    text, rules = message.text[:_JUDGED_LENGTH], shipped_rules()
    unknown_error = message.level == "err" and rules.concerns_training(text)
    return message.level in SEVERE or unknown_error or rules.suspects(text)


def _unknown_finding(kinds: Iterable[tuple[LineKind, int]], verdict: Verdict) -> Finding:
    """Return one finding that quotes the most severe messages, and a PCI device that each names."""
    times, levels, parts = Counter[str](), dict[str, int](), dict[str, str]()
    for kind, count in kinds:
        text = template(kind.message.text)
        times[text] += count
        if verdict is Verdict.INCONCLUSIVE and (device := _PCI_DEVICE.search(kind.message.text)):
            parts.setdefault(text, f", at {device[0]}")
        levels[text] = min(levels.get(text, len(_WORTH)), _WORTH.index(kind.message.level))
    quoted = sorted(times, key=lambda text: (levels[text], -times[text]))
    counted = {text: f"({number} times{parts.get(text, '')})" for text, number in times.items()}
    most = "; ".join(f"{_WORTH[levels[text]]} {text[:300]} {counted[text]}".lstrip() for text in quoted[:_QUOTED])
    more = f"; and {len(times) - _QUOTED} more" if len(times) > _QUOTED else ""
    severe = "severe " if verdict is Verdict.INCONCLUSIVE else ""
    return Finding(
        check=_NAME,
        verdict=verdict,
        code=Code.KERNEL_MESSAGES_UNKNOWN,
        cause=f"the kernel logged {severe}messages of {len(times)} unknown kinds: {most}{more}",
        measured=Quantity(len(times), "kinds"),
        expected=exactly(0, "kinds"),
        remedy=(
            "look them up; write those that are harmless into kernel_log.yml of the site (docs/reference/kernel-log.md)"
        ),
    )


def _unknown(kind: LineKind, known: KnownTest) -> bool:
    message = kind.message
    return message.level in _WORTH and not known(message) and not _judged(message.text) and not _judged(kind.ones)


def _lost_beginning(log: KernelLog) -> Iterator[Finding]:
    """Yield a warning where the kernel's buffer has lost its beginning: it is a ring."""
    if not any(kind.message.text.startswith("Linux version ") for kind in log.kinds):
        cause = "the kernel's buffer has lost the earliest messages since the boot, so they were not judged"
        remedy = "boot with log_buf_len=16M; read the lost messages with journalctl -k -b on the node"
        yield Finding(check=_NAME, verdict=Verdict.WARN, code=Code.KERNEL_LOG_CUT, cause=cause, remedy=remedy)


def _gpus(readings: Readings) -> dict[str, GpuReading]:
    """Return the GPUs by PCI address; none where nvidia-smi reports none (gpu_count judges that)."""
    result = readings.probes.get(NVIDIA_SMI.name)
    if result is None or result.status is not Status.OK or result.rc != 0:
        return {}
    try:
        return {gpu.pci: gpu for gpu in parse_query(result.stdout).gpus}
    except ParseError:
        return {}


def _serials(messages: Sequence[Message], expected: Expected) -> dict[str, str]:
    """Return the serials of GPUs by PCI address, for GPUs that nvidia-smi lost: from the BMC, or from the log."""
    inventory = (expected.inventory.gpus if expected.inventory else None) or ()
    return {gpu.pci: gpu.serial for gpu in inventory if gpu.pci and gpu.serial} | dict(board_serials(messages))


def _gpu_errors(messages: Sequence[Message], gpus: dict[str, GpuReading], serials: dict[str, str]) -> Iterator[Finding]:
    """Yield one finding per GPU and code, with the time of its first message."""
    for error in gpu_errors(xids(messages)):
        xid, gpu = error.first, gpus.get(error.first.pci)
        subject = gpu.subject if gpu else f"gpu {xid.pci}".rstrip()
        serial = (gpu.serial if gpu else None) or serials.get(xid.pci, "")
        times = f", {error.times} times" if error.times > 1 else ""
        instance = f" in {xid.mig}" if xid.mig else ""
        cause = f"Xid {xid.code} at {xid.at}{instance}{times}: {error.meaning}"
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
    """Yield NVSwitch errors; the severity in the line outranks the table."""
    seen: set[tuple[str, int, str]] = set()
    for sxid in sxids(messages):
        severity = switch_severity(sxid.text)
        if (sxid.pci, sxid.code, severity) in seen or sxid.text.startswith(("Severity", "Data")):
            continue
        seen.add((sxid.pci, sxid.code, severity))
        row = sxid_table().get(sxid.code)
        verdict, remedy = switch_verdict(severity, None if row is None else row.fatal)
        name = f"SXid {sxid.code}" if sxid.code else "SXid without a code"
        yield Finding(
            check=_NAME,
            verdict=verdict,
            code=Code.SXID,
            subject=f"nvswitch {sxid.pci}".rstrip(),
            cause=f"{name} at {sxid.at}: {row.meaning if row else sxid.text[:120]}",
            measured=name,
            expected="no SXid",
            remedy=remedy,
        )


def _links(messages: Sequence[Message]) -> Iterator[Finding]:
    """Yield adapters behind a narrower PCIe link than they support."""
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


CHECK = Check(
    _NAME,
    (DMESG, NVIDIA_SMI),
    _judge,
    area=Area.SYSTEM,
    metrics=(SLOT_POWER,),
    samples=_samples,
    after_loads=True,
    watch=Watch((DMESG, NVIDIA_SMI, LOAD_SAMPLES), _judge_load),
)
