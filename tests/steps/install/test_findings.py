"""The remedies of an install: the right place, the right part, and whether a retry may help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, ParseError
from clusterctl.fleet.finding import Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Drive, NodeId, Serial
from clusterctl.ports import BmcAddress, FailureKind, InstallState, InstallStatus, InstallTarget, Power
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import BmcState
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.install import findings
from clusterctl.steps.install.job import InstallJob
from tests.steps.fakes import identified, inventory, seen

NOT_SEEN = BmcState("the BMC reports nothing")
PLACE = "rack A01 U4"


@pytest.fixture
def job(book: SqlJournal) -> InstallJob:
    """One machine whose install has failed; the installer gives no kind and no remedy."""
    identified(book, "n1", "SN-n1")
    node = book.state(NodeId("id-n1"))
    target = InstallTarget(
        "n1", Serial("SN-n1"), (), BmcAddress("192.0.2.1", "", ""), Serial("DISK-SN-n1"), "", "ops", ""
    )
    found = InstallJob(node, target, IntentLog(book, {}))
    found.last = Observed(InstallStatus(InstallState.FAILED, addresses=("192.0.2.9",)), seen("failed"))
    return found


def with_failure(job: InstallJob, failure: FailureKind | None) -> InstallJob:
    job.last = replace(job.status, value=replace(job.status.value, failure=failure))
    return job


@pytest.mark.parametrize(
    ("failure", "power", "begins"),
    [
        (FailureKind.POWER, Power.OFF, f"BMC at 192.0.2.1 ({PLACE}) answers clusterctl, and not the installer"),
        (FailureKind.MACHINE, Power.OFF, f"power n1 on at {PLACE}; if it stays off, check its PSUs"),
        (FailureKind.MACHINE, Power.ON, f"attach a console to n1 ({PLACE}) and power-cycle it"),
        (None, Power.UNKNOWN, f"attach a console to n1 ({PLACE}) and power-cycle it"),
    ],
)
def test_where_to_look_first(job: InstallJob, failure: FailureKind | None, power: Power, begins: str) -> None:
    """At the installer's way to the BMC where power failed, at the PSUs of a machine that is off, else at its console."""
    outcome = findings.failed(with_failure(job, failure), "it failed", replace(NOT_SEEN, power=power))
    assert outcome.findings[0].remedy.startswith(begins)


def test_another_os_names_the_disk_that_must_boot(job: InstallJob) -> None:
    """By its slot, among several; by its serial alone where no BMC reports the drives."""
    drives = (Drive("7", "NVMe", 9, Serial("DATA")), Drive("0", "M.2", 9, Serial("DISK-SN-n1")))
    job.node = replace(job.node, inventory=replace(inventory("SN-n1"), drives=drives))
    assert "set disk 0 (serial DISK-SN-n1) first" in findings.another_os(job).findings[0].remedy
    job.node = replace(job.node, inventory=None)
    assert "set disk DISK-SN-n1 first" in findings.another_os(job).findings[0].remedy


def test_a_refused_login_is_the_machines_finding_at_this_step(job: InstallJob) -> None:
    """It counts as the install's, with the machine's serial and the installer's own reason."""
    bmc = replace(NOT_SEEN, error=AuthenticationError("401"))
    (finding,) = findings.login_refused(job, "power error", bmc).findings
    assert (finding.check, finding.serial, finding.cause) == ("install", "SN-n1", "power error; 401")


@pytest.mark.parametrize(
    ("hostname", "code", "verdict"),
    [("n1", Code.PASSED, Verdict.PASS), ("n9", Code.WRONG_HOST_NAME, Verdict.FAIL)],
)
def test_the_name_of_the_host_decides(job: InstallJob, hostname: str, code: Code, verdict: Verdict) -> None:
    """The code is what documents and tickets go by."""
    (finding,) = findings.installed(job, "192.0.2.9", f"0b00-7\n{hostname}\n", ()).findings
    assert (finding.code, finding.verdict) == (code, verdict)


@pytest.mark.parametrize(
    ("outcome", "given", "own"),
    [
        (findings.unreadable, ParseError("half a line", remedy="look at it"), "read the evidence, then run clusterctl"),
        (findings.untrusted, EdgeError("no answer", remedy="look at it"), "attach a console to it"),
    ],
)
def test_the_remedy_of_an_error_counts(
    job: InstallJob, outcome: Callable[[InstallJob, ClusterctlError], StepOutcome], given: ClusterctlError, own: str
) -> None:
    """Where it brings none, the step has one of its own; a retry may help in both, and the evidence is named."""
    for error, begins in ((given, "look at it"), (type(given)(given.message), own)):
        (finding,) = outcome(job, error).findings
        assert finding.remedy.startswith(begins)
        assert not finding.deterministic
        assert finding.evidence


def test_an_installer_that_cannot_be_used_may_be_tried_again(job: InstallJob) -> None:
    """Nothing is known against the machine, so nothing is certain."""
    (finding,) = findings.installer_unavailable(job, "it is away", "start it").findings
    assert (finding.subject, finding.deterministic) == ("installer", False)
