"""install proves what it did: the host's own key, its words on the way, the disk that it runs from, the others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.errors import CancelledError, ClusterctlError
from clusterctl.fleet.event import Kind, Stream, node_event
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.disk_contract import DiskContract, KernelDrive
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.node import NodeIdentified, RootDiskProven
from clusterctl.ports import Deadline, HostAddress, InstallState, InstallStatus, Milestone, Ran
from clusterctl.steps.install.confirm import DRIVES_S
from tests.events import data_of
from tests.steps.fakes import FakeInstaller, FakeShell, identified
from tests.steps.install.test_install import greeting, install

NOTHING = InstallStatus(InstallState.ABSENT)
BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)
OURS, DATA = KernelDrive("/dev/sda", "DISK-SN-n1"), KernelDrive("/dev/sdb", "D1", "", "M", 9, "a" * 64)


def payloads(book: SqlJournal, kind: Kind) -> list[Any]:
    return [data_of(event) for event in book.history(Stream.NODE, "id-n1") if event.kind is kind]


def findings(
    book: SqlJournal,
    report: InstallStatus = NOTHING,
    outputs: Mapping[str, str | Ran | ClusterctlError] | None = None,
) -> dict[str, Finding]:
    """Of a machine that is installed, with these reports of its installer and host."""
    shell = FakeShell({"n1": greeting("n1")}, outputs=outputs or {})
    outcome = install(book, FakeInstaller(report=report), shell, ["n1"])["n1"]
    assert all(finding.evidence for finding in outcome.findings)
    return {finding.check: finding for finding in outcome.findings}


def disk(serial: str, name: str = "sda") -> dict[str, Any]:
    root = [{"path": "/dev/sda2", "maj:min": "8:2", "type": "part", "size": 1}] if name == "sda" else []
    minor = 16 * (ord(name[-1]) - ord("a"))
    row = {"path": f"/dev/{name}", "maj:min": f"8:{minor}", "type": "disk", "size": 9, "serial": serial}
    return row | {"children": root}


def lsblk(*devices: dict[str, Any]) -> str:
    return json.dumps({"blockdevices": devices})


def test_a_key_that_the_host_made_is_pinned_when_it_is_reported(book: SqlJournal) -> None:
    """Never a key of ours before; the host is held to its own from the first connection on."""
    installer = FakeInstaller(report=InstallStatus(InstallState.ABSENT, makes_key=True, host_key="its own"))
    shell = FakeShell({"n1": greeting("n1")})
    outcome = install(book, installer, shell, ["n1"])["n1"]
    assert outcome.findings[0].verdict is Verdict.PASS
    assert payloads(book, Kind.HOST_KEY_PINNED) == [{"public": "its own"}]
    assert set(shell.held) == {"its own"}


def test_a_key_that_is_known_last_is_in_the_journal_before_the_first_connection(book: SqlJournal) -> None:
    """The installer reports it with the end of the install: killed while the host is asked, the next run has it."""
    pinned: list[str] = []

    class Watched(FakeShell):
        def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
            pinned.append(book.state(NodeId("id-n1")).host_key)
            return super().run(host, argv, stdin, deadline)

    class Late(FakeInstaller):
        def _status(self, name: str) -> Observed[InstallStatus]:
            status = super()._status(name)
            known = "its own" if status.value.state is InstallState.INSTALLED else ""
            return replace(status, value=replace(status.value, makes_key=True, host_key=known))

    outcome = install(book, Late(), Watched({"n1": greeting("n1")}), ["n1"])["n1"]
    assert outcome.findings[0].verdict is Verdict.PASS
    assert set(pinned) == {"its own"}


def test_a_host_without_an_address_is_no_mystery(book: SqlJournal) -> None:
    """The installer calls it installed and knows no lease of it: the finding names that, and where to look."""

    class Nowhere(FakeInstaller):
        def _status(self, name: str) -> Observed[InstallStatus]:
            status = super()._status(name)
            return replace(status, value=replace(status.value, addresses=()))

    (finding,) = install(book, Nowhere(), FakeShell({"n1": greeting("n1")}), ["n1"])["n1"].findings
    assert finding.cause == "the installer names no address of the installed host"
    assert "leases" in finding.remedy


def test_a_host_with_an_unknown_key_is_not_connected_to(book: SqlJournal) -> None:
    """It makes its own and never reported it: no trust on first use."""
    shell = FakeShell({"n1": greeting("n1")})
    installer = FakeInstaller(report=InstallStatus(InstallState.ABSENT, makes_key=True))
    (finding,) = install(book, installer, shell, ["n1"])["n1"].findings
    assert (finding.verdict, shell.tries) == (Verdict.FAIL, 0)
    assert "host key never reached the installer" in finding.cause
    assert payloads(book, Kind.HOST_KEY_PINNED) == []


def test_the_progress_of_the_machine_is_written_once(book: SqlJournal) -> None:
    """Each milestone is one event however often it is reported, also by a later run; several have the same second."""
    moments = [(0, "fetched"), (30, "wrote"), (30, "key"), (30, "boot"), (31, "done"), (31, "wrote")]
    miles = tuple(Milestone(BEGAN + timedelta(seconds=at), words) for at, words in moments)
    first = FakeInstaller(report=InstallStatus(InstallState.ABSENT, milestones=miles[:3]))
    install(book, first, FakeShell({"n1": greeting("n1")}), ["n1"])
    later = FakeInstaller({"n1": InstallState.INSTALLED}, report=InstallStatus(InstallState.ABSENT, milestones=miles))
    install(book, later, FakeShell({"n1": greeting("n1")}), ["n1"])
    assert [data["message"] for data in payloads(book, Kind.INSTALL_PROGRESS)] == [words for _, words in moments]
    assert book.state(NodeId("id-n1")).progress == ("done", "wrote")


def test_the_disk_that_it_runs_from_is_proven(book: SqlJournal) -> None:
    """The host's own tools name the root disk's serial; an installer that reads no data disks reports that."""
    found = findings(book)
    assert {check: finding.verdict for check, finding in found.items()} == {
        "install": Verdict.PASS,
        "root_disk_booted": Verdict.PASS,
        "data_disks": Verdict.NOT_APPLICABLE,
    }


def test_drives_that_were_only_listed_prove_nothing(book: SqlJournal) -> None:
    """An installer that knows the drives and has read none of them (MAAS): reported, and no node is held for it."""
    listed = (OURS, KernelDrive("/dev/sdb", "D1"))
    finding = findings(book, InstallStatus(InstallState.ABSENT, drives=listed))["data_disks"]
    assert finding.verdict is Verdict.NOT_APPLICABLE


def test_another_disk_is_named(book: SqlJournal) -> None:
    """Ours by key and name, on the wrong disk: for good, with the rack."""
    finding = findings(book, outputs={"lsblk": lsblk(disk("OTHER"))})["root_disk_booted"]
    assert (finding.verdict, finding.measured, finding.deterministic) == (Verdict.FAIL, "OTHER", True)
    assert "rack A01 U4, n1" in finding.remedy


def test_a_root_on_a_subvolume_is_on_its_disk(book: SqlJournal) -> None:
    """btrfs: findmnt names the subvolume behind the device, with a device number of no disk (findmnt(8), `--nofsroot`)."""
    root = {"target": "/", "source": "/dev/sda2[/@]", "fstype": "btrfs", "options": "rw", "maj:min": "0:25"}
    outputs = {"lsblk": lsblk(disk("DISK-SN-n1")), "findmnt": json.dumps({"filesystems": [root]})}
    assert findings(book, outputs=outputs)["root_disk_booted"].verdict is Verdict.PASS


@pytest.mark.parametrize("tool", ["lsblk", "findmnt"])
def test_a_tool_that_prints_nonsense_leaves_it_unproven(book: SqlJournal, tool: str) -> None:
    """Inconclusive: asked again, never passed."""
    finding = findings(book, outputs={tool: "not JSON"})["root_disk_booted"]
    assert (finding.verdict, finding.deterministic) == (Verdict.INCONCLUSIVE, False)
    assert tool in finding.cause


def test_a_host_that_lists_no_root_leaves_it_unproven(book: SqlJournal) -> None:
    """An empty list of file systems: nothing is measured, and nothing passes."""
    finding = findings(book, outputs={"findmnt": json.dumps({"filesystems": []})})["root_disk_booted"]
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "findmnt lists no root" in finding.cause


@pytest.mark.parametrize("tool", ["lsblk", "findmnt"])
@pytest.mark.parametrize(
    ("ended", "cause"),
    [
        (Ran(None, "", "", 60.0), "did not answer within"),
        (Ran(127, "", "bash: line 1:\ncommand not found", 0.1), "exit code 127: command not found"),
        (Ran(1, "", "", 0.1), "exit code 1: no output"),
    ],
)
def test_a_tool_that_fails_leaves_it_unproven(book: SqlJournal, tool: str, ended: Ran, cause: str) -> None:
    """The cause has what the tool itself gave; a drive that hangs in the kernel keeps lsblk for ever."""
    finding = findings(book, outputs={tool: ended})["root_disk_booted"]
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert f"{tool}: " in finding.cause
    assert cause in finding.cause


@pytest.mark.parametrize(
    ("drives", "verdict"), [((OURS, DATA), Verdict.INCONCLUSIVE), (None, Verdict.NOT_APPLICABLE)], ids=["read", "not"]
)
def test_without_lsblk_drives_that_the_installer_read_are_unproven(
    book: SqlJournal, drives: tuple[KernelDrive, ...] | None, verdict: Verdict
) -> None:
    """What was not read before cannot be compared; what was read has to be."""
    found = findings(book, InstallStatus(InstallState.ABSENT, drives=drives), {"lsblk": Ran(1, "", "", 0.1)})
    assert found["data_disks"].verdict is verdict


@pytest.mark.parametrize(
    ("tool", "report"),
    [("lsblk", "read"), ("findmnt", "read"), ("sudo", "read"), ("sudo", "blanked")],
    ids=["lsblk", "findmnt", "fingerprints", "signatures"],
)
def test_an_interruption_is_no_finding_on_a_drive(book: SqlJournal, tool: str, report: str) -> None:
    """Ctrl-C while a host is asked ends the step: nothing is recorded of drives that were not read."""
    reports = {"read": InstallStatus(InstallState.ABSENT, drives=(OURS, DATA)), "blanked": BLANKED}
    unsigned = lsblk(disk("DISK-SN-n1"), disk("D1", "sdb"))
    with pytest.raises(CancelledError):
        findings(book, reports[report], {"lsblk": unsigned, tool: CancelledError("interrupted")})


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"/dev/sdb": {"fingerprint": "a" * 64}}, Verdict.PASS),
        ({"/dev/sdb": {"fingerprint": "b" * 64}}, Verdict.FAIL),
        ({"/dev/sdb": {"error": "Input/output error"}}, Verdict.INCONCLUSIVE),
        ("sudo: a password is required", Verdict.INCONCLUSIVE),
    ],
)
def test_data_disks_are_compared(book: SqlJournal, answer: object, verdict: Verdict) -> None:
    """With what the installer read before it wrote; only the root disk may differ."""
    report = InstallStatus(InstallState.ABSENT, drives=(OURS, DATA))
    outputs = {"lsblk": lsblk(disk("DISK-SN-n1"), disk("D1", "sdb")), "sudo": json.dumps(answer)}
    found = findings(book, report, outputs)
    assert (found["data_disks"].verdict, found["root_disk_booted"].verdict) == (verdict, Verdict.PASS)


def test_where_there_is_nothing_to_compare_nothing_is_read(book: SqlJournal) -> None:
    """A machine with its root disk alone needs no sudo, which a host may refuse."""
    report = InstallStatus(InstallState.ABSENT, drives=(replace(OURS, fingerprint="a" * 64),))
    outputs = {"lsblk": lsblk(disk("DISK-SN-n1")), "sudo": Ran(1, "", "a password is required", 0.1)}
    found = findings(book, report, outputs)
    assert {check: finding.verdict for check, finding in found.items()} == dict.fromkeys(found, Verdict.PASS)
    assert "data_disks" in found


def test_slow_drives_have_the_time_to_be_read(book: SqlJournal) -> None:
    """All are read within a minute of the host's own clock; we wait longer than that for what it found."""
    left: list[float] = []

    class Timed(FakeShell):
        def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
            left.extend([deadline.remaining] * (argv[0] == "sudo"))
            return super().run(host, argv, stdin, deadline)

    outputs = {"lsblk": lsblk(disk("DISK-SN-n1"), disk("D1", "sdb")), "sudo": json.dumps({"/dev/sdb": {}})}
    installer = FakeInstaller(report=InstallStatus(InstallState.ABSENT, drives=(OURS, DATA)))
    install(book, installer, Timed({"n1": greeting("n1")}, outputs=outputs), ["n1"], deadline=Deadline.after(3600))
    (seconds,) = left
    assert seconds > DRIVES_S + 10


