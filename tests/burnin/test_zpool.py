"""The check zpool: whole, mounted, taking data, with Docker's on it; broken in each way that it knows."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.zpool import parse_pool_record, parse_zpool_status
from clusterctl_burnin.probe import ProbeResult, Status
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.roots import link_roots
from tests.burnin.kit import HEALTHY, Edit, expected, readings, result

FAIL, WARN, INCONCLUSIVE = Verdict.FAIL, Verdict.WARN, Verdict.INCONCLUSIVE
DISK = "nvme-QEMU_NVMe_Ctrl_NVME00012"
BROKEN = HEALTHY.parent / "zpool"


def edit(old: str, new: str) -> Edit:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


@dataclass(frozen=True)
class Case:
    """A broken node and the one finding that the check must report."""

    verdict: Verdict
    subject: str
    cause: str
    broken: dict[str, ProbeResult | Edit] = field(default_factory=dict)


def recorded(name: str) -> Edit:
    return lambda _: (BROKEN / f"{name}.txt").read_text()


CASES = (
    Case(FAIL, DISK, "the disk is REMOVED in pool data, which is DEGRADED", {"zpool_status": recorded("pulled")}),
    Case(
        FAIL,
        DISK,
        "the disk is FAULTED (too many errors) in pool data",
        {
            "zpool_status": edit(
                f"{DISK}    ONLINE       0     0     0", f"{DISK}    FAULTED      6    61     0  too many errors"
            )
        },
    ),
    Case(
        FAIL,
        DISK,
        "the disk is UNAVAIL in pool data",
        {
            "zpool_status": edit(
                f"{DISK}    ONLINE ", f"1234567890    UNAVAIL  0 0 0 was /dev/disk/by-id/{DISK}-part1\n\t    x ONLINE"
            )
        },
    ),
    Case(
        WARN,
        DISK,
        "read, write or checksum errors",
        {"zpool_status": edit(f"{DISK}    ONLINE       0", f"{DISK}    ONLINE       7")},
    ),
    Case(FAIL, "data", "the pool is absent", {"zpool_status": lambda _: "no pools available\n"}),
    Case(
        FAIL,
        "data",
        "the pool is absent",
        {"zpool_status": lambda text: text.replace("data ", "other ").replace(": data", ": other")},
    ),
    Case(
        FAIL,
        "data",
        "the pool has lost data",
        {"zpool_status": edit("No known data errors", "3 data errors, use '-v' for a list")},
    ),
    Case(FAIL, "data", "the pool is SUSPENDED", {"zpool_status": edit(" state: ONLINE", " state: SUSPENDED")}),
    Case(INCONCLUSIVE, "node", "no pool in it", {"zpool_status": lambda _: "\n"}),
    Case(INCONCLUSIVE, "node", "without errors", {"zpool_status": edit("errors: No known data errors\n", "")}),
    Case(
        INCONCLUSIVE,
        "node",
        "not installed",
        {"zpool_status": result("zpool_status", "", status=Status.MISSING, rc=None)},
    ),
    Case(
        INCONCLUSIVE,
        "node",
        "did not answer",
        {"zpool_status": result("zpool_status", "", status=Status.TIMEOUT, rc=None)},
    ),
    Case(INCONCLUSIVE, "node", "not understood", {"zpool_record": lambda _: '{"pool": "data"}'}),
    Case(FAIL, "data", "mounted read-only", {"zfs_mounts": edit("rw,relatime,xattr", "ro,relatime,xattr")}),
    Case(
        INCONCLUSIVE,
        "node",
        "a write to the pool hangs",
        {"zpool_write": result("zpool_write", "", status=Status.TIMEOUT, rc=None)},
    ),
    Case(
        FAIL,
        "data",
        "No space left",
        {"zpool_write": result("zpool_write", "refused: dd: error writing: No space left on device\n")},
    ),
    Case(FAIL, "data", "takes too long", {"zpool_write": edit("045.3", "065.3")}),
    Case(INCONCLUSIVE, "node", "neither written nor refused", {"zpool_write": lambda _: ""}),
    Case(WARN, "docker", "which is not on the pool", {"docker_root": lambda _: "/var/lib/docker\n"}),
    Case(
        INCONCLUSIVE,
        "docker",
        "does not report its data folder",
        {"docker_root": result("docker_root", "", rc=1, stderr="no daemon\n")},
    ),
)


def judged(**broken: ProbeResult | Edit) -> tuple[Finding, ...]:
    return CHECKS["zpool"].findings(readings(**broken), expected())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.verdict.value}: {case.cause}"[:60])
def test_each_broken_pool_is_reported(case: Case) -> None:
    """One bad finding, about the part that an operator can find, with a remedy."""
    found = [finding for finding in judged(**case.broken) if finding.verdict is not Verdict.PASS]
    (finding,) = found
    assert (finding.verdict, finding.subject) == (case.verdict, case.subject)
    assert case.cause in finding.cause
    assert finding.remedy


def test_a_pool_that_is_not_mounted_is_reported_with_where_docker_writes_then() -> None:
    """Docker's data lies on the root disk as soon as the pool is gone from its place."""
    found = judged(zfs_mounts=edit('"target": "/data"', '"target": "/mnt"'))
    assert [(one.verdict, one.subject) for one in found] == [(FAIL, "data"), (WARN, "docker")]
    assert "/data holds nothing" in found[0].cause


