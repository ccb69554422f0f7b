"""install for machines that others installed: the host is proven to be the machine, and nothing is written on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.errors import ClusterctlError, ParseError, UnreachableError, UntrustedError
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.payloads.node import RootDiskProven
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Ran
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.executor.step_queue import StepLimits, StepQueue
from clusterctl.steps.install.adopt import Adopt, AdoptServices, InstallOrAdopt
from tests.steps.fakes import disks, identified, inventory, seen

FIRMWARE = ("dmidecode", "sudo dmidecode")
KERNEL = ("cat product_serial", "sudo cat product_serial")


@dataclass
class Host:
    """A host named n1 on machine SN-n1. `printed`: what its tools print instead, an error is raised; `ran`: all commands."""

    printed: dict[str, str | Ran | ClusterctlError] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        sudo = "sudo " if argv[0] == "sudo" else ""
        words = [word for word in argv if word not in ("sudo", "-n")]
        file = words[-1].rpartition("/")[2]
        tool = f"{sudo}{words[0]} {file}" if file == "product_serial" else f"{sudo}{words[0]}"
        self.ran.append(tool)
        usual = {"cat": "0b00-7\nn1\n", **dict.fromkeys((*FIRMWARE, *KERNEL), "SN-n1\n"), **disks("DISK-SN-n1")}
        answer = {**usual, **self.printed}[tool]
        if isinstance(answer, ClusterctlError):
            raise answer
        return Observed(answer if isinstance(answer, Ran) else Ran(0, answer, "", 0.1), seen(tool))


@dataclass
class Adopted:
    """The node n1, adopted: discovered, at an address, with a confirmed host key."""

    book: SqlJournal
    user: str = "ops"
    node: NodeState = field(init=False)

    def __post_init__(self) -> None:
        identified(self.book, "n1", "SN-n1")
        state = self.book.state(NodeId("id-n1"))
        self.node = replace(state, adopted=True, address="192.0.2.9", host_key="ssh-ed25519 AAAA")

    def outcome(self, host: Host, **changes: object) -> StepOutcome:
        node = replace(self.node, **changes)  # type: ignore[arg-type]
        step = Adopt(AdoptServices(host, SshAccess(self.user, "/key")))
        (outcome,) = step.run([node], IntentLog(self.book, {}), Deadline.after(60))
        return outcome

    def finding(self, host: Host, **changes: object) -> Finding:
        return self.outcome(host, **changes).findings[0]


@pytest.fixture
def adopted(book: SqlJournal) -> Adopted:
    return Adopted(book)


def test_the_right_machine_is_proven_by_reading_alone(adopted: Adopted) -> None:
    """Serial, name and root disk, all of them known before; the data drives count as untouched."""
    host = Host()
    outcome = adopted.outcome(host)
    assert {one.check: one.verdict for one in outcome.findings} == {
        "install": Verdict.PASS,
        "root_disk_booted": Verdict.PASS,
        "data_disks": Verdict.NOT_APPLICABLE,
    }
    assert host.ran == ["cat", "sudo dmidecode", "lsblk", "findmnt"]
    assert outcome.facts == ()


def test_a_login_as_root_needs_no_sudo(adopted: Adopted) -> None:
    """A minimal host has no sudo."""
    adopted.user = "root"
    host = Host(dict.fromkeys(("sudo dmidecode", "sudo cat product_serial"), Ran(127, "", "not found", 0.1)))
    assert adopted.finding(host).verdict is Verdict.PASS


@pytest.mark.parametrize("lacking", [{"adopted": False}, {"host_key": ""}, {"address": ""}])
def test_a_host_that_no_operator_confirmed_is_not_asked(adopted: Adopted, lacking: dict[str, object]) -> None:
    """Without adoption, key or address no connection is made: the remedy is to adopt it."""
    host = Host()
    finding = adopted.finding(host, **lacking)
    assert (finding.verdict, finding.code) == (Verdict.INCONCLUSIVE, Code.HOST_UNKNOWN)
    assert finding.remedy == "run clusterctl adopt n1"
    assert host.ran == []


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ({"sudo dmidecode": "SN-other\n"}, Code.WRONG_SERIAL),
        ({"cat": "0b00-7\nn9\n"}, Code.WRONG_HOST_NAME),
    ],
)
def test_the_drives_of_another_host_are_not_read(adopted: Adopted, printed: dict[str, str], code: Code) -> None:
    """Another machine, or another host's name: that is the finding, and nothing of its disks is kept for the node."""
    host = Host({**printed})
    outcome = adopted.outcome(host)
    assert [(one.verdict, one.code) for one in outcome.findings] == [(Verdict.FAIL, code)]
    assert outcome.facts == ()
    assert "lsblk" not in host.ran


