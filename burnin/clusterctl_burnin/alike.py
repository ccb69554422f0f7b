"""What all hosts of one kind have alike: release, kernel and RDMA drivers. A host that differs from most of its batch
gets a warning, since a job that runs on both meets the behaviour of two kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.documents import parse_host_os
from clusterctl.formats.infiniband.rdma_stack import parse_rdma_stack
from clusterctl_burnin.checks import ofed_version
from clusterctl_burnin.checks.os_release import HOST_OS, NAME
from clusterctl_burnin.probe import Readings, UnmeasuredError

LEAST_HOSTS = 3
"""Which of two different ones is the odd one is unknown."""
Traits = Mapping[str, str]
_RDMA = "RDMA drivers"
_CHECKS = {_RDMA: ofed_version.NAME}
"""The check that a trait's warning belongs to, where it is not that of the release."""
_REMEDY = "bring the node to the {} of the others, or name the right one in site.yml (checks)"


def traits(readings: Readings) -> Traits:
    """Return what is compared, by its name; empty where it was not measured, which its check reports."""
    return {**_software(readings), **_rdma_drivers(readings)}


def _software(readings: Readings) -> Traits:
    try:
        host = parse_host_os(readings.text(HOST_OS))
    except (UnmeasuredError, ParseError):
        return {}
    release = (host.os_release or {}).get("PRETTY_NAME", "")
    return {name: value for name, value in (("release", release), ("kernel", host.kernel)) if value}


def _rdma_drivers(readings: Readings) -> Traits:
    try:
        stack = parse_rdma_stack(readings.text(ofed_version.STACK))
    except (UnmeasuredError, ParseError):
        return {}
    return {_RDMA: ofed_version.described(stack)} if stack.module is not None else {}


def unlike(hosts: Mapping[str, Traits]) -> Mapping[str, tuple[Finding, ...]]:
    """Return by host a warning for each trait that differs from more than half of the others."""
    names = dict.fromkeys(trait for values in hosts.values() for trait in values)
    found = [(host, finding) for trait in names for host, finding in _differing(trait, hosts)]
    return {host: tuple(f for name, f in found if name == host) for host in dict.fromkeys(name for name, _ in found)}


def _differing(trait: str, hosts: Mapping[str, Traits]) -> Sequence[tuple[str, Finding]]:
    values = {host: traits[trait] for host, traits in hosts.items() if trait in traits}
    if len(values) < LEAST_HOSTS:
        return ()
    usual, times = Counter(values.values()).most_common(1)[0]
    if times * 2 <= len(values):
        return ()
    cause = f"the host's {trait} differs from {times} of the {len(values)} hosts that were burned in with it"
    return [
        (
            host,
            Finding(
                check=_CHECKS.get(trait, NAME),
                verdict=Verdict.WARN,
                code=Code.UNLIKE_OTHERS,
                cause=cause,
                measured=value,
                expected=usual,
                remedy=_REMEDY.format(trait),
            ),
        )
        for host, value in values.items()
        if value != usual
    ]