BLANKED = InstallStatus(InstallState.ABSENT, drives=(OURS, KernelDrive("/dev/sdb", "D1", "", "M", 9)), blanks=True)
ROOT_GPT = {"pttype": "gpt"}


@pytest.mark.parametrize(
    ("host", "verdict", "cause"),
    [
        ([disk("DISK-SN-n1") | ROOT_GPT, disk("D1", "sdb")], Verdict.PASS, "blank"),
        ([disk("DISK-SN-n1") | ROOT_GPT, disk("D1", "sdb") | {"fstype": "xfs"}], Verdict.INCONCLUSIVE, "holds xfs"),
        ([disk("DISK-SN-n1") | ROOT_GPT, disk("D1", "sdb") | {"pttype": "gpt"}], Verdict.INCONCLUSIVE, "holds gpt"),
        ([disk("DISK-SN-n1") | ROOT_GPT], Verdict.INCONCLUSIVE, "no longer there"),
        ([disk("DISK-SN-n1") | ROOT_GPT, disk("D1", "sdb"), disk("D2", "sdc")], Verdict.WARN, "did not see"),
        ([disk("DISK-SN-n1"), disk("D1", "sdb")], Verdict.INCONCLUSIVE, "not even of the root disk"),
    ],
)
def test_drives_that_the_installer_blanks_must_be_blank(
    book: SqlJournal, host: list[dict[str, Any]], verdict: Verdict, cause: str
) -> None:
    """MAAS wipes each drive that it knows: what is on one afterwards was written since; none measured is no pass."""
    found = findings(book, BLANKED, {"lsblk": lsblk(*host), "sudo": lsblk(*host)})["data_disks"]
    assert (found.verdict, cause in found.cause) == (verdict, True), found
    assert found.verdict is Verdict.PASS or found.remedy


