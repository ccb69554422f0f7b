"""cpu_share: a node that keeps processors from its work fails; other work on the processors is no fault of the node.

data/cpu_share holds what `cpu-share 8` printed on a virtual machine with two processors, Linux 6.18, cgroup v1:
crowded.json while twelve loops ran, in a cgroup whose cpu.shares was 2; quota-crowded.json under a quota of 10 % while
four to nine other tasks ran.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.cpu_memory import parse_cpu_share
from clusterctl_burnin.node import bundle
from clusterctl_burnin.node.programs import cpu_share
from clusterctl_burnin.probe import programs
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, readings
from tests.lab_data import lab_limits

FAIL, INCONCLUSIVE, PASS = Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS
DATA = Path(__file__).parent / "data" / "cpu_share"


def document(cpus: int, *tries: tuple[float, int] | tuple[float, int, float, float, float], **quotas: object) -> str:
    """Return a document; a try is share and runnable and, of a newer program, seconds, idle and stolen."""
    names = ("share", "runnable", "seconds", "idle", "stolen")
    return json.dumps({"cpus": cpus, "tries": [dict(zip(names, one, strict=False)) for one in tries], **quotas})


LOW = {"quotas": [{"cgroup": "/user.slice", "cpus": 0.5}, {"cgroup": "/user.slice/user-0.slice", "cpus": 64}]}
USED_UP = {"quotas": [{"cgroup": "/user.slice", "cpus": 4}]}
DOCUMENTS = {
    "crowded": (DATA / "crowded.json").read_text(),
    "quota, crowded": (DATA / "quota-crowded.json").read_text(),
    "quota": document(192, (0.1, 2, 0.5, 95.9, 0.0), quotas=[{"cgroup": "/a", "cpus": 0.1}]),
    "quota with a long period": document(192, (0.99, 2, 0.051, 9.7, 0.0), **LOW),
    "quota of four, used up by other work": json.dumps(
        {
            "cpus": 192,
            "tries": [
                {"share": 0.2, "runnable": 9, "seconds": 0.25, "idle": 47.0, "stolen": 0, "throttled": 9.1},
                {"share": 0.4, "runnable": 9, "seconds": 0.125, "idle": 23.0, "stolen": 0, "throttled": 4.1},
            ],
            **USED_UP,
        }
    ),
    "quota that does not matter": document(192, (0.98, 2, 0.051, 9.7, 0.0), **USED_UP),
    "quota that cannot be read": document(192, (0.1, 2, 0.5, 95.9, 0.0), quotas=None),
    "idle injection": document(16, (0.5, 2, 0.1, 1.55, 0.0), (0.49, 1, 0.102, 1.58, 0.0), quotas=[]),
    "hypervisor": document(8, (0.55, 9, 0.09, 0.0, 0.33), (0.5, 9, 0.1, 0.01, 0.4), quotas=[]),
    "crowded virtual machine": document(8, (0.55, 40, 0.09, 0.0, 0.02), (0.4, 44, 0.12, 0.01, 0.03), quotas=[]),
    "crowded, quota that cannot be read": document(2, (0.13, 51, 0.38, 0.0, 0.0), quotas=None),
    "one good try": document(2, (0.01, 90, 5.0, 0.0, 0.0), (0.93, 12, 0.054, 0.01, 0.0), quotas=None),
    "no try": document(2, quotas=[]),
    "old, idle": document(192, (0.1, 2), (0.12, 1)),
    "old, crowded": document(2, (0.12, 2), (0.01, 90)),
    "old, healthy": document(2, (0.01, 90), (0.95, 12)),
}
VERDICTS = {
    "crowded": (PASS, "nothing but other work kept the processors"),
    "quota, crowded": (FAIL, "the cgroup /h21rec/quota of the work has a CPU quota of 0.1 processors"),
    "quota": (FAIL, "cgroup /a of the work has a CPU quota of 0.1 processors"),
    "quota with a long period": (FAIL, "cgroup /user.slice of the work has a CPU quota of 0.5 processors"),
    "quota of four, used up by other work": (FAIL, "a CPU quota of 4 processors, which was used up"),
    "quota that does not matter": (PASS, "gets a whole processor"),
    "quota that cannot be read": (FAIL, "though its processors were idle for 100% of the wait"),
    "idle injection": (FAIL, "though its processors were idle for"),
    "hypervisor": (FAIL, "a hypervisor had the processors for"),
    "crowded virtual machine": (PASS, "while 44 tasks at most wanted its 8 processors"),
    "crowded, quota that cannot be read": (INCONCLUSIVE, "its CPU quota cannot be read"),
    "one good try": (PASS, "gets a whole processor"),
    "no try": (INCONCLUSIVE, "no try"),
    "old, idle": (FAIL, "while 2 tasks at most wanted its 192 processors"),
    "old, crowded": (INCONCLUSIVE, "while 90 tasks at most wanted its 2 processors, and what these did"),
    "old, healthy": (PASS, "gets a whole processor"),
}


def judged(text: str, *, lab: bool = False) -> Finding:
    limits = lab_limits() if lab else expected().limits
    answer = readings(cpu_share=lambda _: text)
    (finding,) = CHECKS["cpu_share"].findings(answer, replace(expected(), limits=limits))
    return finding


@pytest.mark.parametrize("name", DOCUMENTS)
def test_only_what_withholds_a_processor_fails(name: str) -> None:
    """Not other work, which takes its turn on it; and what cannot be distinguished is not healthy."""
    verdict, cause = VERDICTS[name]
    finding = judged(DOCUMENTS[name])
    assert finding.verdict is verdict
    assert cause in finding.cause
    assert finding.subject == "node"
    assert bool(finding.remedy) is (verdict is not PASS)
    assert finding.code is not Code.CPU_SHARE_LOW or finding.measured is not None


def test_the_labs_straggler_fails_and_its_crowd_does_not() -> None:
    """By the lab's own limit, on two processors that all its hosts share."""
    assert judged(DOCUMENTS["quota, crowded"], lab=True).verdict is FAIL
    assert judged(DOCUMENTS["crowded"], lab=True).verdict is PASS


