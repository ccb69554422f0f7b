"""What the Xids of one boot mean together: the table's action for each, and where other messages change it.

Xid 154 names the action that brings the GPU back. It outranks the table where that asks for a reset or a reboot, and
for the errors of NVLink 5 (144 to 150). An exception (13) that comes from the same cluster of the same GPU for several
processes, and a page fault (31) that several processes have on one GPU and no other has, are faults of the GPU. 48 with
63 or 64 is one event: a row of memory that failed, and was replaced or not. From NVIDIA's Xid catalogue
(docs.nvidia.com/deploy/xid-errors).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.kernel_log import Xid
from clusterctl_burnin.kernel_log.nvidia_codes import Action, recovery, xid_table
from clusterctl_burnin.kernel_log.nvlink5 import NVLINK5, link_error

RECOVERY = 154
DOUBLE_BIT, ROW_REPLACED, ROW_NOT_REPLACED = 48, 63, 64
EXCEPTION, PAGE_FAULT = 13, 31
OFF_THE_BUS = 79
MEMORY = frozenset({DOUBLE_BIT, ROW_REPLACED, ROW_NOT_REPLACED, 94, 95})
"""Errors of a GPU's memory."""
_UNKNOWN = "look the message up with the vendor, then add it to the table of known messages"
_DIAGNOSE = "drain the node and run dcgmi diag -r 3 on it; replace the GPU if it fails there"
_PID = re.compile(r"\bpid='?(\d+)")
_CLUSTER = re.compile(r"\(?GPC (\d+), TPC (\d+)")


@dataclass(frozen=True, slots=True)
class GpuError:
    """All Xids of one code on one GPU: the first of them, their number, and what they mean."""

    first: Xid
    times: int
    verdict: Verdict
    meaning: str
    remedy: str
    action: Action | None
    includes: frozenset[int] = frozenset()
    """Codes of other Xids of the GPU with a message that this one includes."""

    @property
    def code(self) -> Code:
        if self.first.code == OFF_THE_BUS:
            return Code.XID_OFF_THE_BUS
        return Code.XID_MEMORY if self.first.code in MEMORY else Code.XID


def gpu_errors(xids: Sequence[Xid]) -> tuple[GpuError, ...]:
    """Return one entry per GPU and code, in the order in which they first appeared."""
    groups: dict[tuple[str, int], list[Xid]] = defaultdict(list)
    for xid in xids:
        groups[xid.pci, xid.code].append(xid)
    errors = {key: _repeated(_one(group), group, groups) for key, group in groups.items()}
    actions = {pci: xid for (pci, code), group in groups.items() if code == RECOVERY for xid in group[-1:]}
    judged = [_with_action(_with_rows(error, errors), actions) for error in errors.values()]
    return tuple(error for error in judged if not _included(error, judged))


def _one(group: Sequence[Xid]) -> GpuError:
    first = group[0]
    row = xid_table().get(first.code)
    if row is None:
        meaning = f"a code that is not in the table ({first.text[:120]})"
        return GpuError(first, len(group), Verdict.INCONCLUSIVE, meaning, _UNKNOWN, None)
    if row.action is Action.VERDICT:
        last = group[-1]
        verdict, remedy = recovery(last.text) or (Verdict.INCONCLUSIVE, row.action.remedy)
        return GpuError(first, len(group), verdict, last.text[:160], remedy, row.action)
    if first.code in NVLINK5 and (links := [error for xid in group if (error := link_error(xid.code, xid.text))]):
        worst = max(links, key=lambda error: error.verdict.rank)
        return GpuError(first, len(group), worst.verdict, worst.meaning, worst.remedy, row.action)
    return GpuError(first, len(group), row.action.verdict, row.meaning, row.action.remedy, row.action)


def _repeated(error: GpuError, group: Sequence[Xid], groups: Mapping[tuple[str, int], Sequence[Xid]]) -> GpuError:
    """Return the error as the GPU's fault where several programs have it in the same place of the hardware."""
    if error.first.code == EXCEPTION and (cluster := _shared_cluster(group)):
        meaning = (
            f"{error.meaning}, of several processes on the same cluster ({cluster}): the GPU is faulty, not a program"
        )
    elif error.first.code == PAGE_FAULT and _processes(group) > 1 and _alone(error.first, groups):
        meaning = f"{error.meaning}, of several processes on this GPU alone: the GPU is faulty, not a program"
    else:
        return error
    return replace(error, verdict=Verdict.FAIL, meaning=meaning, remedy=_DIAGNOSE)


def _shared_cluster(group: Iterable[Xid]) -> str:
    seen: dict[str, set[str]] = defaultdict(set)
    for xid in group:
        if (place := _CLUSTER.search(xid.text)) and (pid := _PID.search(xid.text)):
            seen[f"GPC {place[1]}, TPC {place[2]}"].add(pid[1])
    return next((place for place, pids in seen.items() if len(pids) > 1), "")


def _processes(group: Iterable[Xid]) -> int:
    return len({pid[1] for xid in group if (pid := _PID.search(xid.text))})


def _alone(xid: Xid, groups: Mapping[tuple[str, int], Sequence[Xid]]) -> bool:
    return not any(code == xid.code and pci != xid.pci for pci, code in groups)


def _with_rows(error: GpuError, errors: Mapping[tuple[str, int], GpuError]) -> GpuError:
    """Return an uncorrectable error together with what became of its row."""
    if error.first.code != DOUBLE_BIT:
        return error
    pci = error.first.pci
    if (pci, ROW_NOT_REPLACED) in errors:
        return replace(error, meaning=f"{error.meaning}, and its row could not be replaced", remedy="replace the GPU")
    if (pci, ROW_REPLACED) in errors:
        meaning = f"{error.meaning}; the row is replaced at the next reset"
        remedy = "drain the node and reset the GPU"
        return replace(error, meaning=meaning, remedy=remedy, includes=error.includes | {ROW_REPLACED})
    return error


def _with_action(error: GpuError, actions: Mapping[str, Xid]) -> GpuError:
    """Return the error with the action of the GPU's last Xid 154, where that decides."""
    action = actions.get(error.first.pci)
    known = recovery(action.text) if action else None
    if known is None or action is None or not _decided_by_the_driver(error):
        return error
    verdict, remedy = known
    meaning = f"{error.meaning}; Xid {RECOVERY}: {_action_name(action)}"
    return replace(error, verdict=verdict, remedy=remedy, meaning=meaning, includes=error.includes | {RECOVERY})


def _decided_by_the_driver(error: GpuError) -> bool:
    return error.action in (Action.RESET, Action.REBOOT) or error.first.code in NVLINK5


def _action_name(xid: Xid) -> str:
    return xid.text.rpartition("(")[2].partition(")")[0]


def _included(error: GpuError, errors: Iterable[GpuError]) -> bool:
    """Return True where another error of the GPU includes this one."""
    return any(other.first.pci == error.first.pci and error.first.code in other.includes for other in errors)
