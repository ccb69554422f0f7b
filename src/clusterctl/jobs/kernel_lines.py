"""What a line of a kernel log means for a job: the burn-in's tables and rules, with the layer that each blames."""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Iterable, Mapping

from clusterctl.fleet.blame import Blame, Certainty, Failure, Layer, Persistence, Role
from clusterctl.fleet.finding import Verdict
from clusterctl.formats.host.kernel_log import Message, Xid, sxids, xids
from clusterctl.jobs.meaning import MAX_LINE, Meaning
from clusterctl_burnin.kernel_log.nvidia_codes import switch_severity, switch_verdict, sxid_table
from clusterctl_burnin.kernel_log.rule_table import shipped_rules
from clusterctl_burnin.kernel_log.rules import Hit, Rule
from clusterctl_burnin.kernel_log.xids import EXCEPTION, PAGE_FAULT, GpuError, gpu_errors

_PREFIXES = (
    re.compile(r"^(?:<\d{1,3}>)?(?:[a-z0-9]{1,8} *:[a-z]{1,8} *: )?(?:\S{1,64}: )?\[ *[^\]]{1,40}\] ?"),
    re.compile(r"^(?:[a-z0-9]{1,8} *:[a-z]{1,8} *: )?\d{4}-\d\d-\d\dT[\d:.,+Z-]{5,40} (?:(?:\S{1,253} )?kernel: )?"),
    re.compile(r"^[A-Z][a-z]{2} {1,2}\d{1,2} [\d:]{8} \S{1,253} kernel: (?:\[ *[\d.]{1,20}\] )?"),
    re.compile(r"^kernel: (?:\[ *[\d.]{1,20}\] )?"),
)
"""What dmesg, journalctl and syslog print before a message."""
_CODES = "NVIDIA's Xid catalogue, docs.nvidia.com/deploy/xid-errors"
_SWITCHES = "NVIDIA Fabric Manager User Guide, appendix D"
_RULES = "docs/reference/kernel-log.md"
_RECOVERY, _NVLINK5 = 154, range(144, 151)
XID = "xid_"
_OF_PROCESSES = frozenset({f"{XID}{EXCEPTION}", f"{XID}{PAGE_FAULT}"})
_PROCESS = re.compile(r"\bpid='?(\d{1,10})")

_CORRECTED = re.compile(r"PCIe Bus Error: severity=Correct|AER: (?:Multiple )?Correct(?:ed|able) error")
_CORRECTED_PCIE = Meaning(
    rule="kernel_pcie_corrected",
    blame=Blame(Layer.HARDWARE, Certainty.UNKNOWN, Role.CONTEXT),
    failure=Failure.SLOW,
    meaning="PCIe corrected an error: one is harmless, many a minute slow the device down",
    remedy="where it comes back ten times a minute, reseat the device and its cable or riser",
    source="linux: drivers/pci/pcie/aer.c",
)

_HUNG_TASK = re.compile(r"^INFO: task (?P<task>.{1,64}):\d{1,10} blocked for more than \d{1,6} seconds")
_STORAGE_FRAME = re.compile(
    r"\b(?P<frame>(?:nfs\d?|rpc_wait|ptlrpc|cl_sync_io|ll_file|fuse|ceph)_\w{1,80})(?:\+0x|\))"
    r"|\b(?P<symbol>\w{1,80})\+0x[0-9a-f/x]{1,40} "
    r"\[(?:nfs|nfsv[34]|sunrpc|lustre|ptlrpc|zfs|fuse|ceph|beegfs|mmfs26|wekafsio)\]"
)
"""A frame of a stack in the client of a file system. Source: kernel/hung_task.c prints the stack below the message."""
HUNG_TASK, STORAGE_FRAME = "kernel_hung_task", "kernel_storage_frame"
_LINK_DOWN = re.compile(
    r"^mlx5_core [0-9a-f:.]{7,16} (?P<device>[\w.-]{1,32}): (?:Port: \d{1,3} )?Link (?:DOWN|down)\b"
)


def message_of(line: str) -> str:
    """Return the kernel's own text of a line: without time, facility, host and `kernel:`."""
    line = line[:MAX_LINE].strip()
    for prefix in _PREFIXES:
        if match := prefix.match(line):
            return line[match.end() :]
    return line


def from_kernel(line: str) -> bool:
    """Return True where the line has the form of a kernel log, not of a program's log."""
    return any(prefix.match(line) for prefix in _PREFIXES[1:]) or "NVRM: " in line or "SXid (PCI" in line


def kernel_meaning(line: str) -> Meaning | None:
    """Return what a line of a kernel log means by itself; None where no rule knows it."""
    text = message_of(line)
    message = (Message("", text),)
    if found := xids(message):
        return xid_meanings(found)[0]
    for sxid in sxids(message):
        return _switch_meaning(sxid)
    if (hung := _hung_meaning(text)) is not None:
        return hung
    hit = shipped_rules().match(text)
    if hit is not None:
        return _rule_meaning(hit)
    if (down := _LINK_DOWN.match(text)) is not None:
        return _link_meaning(down["device"])
    return _CORRECTED_PCIE if _CORRECTED.search(text) else None