def test_a_crowd_is_no_outlier_of_the_fleet() -> None:
    """Its figure is the part of a processor that was there for work, with other work or without."""
    (crowded,) = CHECKS["cpu_share"].samples("n", "p", readings(cpu_share=lambda _: DOCUMENTS["crowded"]))
    (healthy,) = CHECKS["cpu_share"].samples("n", "p", readings())
    (quota,) = CHECKS["cpu_share"].samples("n", "p", readings(cpu_share=lambda _: DOCUMENTS["quota, crowded"]))
    assert crowded.value == 100
    assert healthy.value == pytest.approx(99.3)
    assert quota.value == 10


def test_the_built_in_measures_what_the_format_reads() -> None:
    """The node's program runs, and its document is understood; the work got some processor."""
    program = [sys.executable, "-I", "-c", *programs()["cpu-share"], "1"]
    status, rc, stdout, stderr = bundle.run_once(program, limit=1e12, max_bytes=65536)
    assert (status, rc, stderr) == ("ok", 0, "")
    found = parse_cpu_share(stdout)
    assert 0 < found.best <= 1.05
    assert all(one.seconds and one.idle is not None for one in found.tries)


def files(root: Path, contents: dict[str, str]) -> Path:
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


UNIFIED = "28 21 0:24 / {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
LEGACY = "31 30 0:28 / {mount} rw,nosuid shared:8 - cgroup cgroup rw,cpu,cpuacct\n"