def test_signatures_that_only_root_reads_are_read_with_sudo(book: SqlJournal) -> None:
    """A host without udev lists no signature to other users."""
    plain, signed = lsblk(disk("DISK-SN-n1"), disk("D1", "sdb")), disk("D1", "sdb") | {"fstype": "xfs"}
    outputs = {"lsblk": plain, "sudo": lsblk(disk("DISK-SN-n1") | ROOT_GPT, signed)}
    assert "holds xfs" in findings(book, BLANKED, outputs)["data_disks"].cause


def test_signatures_that_root_may_not_read_either_are_no_blank_drives(book: SqlJournal) -> None:
    """Without udev and without sudo nothing is measured: the drives stay unproven, with what sudo printed."""
    unsigned = lsblk(disk("DISK-SN-n1"), disk("D1", "sdb"))
    outputs = {"lsblk": unsigned, "sudo": Ran(1, "", "a password is required", 0.1)}
    finding = findings(book, BLANKED, outputs)["data_disks"]
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "lsblk with sudo: exit code 1: a password is required" in finding.cause


def test_signatures_that_are_there_are_not_read_a_second_time(book: SqlJournal) -> None:
    """With udev each user reads them: sudo, which a host may refuse, is not needed."""
    signed = lsblk(disk("DISK-SN-n1") | ROOT_GPT, disk("D1", "sdb"))
    outputs = {"lsblk": signed, "sudo": Ran(1, "", "a password is required", 0.1)}
    assert findings(book, BLANKED, outputs)["data_disks"].verdict is Verdict.PASS


