"""A task that fails because a part is broken: the part is the cause, and the task's failure follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Gpu, Serial
from clusterctl.ports import Deadline, HostAddress
from clusterctl.steps.burnin.node_under_test import SkuLimits
from clusterctl.steps.configure.hardware import HardwareProbe
from clusterctl.steps.configure.step import Configure, ConfigureServices
from clusterctl.steps.executor.reachability import BmcProbe, SshAccess
from tests.burnin.kit import LIMITS, SKU, healthy_text
from tests.steps.burnin.test_burnin import Hosts
from tests.steps.configure.test_configure import NODE, FakePlaybooks, NoActs
from tests.steps.fakes import FakeBmc, FakeBmcs, FixedClock, address_of, inventory

XID_79 = "kern  :warn  : [Fri Jan  2 03:04:05 2026] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n"
GONE = healthy_text("lspci").replace(
    "0000:1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)",
    "0000:1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev ff)",
)
APT = "E: Sub-process /usr/bin/dpkg returned an error code (1): nvidia-driver-570"


@dataclass
class Machine(Hosts):
    """A host on which the NVIDIA driver is not installed; `texts` by the first word of a command."""

    texts: dict[str, str] = field(default_factory=dict)

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        known = {"lspci": healthy_text("lspci"), "dmesg": healthy_text("dmesg"), **self.texts}
        text = known.get(argv[0])
        status, rc = ("missing", None) if text is None else ("ok", 0)
        head = {"argv": argv, "status": status, "rc": rc, "stdout": text or "", "stderr": ""}
        return {**head, "started": 0.0, "seconds": 1.0}


def configured(machine: Machine, log: tuple[LogEntry, ...] = ()) -> tuple[Finding, ...]:
    reported = replace(inventory("S1"), gpus=(Gpu("GPU_3", "H100", Serial("165000010003")),))
    bmcs = BmcProbe(FakeBmcs({"n1": FakeBmc(reported, log=log)}), address_of)
    hardware = HardwareProbe(machine, FixedClock(), bmcs, {"two": SkuLimits(SKU, LIMITS)})
    services = ConfigureServices(FakePlaybooks(ok=False, message=APT), SshAccess("ops", "/key"), bmcs, hardware)
    node = replace(NODE, serial=Serial("S1"), sku="two", inventory=reported)
    step = Configure(services, "configure.yml", lambda _hosts: {})
    (outcome,) = step.run([node], NoActs(), Deadline.after(60))  # type: ignore[arg-type]
    assert {digest for finding in outcome.findings for digest in finding.evidence} <= {
        e.digest for e in outcome.evidence
    }
    return outcome.findings


def task_of(findings: tuple[Finding, ...]) -> Finding:
    return next(finding for finding in findings if finding.check == "configure")


def test_a_gpu_that_no_longer_answers_explains_a_failed_driver_package() -> None:
    """Lspci reads only ones of it: the GPU is the root, the package's failure follows."""
    findings = configured(Machine(texts={"lspci": GONE}))
    (root,) = [finding for finding in findings if not finding.root]
    assert (root.verdict, root.code, root.subject) == (Verdict.FAIL, Code.GPU_OFF_THE_BUS, "gpu 0000:1b:00.0")
    assert (task_of(findings).code, task_of(findings).root) == (Code.TASK_FAILED, root.key)


def test_an_absent_gpu_is_counted() -> None:
    """One of two is on the bus."""
    devices = healthy_text("lspci").split("\n\n")
    without = "\n\n".join(device for device in devices if "0000:43:00.0" not in device.split(" ", 1)[0])
    findings = configured(Machine(texts={"lspci": without}))
    (root,) = [finding for finding in findings if not finding.root]
    assert (root.code, root.subject, "1 of 2 GPUs" in root.cause) == (Code.GPU_COUNT, "gpus", True)


def test_the_kernel_log_names_the_part() -> None:
    """Xid 79 is the root also of the GPU that lspci shows as gone."""
    findings = configured(Machine(texts={"dmesg": healthy_text("dmesg") + XID_79, "lspci": GONE}))
    (root,) = [finding for finding in findings if not finding.root]
    assert (root.check, root.code) == ("kernel_log", Code.XID_OFF_THE_BUS)
    assert task_of(findings).root == root.key


def test_the_bmc_names_the_part() -> None:
    """What its log has that the host cannot see: an uncorrectable memory error of a module."""
    message = "Multi-bit memory errors detected on a memory device at location(s) DIMM_A1."
    entry = LogEntry(at="2026-01-02T03:00:00Z", severity="Critical", message=message, message_id="MEM0001")
    findings = configured(Machine(), (entry,))
    (root,) = [finding for finding in findings if not finding.root]
    assert root.check == "event_log"
    assert task_of(findings).root == root.key


def test_a_healthy_machine_leaves_the_blame_with_the_task() -> None:
    """What is not measured on a node without a driver is no fault."""
    (task,) = configured(Machine())
    assert (task.check, task.code, task.root) == ("configure", Code.TASK_FAILED, "")
    assert APT in task.cause


def test_a_host_that_no_longer_answers_leaves_the_task() -> None:
    """No session, no evidence of a fault: nothing is guessed."""
    (task,) = configured(Machine(silent=frozenset({"n1"})))
    assert (task.code, task.root) == (Code.TASK_FAILED, "")


def test_a_malformed_answer_accuses_no_part() -> None:
    """Neither another tool's output nor an empty one is a missing GPU."""
    for text in ("", "<html>502</html>\n", "\x00\x00", "0000:1b:00.0 3D contr"):
        (task,) = configured(Machine(texts={"lspci": text, "dmesg": text, "nvidia-smi": text}))
        assert (task.code, task.root) == (Code.TASK_FAILED, "")
