"""The doctor's judgements, without a machine: what was seen in, verdict and remedy out."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from clusterctl.edges.doctor import (
    ansible,
    bmcs,
    clock,
    disk,
    interpreter,
    journal,
    kernel,
    maas,
    names,
    paths,
    secrets,
    tools,
)
from clusterctl.edges.doctor import resources as needs
from clusterctl.edges.doctor.patient import Answer, offset
from clusterctl.edges.journal.tables import SCHEMA_VERSION
from clusterctl.fleet.diagnosis import Diagnosis, Health
from clusterctl.fleet.errors import UnreachableError
from clusterctl_lab.doctor import judge_kernel
from tests.steps.fakes import NOW

OK, WARN, BROKEN, NOT_MEASURED = Health.OK, Health.WARN, Health.BROKEN, Health.NOT_MEASURED
WANTED = [Requirement("click>=8.1"), Requirement("pydantic>=2.10"), Requirement('old>=9; python_version < "3"')]
NODES = {"10.0.0.1": "n1", "10.0.0.2": "n2", "10.0.0.3": "n3"}
GOOD = Answer(offset_s=0.4)
GONE = Answer(UnreachableError("the BMC does not answer", remedy="check its power"))
WIDE = needs.Need(nodes=64, forks=25)

TABLE = [
    (interpreter.judge((3, 10), WANTED, {}), BROKEN, "Python 3.10 is too old"),
    (interpreter.judge((3, 11), None, {}), NOT_MEASURED, "not installed as a package"),
    (interpreter.judge((3, 12), WANTED, {"click": "8.1.7", "pydantic": "2.11.0"}), OK, "Python 3.12"),
    (interpreter.judge((3, 12), WANTED, {"click": "8.0.1", "pydantic": "2.11.0"}), BROKEN, "click 8.0.1 (needs >=8.1)"),
    (interpreter.judge((3, 12), WANTED, {"click": "8.1.7"}), BROKEN, "pydantic is missing"),
    (ansible.judge(ansible.Seen("")), BROKEN, "not installed"),
    (ansible.judge(ansible.Seen("/x/ansible-playbook", 1, "Traceback")), BROKEN, "does not start: Traceback"),
    (ansible.judge(ansible.Seen("/x/ansible-playbook", 0, "ansible-playbook [core 2.19.1]\n…")), OK, "core 2.19.1"),
    (tools.judge({"ssh": "/usr/bin/ssh"}), OK, "ssh"),
    (tools.judge({"ssh": "/usr/bin/ssh", "ibnetdiscover": None}), BROKEN, "not found: ibnetdiscover"),
    (tools.judge({"our-reader": None}), BROKEN, "not found: our-reader"),
    (kernel.judge(kernel.Seen("Linux", "6.1.0", subreaper=True, proc=True)), OK, "Linux 6.1.0"),
    (kernel.judge(kernel.Seen("Darwin", "24.0", subreaper=False, proc=False)), BROKEN, "this is Darwin"),
    (kernel.judge(kernel.Seen("Linux", "3.2", subreaper=False, proc=True)), BROKEN, "cannot adopt"),
    (kernel.judge(kernel.Seen("Linux", "6.1", subreaper=True, proc=False)), BROKEN, "/proc is not mounted"),
    (needs.judge_files(1024, WIDE), OK, "1024 files"),
    (needs.judge_files(256, WIDE), WARN, "about 512"),
    (needs.judge_files(needs.UNLIMITED, WIDE), OK, "any number"),
    (needs.judge_memory(4096, WIDE), OK, "4096 MiB"),
    (needs.judge_memory(700, WIDE), WARN, "700 MiB"),
    (needs.judge_memory(None, WIDE), NOT_MEASURED, "meminfo"),
    (disk.judge(disk.Seen("/s", 50_000, 10**6, writable=True), 511), OK, "50000 MiB free"),
    (disk.judge(disk.Seen("/s", 1_000, 10**6, writable=True), 511), WARN, "about 2244"),
    (disk.judge(disk.Seen("/s", 100, 10**6, writable=True), 1), BROKEN, "only 100 MiB"),
    (disk.judge(disk.Seen("/s", 50_000, 10, writable=True), 1), BROKEN, "only 10 inodes"),
    (disk.judge(disk.Seen("/s", 50_000, None, writable=False), 1), BROKEN, "not writable"),
    (secrets.judge_umask(0o022), OK, "0022"),
    (secrets.judge_umask(0o000), WARN, "others may write"),
    (secrets.judge_umask(None), NOT_MEASURED, "does not tell"),
    (journal.judge("j", None), OK, "is empty"),
    (journal.judge("j", SCHEMA_VERSION), OK, f"version {SCHEMA_VERSION}"),
    (journal.judge("j", "0000"), OK, "brings it from version 0000"),
    (journal.judge("j", "9999"), BROKEN, "has version 9999"),
    (paths.judge((Path("/s/state/ansible"), Path("/tmp/c"))), OK, "/s/state/ansible"),
    (paths.judge((Path("/s" * 60), Path("/tmp/c"))), OK, "/tmp/c"),
    (paths.judge((Path("/s" * 60), Path("/t" * 60))), BROKEN, "is longer than"),
    (names.judge({}), OK, "by their addresses"),
    (names.judge({"maas": "10.0.0.9"}), OK, "maas is 10.0.0.9"),
    (names.judge({"maas": "", "db": "10.0.0.8"}), BROKEN, "does not resolve: maas"),
    (maas.judge("https://m", Answer(note="ops")), OK, "knows us as ops"),
    (maas.judge("https://m", GONE), BROKEN, "does not answer"),
    (bmcs.judge(NODES, dict.fromkeys(NODES, GOOD)), OK, "all 3 answer"),
    (bmcs.judge(NODES, {**dict.fromkeys(NODES, GOOD), "10.0.0.2": GONE}), WARN, "1 of 3 fail; n2 (10.0.0.2)"),
    (bmcs.judge(NODES, dict.fromkeys(NODES, GONE)), BROKEN, "3 of 3 fail; n1 (10.0.0.1), n2"),
    (bmcs.judge(NODES, {}), NOT_MEASURED, "none of 3"),
    (bmcs.judge(NODES, {"10.0.0.1": GOOD}), NOT_MEASURED, "1 answer, 2 could not be asked"),
    (bmcs.judge(NODES, dict.fromkeys(NODES, Answer(note="not pinned yet"))), OK, "3 to be believed on first use"),
    (clock.judge(0.3, {"n1": 1.0}, kept=True), OK, "within 1 s of 1 BMCs and MAAS"),
    (clock.judge(0.3, {}, kept=False), OK, "no time service keeps it"),
    (clock.judge(-300.0, {"n1": 1.0}, kept=True), BROKEN, "differs by -300 s"),
    (clock.judge(None, {"n1": 7200.0, "n2": 7201.0, "n3": 0.0}, kept=None), WARN, "median of 3"),
    (
        clock.judge(None, {"n1": 7200.0, "n2": 1.0, "n3": 0.0}, kept=None),
        WARN,
        "1 BMCs' clocks are more than 60 s off: n1",
    ),
    (clock.judge(None, {}, kept=None), NOT_MEASURED, "nothing tells"),
    (clock.judge(None, {}, kept=False), NOT_MEASURED, "no time service"),
    (clock.judge(None, {}, kept=True), OK, "a time service keeps it"),
    (judge_kernel("6.1.0-18-amd64", []), OK, "overlayfs"),
    (judge_kernel("5.10.0", []), BROKEN, "no cgroup.kill"),
    (judge_kernel("6.1.0", ["bridges"]), BROKEN, "does not allow bridges"),
]


@pytest.mark.parametrize(("diagnosis", "health", "words"), TABLE)
def test_verdict(diagnosis: Diagnosis, health: Health, words: str) -> None:
    """What was seen leads to this verdict, is said, and what is wrong has a remedy."""
    assert diagnosis.health is health
    assert words in diagnosis.found
    assert diagnosis.remedy or health in (OK, NOT_MEASURED)


def test_the_distance_of_a_clock() -> None:
    """HTTP's Date is told in GMT; what cannot be read tells nothing."""
    stamp = NOW.replace(microsecond=0)
    assert offset(stamp.strftime("%a, %d %b %Y %H:%M:%S GMT"), stamp) == 0
    assert offset(None, NOW) is None
    assert offset("yesterday", NOW) is None
