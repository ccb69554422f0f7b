"""docker, root_writable: broken in each way that they know, and not measured."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.probe import ProbeResult, Status
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.roots import link_roots
from tests.burnin.kit import Edit, expected, readings, result

FAIL, INCONCLUSIVE = Verdict.FAIL, Verdict.INCONCLUSIVE
NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"


@dataclass(frozen=True)
class Case:
    """A broken node and the one finding that its check must report."""

    check: str
    verdict: Verdict
    cause: str
    broken: dict[str, ProbeResult | Edit] = field(default_factory=dict)


def info(**fields: object) -> ProbeResult:
    return result("docker_info", json.dumps(fields))


INACTIVE = result("docker_service", "inactive\n", rc=3)
CASES = (
    Case(
        "docker",
        FAIL,
        f"docker.service is inactive: {NO_DAEMON}",
        {"docker_info": info(ID="", ServerErrors=[NO_DAEMON]), "docker_service": INACTIVE},
    ),
    Case(
        "docker",
        FAIL,
        "docker.service is active: permission denied",
        {"docker_info": info(ServerErrors=["permission denied"])},
    ),
    Case("docker", INCONCLUSIVE, "boom", {"docker_info": result("docker_info", "", rc=1, stderr="boom\n")}),
    Case("docker", FAIL, "another program started it", {"docker_service": INACTIVE}),
    Case("docker", INCONCLUSIVE, "neither a version", {"docker_info": info(ID="")}),
    Case("docker", INCONCLUSIVE, "not understood", {"docker_info": result("docker_info", "Server:\n ERROR\n")}),
    Case(
        "docker",
        INCONCLUSIVE,
        "not installed",
        {"docker_info": result("docker_info", "", status=Status.MISSING, rc=None)},
    ),
    Case(
        "root_writable",
        FAIL,
        "/dev/sda2 (ext4) is mounted read-only",
        {"root_mount": lambda text: text.replace("rw,", "ro,")},
    ),
    Case(
        "root_writable",
        FAIL,
        "Read-only file system",
        {"root_write": result("root_write", "refused: mktemp: failed to create file: Read-only file system\n")},
    ),
    Case(
        "root_writable",
        INCONCLUSIVE,
        "does not show a root",
        {"root_mount": result("root_mount", '{"filesystems": []}')},
    ),
    Case("root_writable", INCONCLUSIVE, "not understood", {"root_mount": result("root_mount", "/ rw\n")}),
    Case(
        "root_writable",
        INCONCLUSIVE,
        "did not answer",
        {"root_write": result("root_write", "", status=Status.TIMEOUT, rc=None)},
    ),
)


def judged(case: Case) -> tuple[Finding, ...]:
    return CHECKS[case.check].findings(readings(**case.broken), expected())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.cause}"[:60])
def test_each_broken_node_is_reported(case: Case) -> None:
    """One finding, about the node, with cause and remedy."""
    (finding,) = judged(case)
    assert (finding.verdict, finding.subject) == (case.verdict, "node")
    assert case.cause in finding.cause
    assert finding.remedy


@pytest.mark.parametrize(
    ("root", "consequence", "verdict"),
    [
        ("cpu_share", "gpu_count", INCONCLUSIVE),
        ("cpu_share", "all_reduce", FAIL),
        ("root_writable", "failed_units", FAIL),
        ("root_writable", "docker", FAIL),
        ("disk_space", "docker", FAIL),
        ("reachable", "gpu_count", INCONCLUSIVE),
    ],
)
def test_one_cause_has_one_root(root: str, consequence: str, verdict: Verdict) -> None:
    """What a straggler, a dead disk or silence brings with it points at it."""
    first, second = link_roots(
        [
            Finding(check=root, verdict=FAIL, code=Code.GPU_ECC_UNCORRECTABLE),
            Finding(check=consequence, verdict=verdict, code=Code.GPU_ECC_UNCORRECTABLE, cause="x"),
        ]
    )
    assert (first.root, second.root) == ("", f"{root}:node")
