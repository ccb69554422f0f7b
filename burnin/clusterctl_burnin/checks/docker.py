"""docker: the Docker daemon runs, and answers."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.documents import parse_docker_info
from clusterctl.formats.host.linux import parse_active_state
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.probe import Probe, Readings

INFO = Probe("docker_info", ("docker", "info", "--format", "{{json .}}"), timeout=20.0, role="docker")
SERVICE = Probe("docker_service", ("systemctl", "is-active", "docker.service"))
"""It exits 3 for what is not active: its word is judged, not its exit code."""
_NAME = "docker"
_REMEDY = (
    "run journalctl -b -u docker on the node and repair what it reports, then systemctl restart docker; "
    "if it is masked or disabled, systemctl unmask and enable it"
)


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    service = parse_active_state(readings.result(SERVICE).stdout)
    info = parse_docker_info(readings.text(INFO))
    if info.errors:
        yield _down(service, info.errors[0])
    elif service != "active":
        yield _down(service, f"version {info.version} answers, but another program started it")
    else:
        yield passed(_NAME, "the Docker daemon answers", measured=info.version)


def _down(service: str, why: str) -> Finding:
    cause = f"docker.service is {service}: {why}"
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.SERVICE_DOWN,
        cause=cause,
        measured=service,
        expected="active",
        remedy=_REMEDY,
        deterministic=False,
    )


CHECK = Check(
    _NAME,
    (INFO, SERVICE),
    _judge,
    area=Area.SERVICES,
    causes=(
        Cause("root_writable"),
        Cause("disk_space"),
        Cause("mounts"),
        Cause("zpool"),
    ),
)