@pytest.mark.parametrize(
    ("serial", "aliases", "verdict"),
    [
        ("sn-N1", (), Verdict.PASS),
        ("CHASSIS-7", ("CHASSIS-7",), Verdict.PASS),
        ("CHASSIS-7", ("",), Verdict.FAIL),
    ],
)
def test_a_serial_is_known_in_any_letter_case_and_by_its_aliases(
    adopted: Adopted, serial: str, aliases: tuple[str, ...], verdict: Verdict
) -> None:
    """Firmware may write it otherwise, and a chassis may have another one than its board."""
    known = replace(inventory("SN-n1"), aliases=tuple(map(Serial, aliases)))
    assert adopted.finding(Host({"sudo dmidecode": f"{serial}\n"}), inventory=known).verdict is verdict


FILLERS = (
    *("None", "N/A", "Not Specified", "Not Applicable", "Default string", "System Serial Number", "empty"),
    *("To Be Filled By O.E.M.", "0123456789", "123456789", "0"),
)
"""As firmware of boards prints them whose serial was never set."""


@pytest.mark.parametrize("unset", [*FILLERS, "", "# SMBIOS implementations newer than 3.2\nNone"])
def test_a_serial_that_firmware_never_got_is_asked_of_the_kernel(adopted: Adopted, unset: str) -> None:
    """A tool prints a filler, nothing, or comments of its own: the kernel's file counts then."""
    host = Host({"sudo dmidecode": f"{unset}\n"})
    assert adopted.finding(host).verdict is Verdict.PASS
    assert host.ran[:3] == ["cat", "sudo dmidecode", "sudo cat product_serial"]


def test_comments_of_dmidecode_are_no_serial(adopted: Adopted) -> None:
    """It warns of an SMBIOS version that it does not know, also after the value."""
    printed = "# SMBIOS implementations newer than version 3.2.0 are not\nSN-n1\n# fully supported\n"
    assert adopted.finding(Host({"sudo dmidecode": printed})).verdict is Verdict.PASS


def test_a_tool_that_fails_reports_no_serial(adopted: Adopted) -> None:
    """What it printed before it failed does not count; the cause is the first tool's last line, clipped."""
    refusal = Ran(1, "SN-n1\n", f"sudo: a password is required {'x' * 300}", 0.1)
    kernel = Ran(1, "SN-n1\n", "cat: Permission denied", 0.1)
    finding = adopted.finding(Host({"sudo dmidecode": refusal, "sudo cat product_serial": kernel}))
    assert (finding.verdict, finding.code) == (Verdict.INCONCLUSIVE, Code.NOT_MEASURED)
    assert "(sudo: a password is required x" in finding.cause
    assert len(finding.cause) < 300
    assert finding.remedy.startswith("let ops run sudo without a password there")


@pytest.mark.parametrize(
    ("error", "verdict", "code", "certain", "remedy"),
    [
        (UntrustedError("another key"), Verdict.FAIL, Code.HOST_NOT_TRUSTED, True, "find out which machine has this"),
        (UnreachableError("no route"), Verdict.FAIL, Code.SSH_UNKNOWN, False, "see that n1 is up and its sshd answers"),
        (UnreachableError("no route", remedy="start sshd"), Verdict.FAIL, Code.SSH_UNKNOWN, False, "start sshd"),
        (Ran(None, "", "", 30.0), Verdict.FAIL, Code.SSH_UNKNOWN, False, "see that n1 is up and its sshd answers"),
        (ParseError("half a line", remedy="look"), Verdict.INCONCLUSIVE, Code.NOT_MEASURED, False, "look"),
    ],
)
def test_why_a_host_is_not_proven(
    adopted: Adopted, error: ClusterctlError | Ran, verdict: Verdict, code: Code, certain: bool, remedy: str
) -> None:
    """Another key is certain and needs the operator; silence may pass; what cannot be understood is unmeasured."""
    finding = adopted.finding(Host({"cat": error}))
    assert (finding.verdict, finding.code, finding.deterministic) == (verdict, code, certain)
    assert finding.remedy.startswith(remedy)