def _hung_meaning(text: str) -> Meaning | None:
    """Return the meaning of a hung task's message, or of a frame of its stack: both are context of each other."""
    if match := _HUNG_TASK.match(text):
        rule, part, what = HUNG_TASK, match["task"], f"process {match['task']} has waited in the kernel for minutes"
    elif match := _STORAGE_FRAME.search(text):
        part = match["frame"] or match["symbol"]
        rule, what = STORAGE_FRAME, f"a process was in {part}, in the client of a file system"
    else:
        return None
    return Meaning(
        rule=rule,
        blame=Blame(Layer.STORAGE if rule == STORAGE_FRAME else Layer.UNKNOWN, Certainty.UNKNOWN, Role.CONTEXT),
        failure=Failure.HANG,
        meaning=what,
        remedy="read the stack below the message: it names what the process waits for",
        source="linux: kernel/hung_task.c; aws/aws-parallelcluster#1150; openzfs/zfs#3997",
        parts={"program": part},
    )


def _link_meaning(device: str) -> Meaning:
    """Return the meaning of a port of an adapter that lost its link."""
    return Meaning(
        rule="kernel_link_down",
        blame=Blame(Layer.FABRIC, Certainty.LIKELY, Role.CAUSE),
        failure=Failure.HANG,
        meaning=f"{device} of this host lost its link",
        remedy="test the cable and the transceiver of the port; watch link_downed on both ends",
        source="MLNX_OFED's mlx5_core: leptonai/gpud#1209; linux: drivers/net/ethernet/mellanox/mlx5/core/en_main.c",
        parts={"device": device},
    )


def process_of(rule: str, line: str) -> str:
    """Return the process of an error that several processes must have before a GPU is blamed; empty for others."""
    found = _PROCESS.search(line) if rule in _OF_PROCESSES else None
    return found[1] if found is not None else ""


def xid_meanings(found: Iterable[Xid]) -> tuple[Meaning, ...]:
    """Return what the Xids of one host mean together: one meaning for each GPU and code.

    Xid 154 outranks the table; 13 and 31 blame the GPU where several processes have them in one place.
    """
    return tuple(_gpu_meaning(error) for error in gpu_errors(tuple(found)))


def _gpu_meaning(error: GpuError) -> Meaning:
    code = error.first.code
    return Meaning(
        rule=f"{XID}{code}",
        blame=_gpu_blame(error, _xid_blames().get(code)),
        failure=Failure.CRASH,
        meaning=f"Xid {code}: {error.meaning}",
        remedy=error.remedy,
        source=_CODES,
        parts={"gpu": error.first.pci} if error.first.pci else {},
    )


def _gpu_blame(error: GpuError, row: Blame | None) -> Blame:
    """Return the table's blame, unless the burn-in's rules found more in the messages together."""
    if row is None:
        return Blame(Layer.UNKNOWN, Certainty.UNKNOWN, Role.CAUSE)
    if error.first.code in (_RECOVERY, *_NVLINK5) and error.verdict is Verdict.WARN:
        return Blame(row.layer, Certainty.UNKNOWN, Role.CONTEXT, row.persistence)
    if row.layer is Layer.APPLICATION and error.verdict is Verdict.FAIL:
        return Blame(Layer.HARDWARE, Certainty.LIKELY, Role.CAUSE, Persistence.PERSISTENT)
    return row


def _switch_meaning(sxid: Xid) -> Meaning:
    row = sxid_table().get(sxid.code)
    verdict, remedy = switch_verdict(switch_severity(sxid.text), None if row is None else row.fatal)
    fails = verdict is not Verdict.WARN
    what = row.meaning if row else "an error that the table does not have"
    return Meaning(
        rule=f"sxid_{sxid.code}",
        blame=Blame(
            Layer.FABRIC, Certainty.LIKELY if fails else Certainty.UNKNOWN, Role.CAUSE if fails else Role.CONTEXT
        ),
        failure=Failure.CRASH,
        meaning=f"SXid {sxid.code}: an NVSwitch reports {what}",
        remedy=remedy,
        source=_SWITCHES,
        parts={"nvswitch": sxid.pci} if sxid.pci else {},
    )


def _rule_meaning(hit: Hit) -> Meaning:
    rule = hit.rule
    return Meaning(
        rule=f"kernel_{rule.kind}",
        blame=rule.blamed,
        failure=Failure.HANG if rule.blamed.layer in (Layer.STORAGE, Layer.SYSTEM_SOFTWARE) else Failure.CRASH,
        meaning=rule.cause,
        remedy=rule.remedy or "nothing: the message has no weight",
        source=_RULES,
        parts={_part_name(rule): hit.part} if hit.part else {},
    )


def _part_name(rule: Rule) -> str:
    return "part" if rule.kind == "node" else rule.kind


@functools.cache
def _xid_blames() -> Mapping[int, Blame]:
    text = importlib.resources.files("clusterctl.jobs").joinpath("data/xid_blame.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return {
        int(code): Blame(Layer(layer), Certainty(certainty), Role(role), Persistence(persistence))
        for code, layer, certainty, role, persistence in rows
    }
