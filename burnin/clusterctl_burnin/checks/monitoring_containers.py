"""monitoring_containers: the containers that the site wants on every host (`checks.containers`) run and are healthy.

A container of an image without a health check is healthy while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.documents import Container, parse_containers
from clusterctl_burnin.check import Area, Cause, Check, Expected, inconclusive
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

CONTAINERS = Probe("containers", ("containers",), timeout=20.0)
_NAME = "monitoring_containers"


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    wanted, there = parse_containers(readings.text(CONTAINERS))
    if not wanted:
        yield not_applicable(_NAME, "the site lists no containers (checks.containers)")
        return
    by_name = {container.name: container for container in there}
    bad = [finding for name in wanted for finding in _bad(name, by_name.get(name))]
    yield from bad
    if not bad:
        yield passed(
            _NAME,
            f"{', '.join(wanted)} run",
            measured=Quantity(len(wanted), "containers"),
            expected=exactly(len(wanted), "containers"),
        )


def _bad(name: str, container: Container | None) -> Iterator[Finding]:
    subject, log = f"container {name}", f"run docker logs {name} on the node and repair what it reports"
    if container is None:
        remedy = f"start {name} on the node again"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.CONTAINER_ABSENT,
            subject=subject,
            cause="the container does not exist",
            measured="absent",
            expected="running",
            remedy=remedy,
            deterministic=False,
        )
    elif container.state != "running" or container.health == "unhealthy":
        seen = container.health if container.state == "running" else container.state
        cause, remedy = f"the container is {seen}: {container.status}", f"{log}, then docker restart {name}"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.CONTAINER_UNHEALTHY,
            subject=subject,
            cause=cause,
            measured=seen,
            expected="running and healthy",
            remedy=remedy,
            deterministic=False,
        )
    elif container.health == "starting":
        error = UnmeasuredError("the container is starting, so its health is unknown", remedy=f"{log}; burn in again")
        yield inconclusive(_NAME, error, subject)


CHECK = Check(
    _NAME,
    (CONTAINERS,),
    _judge,
    area=Area.SERVICES,
    causes=(
        Cause("docker"),
        Cause("root_writable"),
        Cause("disk_space"),
        Cause("mounts"),
        Cause("zpool"),
    ),
)