def test_another_root_disk_than_the_skus_is_a_warning_and_kept(adopted: Adopted) -> None:
    """Another installer chose it: nothing is to be repaired, and the journal has the disk that the host runs from."""
    outcome = adopted.outcome(Host({**disks("OTHER")}))
    root = outcome.findings[1]
    assert (root.verdict, root.measured) == (Verdict.WARN, "OTHER")
    assert root.remedy.startswith("none needed")
    assert [fact.payload for fact in outcome.facts] == [RootDiskProven(disk=Serial("OTHER"))]


def test_a_root_disk_that_cannot_be_read_stays_unproven(adopted: Adopted) -> None:
    """Without lsblk: inconclusive, and no disk is kept; nor is one without a serial."""
    outcome = adopted.outcome(Host({"lsblk": Ran(1, "", "no such device", 0.1)}))
    assert outcome.findings[1].verdict is Verdict.INCONCLUSIVE
    assert outcome.facts == ()
    without = adopted.outcome(Host({**disks("")}))
    assert without.facts == ()


def test_where_a_rule_chooses_the_disk_that_fits_is_kept(adopted: Adopted) -> None:
    """A drive of an earlier reading is no contract, for it may have been replaced; the journal has the new one."""
    rule = RootDisk(chosen_by="host", max_bytes=600_000_000_000)
    outcome = adopted.outcome(Host({**disks("NEW")}), root_rule=rule)
    assert outcome.findings[1].verdict is Verdict.PASS
    assert [fact.payload for fact in outcome.facts] == [RootDiskProven(disk=Serial("NEW"))]


def test_each_node_is_asked_as_soon_as_it_comes(book: SqlJournal) -> None:
    """One host answers for itself: it waits for no other node, whatever runs and whatever may come."""
    queue = StepQueue(Adopt(AdoptServices(Host(), SshAccess("ops", "/key"))), StepLimits(8, 30.0), clock=lambda: 0.0)
    for name in ("n1", "n2"):
        identified(book, name, f"SN-{name}")
        state = book.state(NodeId(f"id-{name}"))
        queue.put(state)
        assert queue.take(quiet=False) == [state]


@dataclass
class Way:
    """One of the two ways; keeps what it was given."""

    taken: list[list[str]] = field(default_factory=list)
    step = Adopt.step
    minimum = 1
    linger_s = 0.0
    at_once = 1

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        self.taken.append([node.name for node in nodes])
        yield from (StepOutcome(node.id, ()) for node in nodes)


@pytest.mark.parametrize(
    ("names", "installed", "proven"),
    [(["a1", "n1"], [["n1"]], [["a1"]]), (["n1", "n2"], [["n1", "n2"]], []), (["a1"], [], [["a1"]])],
)
def test_each_node_goes_its_own_way(
    book: SqlJournal, names: list[str], installed: list[list[str]], proven: list[list[str]]
) -> None:
    """Of one batch, adopted nodes are never given to an installer; a way without nodes is not begun."""
    for name in names:
        identified(book, name, f"SN-{name}")
    nodes = [book.state(NodeId(f"id-{name}")) for name in names]
    install, adopt = Way(), Way()
    step = InstallOrAdopt(install, adopt, lambda node: node.name.startswith("a"))
    outcomes = list(step.run(nodes, IntentLog(book, {}), Deadline.after(60)))
    assert (install.taken, adopt.taken) == (installed, proven)
    assert {outcome.node for outcome in outcomes} == {node.id for node in nodes}