BY_HOST = RootDisk(chosen_by="host", max_bytes=600_000_000_000)


def left_to_the_host(book: SqlJournal) -> None:
    """Discover n1 again, with a SKU whose root disk the host names."""
    if not book.state(NodeId("id-n1")).name:
        identified(book, "n1", "SN-n1")
    node = book.state(NodeId("id-n1"))
    assert node.inventory is not None
    found = NodeIdentified(inventory=node.inventory, sku=node.sku, root_rule=BY_HOST)
    book.append([node_event(node.id, found)])


def test_a_root_disk_that_the_host_names_is_proven_and_kept(book: SqlJournal) -> None:
    """The installer names the drive that it wrote; the host runs from it; the journal knows it from then on."""
    left_to_the_host(book)
    assert book.state(NodeId("id-n1")).root_disk is None
    report = InstallStatus(InstallState.ABSENT, root=DiskContract("DISK-SN-n1", "", BY_HOST))
    shell = FakeShell({"n1": greeting("n1")})
    outcome = install(book, FakeInstaller(report=report), shell, ["n1"])["n1"]
    book.append(outcome.facts)
    assert {one.check: one.verdict for one in outcome.findings}["root_disk_booted"] is Verdict.PASS
    assert book.state(NodeId("id-n1")).root_disk == "DISK-SN-n1"
    left_to_the_host(book)
    assert book.state(NodeId("id-n1")).root_disk == "DISK-SN-n1"