def test_a_quota_of_cgroup_v2_is_read_in_each_cgroup_above_the_work(tmp_path: Path) -> None:
    """cpu.stat as netdata issue 12595 shows it; the controller is off in the innermost cgroup, which has no cpu.max."""
    mount = tmp_path / "cgroup"
    proc = files(
        tmp_path / "proc",
        {
            "self/cgroup": "0::/user.slice/user-0.slice/session-3.scope\n",
            "self/mountinfo": UNIFIED.format(mount=mount),
        },
    )
    files(
        mount,
        {
            "cgroup.procs": "",
            "user.slice/cpu.max": "max 100000\n",
            "user.slice/user-0.slice/cpu.max": "50000 100000\n",
            "user.slice/user-0.slice/cpu.stat": "usage_usec 73899\nuser_usec 27213\nsystem_usec 46685\n"
            "nr_periods 7\nnr_throttled 3\nthrottled_usec 139381\n",
            "user.slice/user-0.slice/session-3.scope/cgroup.procs": "",
        },
    )
    (quota,) = cpu_share.limited(proc) or ()
    assert (quota.name, quota.cpus) == ("/user.slice/user-0.slice", 0.5)
    assert cpu_share.throttled(quota) == pytest.approx(0.139381)


def test_a_quota_of_cgroup_v1_is_read_where_the_cpu_controller_is_mounted(tmp_path: Path) -> None:
    """cpu.stat as netdata issue 12595 shows it. The mount shows a part of the hierarchy only, as in a container."""
    mount = tmp_path / "cpu"
    proc = files(
        tmp_path / "proc",
        {
            "self/cgroup": "5:cpu,cpuacct:/docker/abc/inner\n0::/docker/abc\n",
            "self/mountinfo": UNIFIED.format(mount=tmp_path) + LEGACY.format(mount=mount).replace(" / ", " /docker "),
        },
    )
    files(
        mount,
        {
            "cpu.cfs_quota_us": "-1\n",
            "cpu.cfs_period_us": "100000\n",
            "abc/cpu.cfs_quota_us": "10000\n",
            "abc/cpu.cfs_period_us": "100000\n",
            "abc/cpu.stat": "nr_periods 7\nnr_throttled 2\nthrottled_time 127918677\n",
            "abc/inner/cpu.cfs_quota_us": "-1\n",
            "abc/inner/cpu.cfs_period_us": "100000\n",
        },
    )
    (quota,) = cpu_share.limited(proc) or ()
    assert (quota.name, quota.cpus) == ("/abc", 0.1)
    assert cpu_share.throttled(quota) == pytest.approx(0.127918677)


@pytest.mark.parametrize(
    ("cgroup", "mounts"),
    [
        ("1:cpu:/lab/node001\n0::/\n", UNIFIED),
        ("0::/a\n", ""),
        ("0::/../other\n", UNIFIED),
        ("0::/gone\n", UNIFIED),
        ("", UNIFIED),
    ],
)
def test_what_cannot_be_read_is_no_absent_quota(tmp_path: Path, cgroup: str, mounts: str) -> None:
    """The controller's hierarchy is not mounted, the cgroup is outside what we see, or it is gone."""
    (tmp_path / "cgroup").mkdir()
    text = mounts.format(mount=tmp_path / "cgroup")
    assert cpu_share.limited(files(tmp_path / "proc", {"self/cgroup": cgroup, "self/mountinfo": text})) is None
    assert cpu_share.limited(tmp_path / "nothing") is None


def test_idle_and_stolen_time_are_those_of_the_processors_that_it_may_use(tmp_path: Path) -> None:
    """/proc/stat without a row of one of them, or of a kernel without steal, is no answer."""
    head = "cpu  2793187 1624551 1356355 2745702 13026 0 47842 2287 0 1\n"
    assert cpu_share.unused(files(tmp_path, {"stat": head})) is None
    assert cpu_share.unused(files(tmp_path, {"stat": head + "".join(f"cpu{n} 1 2 3 4\n" for n in range(999))})) is None
    assert cpu_share.unused(tmp_path / "nothing") is None