def test_a_healthy_pool_passes() -> None:
    """All its disks are there: one finding, and it passes."""
    (finding,) = judged()
    assert (finding.verdict, finding.subject) == (Verdict.PASS, "data")


def test_a_host_without_the_role_is_held_to_nothing() -> None:
    """Also where no tool of ZFS is there; the finding has the reason."""
    missing = result("zpool_status", "", status=Status.MISSING, rc=None)
    (finding,) = judged(zpool_record=lambda _: "null\n", zpool_status=missing)
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert "not applied" in finding.cause


def test_no_docker_is_the_root_of_not_knowing_where_it_writes() -> None:
    """A daemon that does not run is one finding; what the pool cannot report for that points at it."""
    down = Finding(check="docker", verdict=FAIL, code=Code.GPU_ECC_UNCORRECTABLE, cause="docker.service is inactive")
    unknown = judged(docker_root=result("docker_root", "", rc=1, stderr="no daemon\n"))
    linked = {one.check: one for one in link_roots((down, *(f for f in unknown if f.verdict is INCONCLUSIVE)))}
    assert linked["zpool"].root == down.key


def test_what_a_pool_is_made_of_is_read() -> None:
    """Disks are the rows that nothing hangs below, spares and logs among them."""
    (pool,) = parse_zpool_status((BROKEN / "sections.txt").read_text())
    assert [(disk.name, disk.state) for disk in pool.disks] == [
        ("sda", "ONLINE"),
        ("sdb", "ONLINE"),
        ("nvme0n1", "ONLINE"),
        ("sdc", "AVAIL"),
    ]


def test_two_pools_are_two() -> None:
    """Each has its own fields; `zpool status` prints one after the other."""
    text = (HEALTHY / "zpool_status.txt").read_text()
    pools = parse_zpool_status(text + "\n" + text.replace("data ", "more ").replace(": data", ": more"))
    assert [(pool.name, len(pool.disks)) for pool in pools] == [("data", 4), ("more", 4)]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"pool": "", "mountpoint": "/data"}', '{"pool": "data", "mountpoint": "data"}']
)
def test_a_record_that_is_none_is_refused(text: str) -> None:
    """Only the file's absence means that nothing was promised."""
    with pytest.raises(ParseError):
        parse_pool_record(text)


@dataclass(frozen=True)
class Recorded:
    """A pool of a public report, and the gravest finding that its text must lead to."""

    verdict: str
    code: str
    subject: str
    source: str
    text: str

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return what the check finds on a node whose role made this pool."""
        pool = self.text.splitlines()[0].split()[1]
        mounts: Edit = lambda text: text.replace('"source": "data', f'"source": "{pool}')  # noqa: E731 — of one word
        return judged(
            zpool_status=lambda _: self.text,
            zpool_record=lambda text: text.replace('"pool": "data"', f'"pool": "{pool}"'),
            zfs_mounts=mounts,
        )


def recordings() -> tuple[Recorded, ...]:
    _, *blocks = (BROKEN / "recorded.txt").read_text().split("\n@ ")
    found = []
    for block in blocks:
        head, _, text = block.partition("\n")
        verdict, code, subject, source = (field.strip() for field in head.split(" | "))
        found.append(Recorded(verdict, code, subject, source, text))
    return tuple(found)


@pytest.mark.parametrize("one", recordings(), ids=lambda one: one.source)
def test_recorded_pools_have_the_verdicts_of_their_table(one: Recorded) -> None:
    """The part is named by its device, also where zpool shows a number, and a pool that calls itself online is read."""
    verdicts = {finding.verdict.value for finding in one.findings}
    assert one.verdict == max(verdicts, key=lambda value: Verdict(value).rank)
    bad = {(finding.code.name, finding.subject) for finding in one.findings if finding.verdict.value == one.verdict}
    assert (one.code, one.subject) in bad


def test_a_disk_that_is_being_replaced_is_waited_for() -> None:
    """It needs no other replacement: the new one is being filled."""
    (one,) = [one for one in recordings() if one.subject == "old"]
    (finding,) = [finding for finding in one.findings if finding.verdict is FAIL]
    assert "is being replaced" in finding.cause
    assert finding.remedy == "Wait for the resilver to complete."


def test_a_suspended_pool_has_not_lost_data_as_far_as_is_known() -> None:
    """Its list of errors cannot be read: that is no list of lost data, and nothing needs a copy."""
    (one,) = [one for one in recordings() if "is suspended" in one.source]
    codes = {finding.code for finding in one.findings}
    assert Code.POOL_DATA_LOST not in codes
    (pool,) = [finding for finding in one.findings if finding.code is Code.POOL_DEGRADED]
    assert (
        pool.cause == "the pool cannot report its errors: List of errors unavailable: pool I/O is currently suspended"
    )
