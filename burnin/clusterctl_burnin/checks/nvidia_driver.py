"""nvidia_driver: the driver is loaded and is the version that was configured."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import Area, Check, Expected, known
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, no_devices, read

_NO_DRIVER = "couldn't communicate with the NVIDIA driver"
_NAME = "nvidia_driver"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    result = readings.result(NVIDIA_SMI)
    if no_devices(result):
        yield passed(_NAME, "the driver is loaded; it has no GPU")
        return
    if result.rc != 0 and _NO_DRIVER in result.stdout + result.stderr:
        cause = "nvidia-smi cannot talk to the NVIDIA driver: its kernel module is not loaded"
        remedy = "read dmesg on the node for the reason, then configure the node again"
        yield Finding(check=_NAME, verdict=Verdict.FAIL, code=Code.DRIVER_NOT_LOADED, cause=cause, remedy=remedy)
        return
    version = known(read(readings).driver_version, "the driver's version")
    if expected.driver_version and version != expected.driver_version:
        cause = "the driver does not have the configured version"
        remedy = "configure the node again and reboot it, so that the new module is loaded"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.DRIVER_VERSION,
            cause=cause,
            measured=version,
            expected=expected.driver_version,
            remedy=remedy,
        )
    else:
        yield passed(_NAME, "the driver is loaded", measured=version, expected=expected.driver_version or None)


CHECK = Check(_NAME, (NVIDIA_SMI,), _judge, area=Area.GPU)
