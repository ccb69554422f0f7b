"""fabric_manager: NVIDIA's fabric manager runs in the driver's version, and every GPU has joined the NVSwitches.

Without it CUDA does not start on HGX and DGX machines ("system not yet initialized"); in another version than the
driver's it ends by itself (Fabric Manager User Guide, docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide).

Where the NVSwitches are those of a rack (GB200), it runs on another machine: only what the GPUs report is judged. GPUs
before Hopper report no state of their fabric.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.linux import parse_active_state
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl.formats.nvidia.nvlink import parse_fabric_manager_version
from clusterctl_burnin.check import Area, Check, Expected, inconclusive, known
from clusterctl_burnin.checks.nvlink import NVLINK_COUNT
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each, read

SERVICE = Probe("fabric_manager_service", ("systemctl", "is-active", "nvidia-fabricmanager.service"))
"""It exits 3 for what is not active: its word is judged, not its exit code."""
VERSION = Probe("fabric_manager_version", ("nv-fabricmanager", "--version"), role="fabric_manager")
_NAME = "fabric_manager"
_JOINED = ("Completed", "Success")
_SILENT = frozenset({"Volta", "Turing", "Ampere", "Ada Lovelace"})
_UNTOLD = frozenset({"n/a", "not supported", "[n/a]"})
_FINE = {
    "Summary": frozenset({"healthy"}),
    "Bandwidth": frozenset({"full"}),
    "Route Recovery in progress": frozenset({"false"}),
    "Route Unhealthy": frozenset({"false"}),
    "Access Timeout Recovery": frozenset({"false"}),
    "Incorrect Configuration": frozenset({"none", "false"}),
}
"""The healthy values by key (nvml.h, nvmlGpuFabricInfo_v3_t); keys that are not here are not judged."""
_LOG = "read journalctl -b -u nvidia-fabricmanager and /var/log/fabricmanager.log on the node, repair what they report"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if not expected.limits[NVLINK_COUNT].value:
        yield not_applicable(_NAME, "GPUs without NVLink need no fabric manager")
        return
    found: list[Finding] = []
    for part in (_gpus,) if _in_rack(readings) else (_service, _version, _gpus):
        try:
            found.extend(part(readings, expected))
        except (UnmeasuredError, ParseError) as error:
            found.append(inconclusive(_NAME, error))
    yield from found or (passed(_NAME, "it runs, and every GPU has joined the NVSwitches"),)


def _in_rack(readings: Readings) -> bool:
    """Return whether all GPUs are in the fabric of a rack; False where that was not measured."""
    try:
        gpus = read(readings).gpus
    except (UnmeasuredError, ParseError):
        return False
    return bool(gpus) and all(gpu.in_rack_fabric for gpu in gpus)


def _service(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    state = parse_active_state(readings.result(SERVICE).stdout)
    if state != "active":
        cause, remedy = (
            f"nvidia-fabricmanager.service is {state}",
            f"{_LOG}, then systemctl restart nvidia-fabricmanager",
        )
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.SERVICE_DOWN,
            cause=cause,
            measured=state,
            expected="active",
            remedy=remedy,
            deterministic=False,
        )


def _version(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    version = parse_fabric_manager_version(readings.text(VERSION))
    driver = known(read(readings).driver_version, "the driver's version")
    if version != driver:
        cause = "the fabric manager and the driver have different versions"
        remedy = "configure the node again (role fabric_manager), then reboot it"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.FABRIC_MANAGER_VERSION,
            cause=cause,
            measured=version,
            expected=driver,
            remedy=remedy,
        )


def _gpus(readings: Readings, expected: Expected) -> Iterator[Finding]:
    def apart(gpu: GpuReading) -> Iterator[Finding]:
        if gpu.architecture in _SILENT and gpu.fabric.state is None:
            return
        yield from _unhealthy(gpu)
        state = known(gpu.fabric.state, "the state of the GPU's fabric")
        status = gpu.fabric.status or "no status"
        if (state, status) != _JOINED:
            cause, seen = "the GPU has not joined the NVSwitches", f"{state}, {status}"
            remedy = f"{_LOG}; reset the GPU or reboot the node; if that does not help, reseat the GPU, then replace it"
            wanted, serial = ", ".join(_JOINED), gpu.serial or ""
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.NVSWITCH_NOT_JOINED,
                subject=gpu.subject,
                cause=cause,
                measured=seen,
                expected=wanted,
                remedy=remedy,
                serial=serial,
                deterministic=False,
            )

    return each(_NAME, readings, expected, apart)


def _unhealthy(gpu: GpuReading) -> Iterator[Finding]:
    """Yield bad health. A value that the driver cannot read (`N/A`) is no finding; many drivers report no health."""
    bad = {
        key: value
        for key, value in gpu.fabric.health.items()
        if value.lower() not in _FINE.get(key, frozenset({value.lower()})) | _UNTOLD
    }
    if bad:
        wrong = ", ".join(f"{key}: {value}" for key, value in bad.items())
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.NVSWITCH_UNHEALTHY,
            subject=gpu.subject,
            cause=f"the GPU reports that its NVLink fabric is not healthy ({wrong})",
            remedy=f"{_LOG}; read the NVLinks (nvidia-smi nvlink -s), then the switch tray's or NVSwitch's log",
            serial=gpu.serial or "",
            deterministic=False,
        )


CHECK = Check(_NAME, (SERVICE, VERSION, NVIDIA_SMI), _judge, area=Area.NVLINK, limits=(NVLINK_COUNT,))
