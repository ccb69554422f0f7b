"""docker_gpu: a container sees all GPUs. Its image is one that the site names (`checks.gpu_image`) and that is on every
host already; nvidia-smi comes into it from the host, by the NVIDIA container toolkit.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.documents import ContainerGpus, parse_container_gpus
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

GPUS = Probe("container_gpus", ("container-gpus", "45"), timeout=60.0)
_NAME = "docker_gpu"
_LATE = 124
_REMEDY = (
    "run nvidia-ctk runtime configure --runtime=docker and restart docker, or configure the node again (role "
    "nvidia_container_toolkit); run nvidia-container-cli info on the node"
)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    wanted = expected.sku.gpu_count
    if not wanted:
        yield not_applicable(_NAME, "the SKU has no GPU")
        return
    ran = parse_container_gpus(readings.text(GPUS))
    if not ran.image:
        yield not_applicable(_NAME, "the site names no image for the test (checks.gpu_image)")
        return
    _require_a_run(ran)
    seen = len(set(ran.uuids))
    if ran.code != 0:
        cause = f"no container with GPUs can be started: {_last(ran.complaint or ran.output)}"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.CONTAINER_NOT_STARTED,
            cause=cause,
            measured=f"exit code {ran.code}",
            expected="exit code 0",
            remedy=_REMEDY,
        )
    elif seen != wanted:
        cause = f"a container sees {seen} of {wanted} GPUs"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.CONTAINER_GPU_COUNT,
            cause=cause,
            measured=Quantity(seen, "GPUs"),
            expected=exactly(wanted, "GPUs"),
            remedy=_REMEDY,
        )
    else:
        yield passed(
            _NAME, "a container sees all GPUs", measured=Quantity(seen, "GPUs"), expected=exactly(wanted, "GPUs")
        )


def _require_a_run(ran: ContainerGpus) -> None:
    if ran.code == _LATE:
        raise UnmeasuredError(
            f"docker run did not answer within {GPUS.argv[1]} s",
            remedy="look for a hung nvidia-smi and for driver errors",
            code=Code.PROBE_TIMED_OUT,
            fault=GPUS.name,
        )
    if ran.image_absent:
        raise UnmeasuredError(
            f"the image {ran.image} is not on the host",
            remedy=f"run docker pull {ran.image} on the node, or docker load where there is no registry",
        )


def _last(text: str) -> str:
    """Return Docker's error without the hint at its own help that follows."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "--help" not in line]
    return lines[-1][:300] if lines else "it printed nothing"


CHECK = Check(
    _NAME,
    (GPUS,),
    _judge,
    area=Area.SERVICES,
    causes=(
        Cause("docker"),
        Cause("root_writable"),
        Cause("disk_space"),
        Cause("mounts"),
        Cause("zpool"),
    ),
    idle_only=True,
)
