"""The doctor's pure judgements: facts in, verdict and remedy out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from clusterctl.edges.doctor import controller, services, site_checks
from clusterctl.edges.doctor.controller import AnsibleRun, Kernel
from clusterctl.edges.doctor.services import ServiceState, UfmState, clock_offset
from clusterctl.edges.doctor.site_checks import Space
from clusterctl.edges.journal.tables import SCHEMA_VERSION
from clusterctl.fleet.bmc import certificates
from clusterctl.fleet.bmc.certificates import SeenCertificate
from clusterctl.fleet.diagnosis import Diagnosis, Health
from clusterctl.fleet.errors import UnreachableError
from clusterctl_lab.doctor import judge_kernel
from tests.steps.fakes import NOW

OK, WARN, BROKEN, NOT_MEASURED = Health.OK, Health.WARN, Health.BROKEN, Health.NOT_MEASURED
REQUIRED = [Requirement("click>=8.1"), Requirement("pydantic>=2.10"), Requirement('old>=9; python_version < "3"')]
NODES = {"10.0.0.1": "n1", "10.0.0.2": "n2", "10.0.0.3": "n3"}
GOOD = ServiceState(offset_s=0.4)
GONE = ServiceState(UnreachableError("the BMC does not answer", remedy="check its power"))
WIDE = controller.ControllerLoad(nodes=64, forks=25)


def seen(days: int, *, ago: int = 0, due: bool = False) -> SeenCertificate:
    """A certificate that expires in so many days, as read so many days ago."""
    return SeenCertificate(not_after=NOW + timedelta(days=days), seen=NOW - timedelta(days=ago), due=due)


TABLE = [
    (controller.judge_python((3, 10), REQUIRED, {}), BROKEN, "Python 3.10 is too old"),
    (controller.judge_python((3, 11), None, {}), NOT_MEASURED, "not installed as a package"),
    (controller.judge_python((3, 12), REQUIRED, {"click": "8.1.7", "pydantic": "2.11.0"}), OK, "Python 3.12"),
    (
        controller.judge_python((3, 12), REQUIRED, {"click": "8.0.1", "pydantic": "2.11.0"}),
        BROKEN,
        "click 8.0.1 (needs >=8.1)",
    ),
    (controller.judge_python((3, 12), REQUIRED, {"click": "8.1.7"}), BROKEN, "pydantic is missing"),
    (controller.judge_ansible(AnsibleRun("")), BROKEN, "not installed"),
    (controller.judge_ansible(AnsibleRun("/x/ansible-playbook", 1, "Traceback")), BROKEN, "does not start: Traceback"),
    (
        controller.judge_ansible(AnsibleRun("/x/ansible-playbook", 0, "ansible-playbook [core 2.19.1]\n…")),
        OK,
        "core 2.19.1",
    ),
    (controller.judge_tools({"ssh": "/usr/bin/ssh"}), OK, "ssh"),
    (controller.judge_tools({"ssh": "/usr/bin/ssh", "ibnetdiscover": None}), BROKEN, "not found: ibnetdiscover"),
    (controller.judge_tools({"our-reader": None}), BROKEN, "not found: our-reader"),
    (controller.judge_kernel(Kernel("Linux", "6.1.0", subreaper=True, proc=True)), OK, "Linux 6.1.0"),
    (controller.judge_kernel(Kernel("Darwin", "24.0", subreaper=False, proc=False)), BROKEN, "this is Darwin"),
    (controller.judge_kernel(Kernel("Linux", "3.2", subreaper=False, proc=True)), BROKEN, "cannot adopt"),
    (controller.judge_kernel(Kernel("Linux", "6.1", subreaper=True, proc=False)), BROKEN, "/proc is not mounted"),
    (controller.judge_open_files(1024, WIDE), OK, "1024 files"),
    (controller.judge_open_files(256, WIDE), WARN, "about 512"),
    (controller.judge_open_files(controller.UNLIMITED, WIDE), OK, "any number"),
    (controller.judge_memory(4096, WIDE), OK, "4096 MiB"),
    (controller.judge_memory(700, WIDE), WARN, "700 MiB"),
    (controller.judge_memory(None, WIDE), NOT_MEASURED, "meminfo"),
    (site_checks.judge_disk(Space("/s", 50_000, 10**6, writable=True), 511), OK, "50000 MiB free"),
    (site_checks.judge_disk(Space("/s", 1_000, 10**6, writable=True), 511), WARN, "about 2244"),
    (site_checks.judge_disk(Space("/s", 100, 10**6, writable=True), 1), BROKEN, "only 100 MiB"),
    (site_checks.judge_disk(Space("/s", 50_000, 10, writable=True), 1), BROKEN, "only 10 inodes"),
    (site_checks.judge_disk(Space("/s", 50_000, None, writable=False), 1), BROKEN, "not writable"),
    (controller.judge_umask(0o022), OK, "0022"),
    (controller.judge_umask(0o000), WARN, "other users may write"),
    (controller.judge_umask(None), NOT_MEASURED, "does not report"),
    (site_checks.judge_journal("j", None), OK, "is empty"),
    (site_checks.judge_journal("j", SCHEMA_VERSION), OK, f"version {SCHEMA_VERSION}"),
    (site_checks.judge_journal("j", "0000"), OK, "upgrades it from version 0000"),
    (site_checks.judge_journal("j", "0005", running=["worker w1 (pid 7 on a)"]), WARN, "worker w1 (pid 7 on a) works"),
    (site_checks.judge_journal("j", "9999"), BROKEN, "has version 9999"),
    (site_checks.judge_control_path((Path("/s/state/ansible"), Path("/tmp/c"))), OK, "/s/state/ansible"),
    (site_checks.judge_control_path((Path("/s" * 60), Path("/tmp/c"))), OK, "/tmp/c"),
    (site_checks.judge_control_path((Path("/s" * 60), Path("/t" * 60))), BROKEN, "is longer than"),
    (site_checks.judge_dns({}), OK, "by their addresses"),
    (site_checks.judge_dns({"maas": "10.0.0.9"}), OK, "maas is 10.0.0.9"),
    (site_checks.judge_dns({"maas": "", "db": "10.0.0.8"}), BROKEN, "does not resolve: maas"),
    (certificates.diagnose({}, [], NOW, 60), OK, "the site has no BMC"),
    (certificates.diagnose({}, ["n1"], NOW, 60), NOT_MEASURED, "1 of 1 were not read"),
    (
        certificates.diagnose({"n1": seen(300), "n2": seen(400)}, ["n1", "n2"], NOW, 60),
        OK,
        "the first expires on 2026-",
    ),
    (certificates.diagnose({"n1": seen(300)}, ["n1", "n2"], NOW, 60), NOT_MEASURED, "1 of 2 were not read"),
    (certificates.diagnose({"n1": seen(300, ago=9)}, ["n1"], NOW, 60), NOT_MEASURED, "for 8 days: n1"),
    (certificates.diagnose({"n1": seen(300, due=True)}, ["n1", "n2"], NOW, 60), WARN, "to be renewed: n1, the first"),
    (certificates.diagnose({"n1": seen(59)}, ["n1"], NOW, 60), WARN, "to be renewed: n1"),
    (certificates.diagnose({"n1": seen(-2)}, ["n1"], NOW, 60), WARN, "to be renewed: n1"),
    (certificates.diagnose({"gone": seen(-2), "n1": seen(300)}, ["n1"], NOW, 60), OK, "none is due"),
    (site_checks.judge_gpu_perftest((), ""), OK, "no pair"),
    (site_checks.judge_gpu_perftest(("h100",), ""), WARN, "no role brings a perftest with CUDA"),
    (site_checks.judge_gpu_perftest(("h100",), "inbox"), WARN, "will be INCONCLUSIVE"),
    (site_checks.judge_gpu_perftest(("h100",), "doca"), OK, "comes with doca"),
    (services.judge_maas("https://m", ServiceState(user="ops")), OK, "accepts our key, of user ops"),
    (services.judge_maas("https://m", GONE), BROKEN, "does not answer"),
    (services.judge_ufm("", UfmState()), OK, "the site has none"),
    (services.judge_ufm("https://u", UfmState(None, "6.18", 3, 1)), OK, "UFM 6.18, with 3 systems and 1 unhealthy"),
    (services.judge_ufm("https://u", UfmState(None, "6.18")), BROKEN, "its model of the fabric is empty"),
    (services.judge_ufm("https://u", UfmState(None, "6.18", 3, 1, "/l")), WARN, "/l cannot be read"),
    (services.judge_ufm("https://u", UfmState(UnreachableError("does not answer"))), BROKEN, "does not answer"),
    (services.judge_bmcs(NODES, dict.fromkeys(NODES, GOOD)), OK, "all 3 answer"),
    (services.judge_bmcs(NODES, {**dict.fromkeys(NODES, GOOD), "10.0.0.2": GONE}), WARN, "1 of 3 fail; n2 (10.0.0.2)"),
    (services.judge_bmcs(NODES, dict.fromkeys(NODES, GONE)), BROKEN, "3 of 3 fail; n1 (10.0.0.1), n2"),
    (services.judge_bmcs(NODES, {}), NOT_MEASURED, "none of 3"),
    (services.judge_bmcs(NODES, {"10.0.0.1": GOOD}), NOT_MEASURED, "1 answer, 2 could not be asked"),
    (services.judge_bmcs(NODES, dict.fromkeys(NODES, ServiceState(new=True))), OK, "3 to be pinned on first use"),
    (services.judge_clock(0.3, {"n1": 1.0}, synchronised=True), OK, "within 1 s of 1 BMCs and MAAS"),
    (services.judge_clock(0.3, {}, synchronised=False), OK, "no time service synchronises it"),
    (services.judge_clock(-300.0, {"n1": 1.0}, synchronised=True), BROKEN, "differs by -300 s"),
    (services.judge_clock(None, {"n1": 7200.0, "n2": 7201.0, "n3": 0.0}, synchronised=None), WARN, "median of 3"),
    (
        services.judge_clock(None, {"n1": 7200.0, "n2": 1.0, "n3": 0.0}, synchronised=None),
        WARN,
        "1 BMCs' clocks are more than 60 s off: n1",
    ),
    (services.judge_clock(None, {}, synchronised=None), NOT_MEASURED, "is unknown"),
    (services.judge_clock(None, {}, synchronised=False), NOT_MEASURED, "no time service"),
    (services.judge_clock(None, {}, synchronised=True), OK, "a time service synchronises it"),
    (judge_kernel("6.1.0-18-amd64", []), OK, "overlayfs"),
    (judge_kernel("5.10.0", []), BROKEN, "no cgroup.kill"),
    (judge_kernel("6.1.0", ["bridges"]), BROKEN, "does not allow bridges"),
]


@pytest.mark.parametrize(("diagnosis", "health", "words"), TABLE)
def test_verdict(diagnosis: Diagnosis, health: Health, words: str) -> None:
    """What was read leads to this verdict and this message; what is wrong has a remedy."""
    assert diagnosis.health is health
    assert words in diagnosis.found
    assert diagnosis.remedy or health in (OK, NOT_MEASURED)


def test_the_distance_of_a_clock() -> None:
    """HTTP's Date is in GMT; what cannot be parsed is no offset."""
    stamp = NOW.replace(microsecond=0)
    assert clock_offset(stamp.strftime("%a, %d %b %Y %H:%M:%S GMT"), stamp) == 0
    assert clock_offset(None, NOW) is None
    assert clock_offset("yesterday", NOW) is None