def test_a_root_disk_that_the_installer_did_not_choose_fails(book: SqlJournal) -> None:
    """It wrote one drive, and the host runs from another."""
    left_to_the_host(book)
    report = InstallStatus(InstallState.ABSENT, root=DiskContract("WRITTEN", "", BY_HOST))
    outcome = install(book, FakeInstaller(report=report), FakeShell({"n1": greeting("n1")}), ["n1"])["n1"]
    assert {one.check: one.verdict for one in outcome.findings}["root_disk_booted"] is Verdict.FAIL
    assert not any(isinstance(fact.payload, RootDiskProven) for fact in outcome.facts)


def test_what_the_operator_has_to_decide_holds_the_node(book: SqlJournal) -> None:
    """A rule that names two drives is no failure of the machine: nothing was written, and the remedy is the rule."""
    left_to_the_host(book)
    report = InstallStatus(InstallState.FAILED, decide="write one_of: 2")
    installer = FakeInstaller({"n1": InstallState.READY}, {"n1": "the machine sees 2 drives"}, {"n1"}, report=report)
    (finding,) = install(book, installer, FakeShell({}), ["n1"])["n1"].findings
    assert (finding.verdict, finding.code) == (Verdict.INCONCLUSIVE, Code.ROOT_DISK_UNCLEAR)
    assert finding.remedy.startswith("write one_of: 2; then run clusterctl discover")
