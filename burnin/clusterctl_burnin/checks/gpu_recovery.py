"""gpu_recovery: no GPU waits for a reset, a reboot or a repair, by its driver's report.

A GPU in that state is listed as healthy otherwise, and programs on it hang or fail. Drivers from R565 on report a
recovery action, those from R525 on whether a reset is required. Older ones report neither: that is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading, Recovery
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.probe import Readings, UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, driver_branch, each_or

_NAME = "gpu_recovery"
_ACTIONS = 565
_STATUS = 525
"""The first driver branches that report the recovery action, and the reset status (recordings of R525 and R565)."""
_NOTHING = frozenset({"no", "n/a", "not supported"})
_RESET = "end all programs on the GPU, reset it (nvidia-smi -r) or reboot the node, then run the burn-in again"
_REMEDIES = {
    "reboot": "reboot the node, then run the burn-in again",
    "drain p2p": "end all programs that use peer-to-peer traffic of the node, then run the burn-in again",
}


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    branch = driver_branch(readings)

    def bad(gpu: GpuReading) -> Iterator[Finding]:
        found = _need(gpu.recovery, branch)
        if found is not None:
            code, cause, remedy = found
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=code,
                subject=gpu.subject,
                cause=cause,
                measured=gpu.recovery.action,
                remedy=remedy,
                serial=gpu.serial or "",
            )

    nothing = passed(_NAME, "no GPU needs a reset or a repair")
    return each_or(_NAME, readings, expected, bad, nothing if branch >= _STATUS else _too_old(branch))


_Need = tuple[Code, str, str]
"""Code, cause and remedy of a finding."""


def _need(recovery: Recovery, branch: int) -> _Need | None:
    """Return what the GPU needs. Raises `UnmeasuredError` where the driver reports it and it cannot be read."""
    if recovery.repairs.get("Unrepairable Memory", "").lower() == "yes":
        return Code.GPU_MEMORY_UNREPAIRABLE, "the GPU has memory that cannot be repaired", "replace the GPU"
    found = _reset(recovery) or _repair(recovery)
    if found is None and branch >= _ACTIONS:
        known(recovery.action, "the GPU's recovery action")
    elif found is None and branch >= _STATUS:
        known(recovery.required, "whether the GPU requires a reset")
    return found


def _reset(recovery: Recovery) -> _Need | None:
    action = (recovery.action or "none").replace("_", " ").lower()
    if action != "none":
        cause = f"the driver wants the GPU to be recovered: {recovery.action}"
        return Code.GPU_RESET_NEEDED, cause, _REMEDIES.get(action, _RESET)
    if recovery.required or recovery.recommended or recovery.stopped:
        return Code.GPU_RESET_NEEDED, "the driver reports that the GPU requires a reset", _RESET
    return None


def _repair(recovery: Recovery) -> _Need | None:
    repairs = {key: value.lower() for key, value in recovery.repairs.items() if value.lower() not in _NOTHING}
    pending = [key for key, value in repairs.items() if value == "yes"]
    if repairs and not pending:
        raise UnmeasuredError(f"nvidia-smi cannot read {', '.join(repairs)}", code=Code.NOT_REPORTED)
    cause = f"a repair inside the GPU waits for its next reset ({', '.join(pending)})"
    return (Code.GPU_REPAIR_PENDING, cause, _RESET) if pending else None


def _too_old(branch: int) -> Finding:
    cause = f"driver branch R{branch} does not report whether a GPU needs a reset"
    remedy = f"update the driver to R{_ACTIONS} or later, where the site can"
    return Finding(check=_NAME, verdict=Verdict.WARN, code=Code.GPU_NOT_REPORTED, cause=cause, remedy=remedy)


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(
        Cause("nvidia_driver"),
        Cause("gpu_count", unmeasured=True),
        Cause("gpu_count", same_part=True),
        Cause("gpu_row_remap", same_part=True),
        Cause("gpu_ecc", same_part=True),
    ),
    after_loads=True,
)
