"""A node with several faults: one burn-in finds those that its own checks and loads show, and names for each load that it left out the fault that stopped it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.ports import Deadline, HostAddress
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from clusterctl_burnin.check import Area
from clusterctl_burnin.loads.obstacles import needs_of, obstacle
from clusterctl_burnin.registry import CHECKS, GROUP_LOADS, NODE_LOADS
from clusterctl_burnin.roots import link_roots
from tests.burnin.kit import expected, healthy_text, readings
from tests.burnin.solo_kit import drives, fio, loaded, package
from tests.steps.burnin.test_burnin import SKU, SUITE, Hosts, burnin_step, nodes

ECC_OFF = healthy_text("nvidia_smi").replace(
    "ECC Mode\n        Current                           : Enabled",
    "ECC Mode\n        Current                           : Disabled",
)
LOADS = ("dcgm_diag", "gpu_load", "stress_ng", "nvme_read")
WHOLE = replace(
    SUITE,
    checks=(*SUITE.checks, CHECKS["gpu_ecc"], CHECKS["swap_off"]),
    solo=tuple(NODE_LOADS[name] for name in LOADS),
    loads=("ib_write_bw", "all_reduce"),
)


@dataclass
class Faulty(Hosts):
    """n1 has ECC off on a GPU, a drive that fails to read, and an adapter that writes slowly."""

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        bad = host.name == "n1"
        drive = fio("fio_io_error" if bad else "fio_read")
        texts = {
            "nvidia-smi": ECC_OFF if bad else healthy_text("nvidia_smi"),
            "swapon": "",
            "nvme-read": json.dumps(drives(nvme0n1=drive)),
            "cpu-memory-load": json.dumps(loaded(package(0), package(1))),
        }
        if argv[0] not in texts:
            return super()._answer(host, argv)
        text = texts[argv[0]]
        return {"argv": argv, "status": "ok", "rc": 0, "stdout": text, "stderr": "", "started": 0.0, "seconds": 1.0}


def burned_in() -> dict[str, StepOutcome]:
    hosts = Faulty(slow=frozenset({"n1"}))
    step = burnin_step(hosts, suite=WHOLE)
    outcomes = step.run(nodes(4), IntentLog(None, {}), Deadline.after(60))  # type: ignore[arg-type]
    return {outcome.node.replace("id", "n"): outcome for outcome in outcomes}


def test_one_burn_in_finds_the_faults_of_a_node_that_its_own_loads_show() -> None:
    """A GPU setting and a drive: two roots that fail, from one run. Its slow adapter shows after the repair: a faulty
    node takes part in no load of several nodes, since it would spoil the results of its partners.
    """
    findings = burned_in()["n1"].findings
    failed = {(one.check, one.code) for one in link_roots(findings) if one.verdict is Verdict.FAIL and not one.root}
    assert failed == {
        ("gpu_ecc", Code.GPU_ECC_OFF),
        ("nvme_read", Code.DRIVE_READ_FAILED),
    }
    assert {one.check for one in findings} >= WHOLE.required


def test_a_load_that_was_left_out_names_the_fault_that_stopped_it() -> None:
    """The GPU's loads wait for its repair, and follow from its fault; the processors' load passed."""
    found = {one.check: one for one in burned_in()["n1"].findings}
    for load in ("dcgm_diag", "gpu_load", "ib_write_bw", "all_reduce"):
        assert (found[load].verdict, found[load].code) == (Verdict.INCONCLUSIVE, Code.STEP_FAILED_BEFORE)
        assert found[load].root == "gpu_ecc:gpu 0"
    assert found["stress_ng"].verdict is Verdict.PASS


def test_every_load_declares_what_it_needs() -> None:
    """No load of one node is stopped by every fault; each load is stopped by a fault of the node itself."""
    (stranger,) = CHECKS["identity"].findings(readings(), expected(name="another"))
    for load in NODE_LOADS.values():
        assert load.needs < frozenset(Area), load.name
    for name in (*NODE_LOADS, *GROUP_LOADS):
        assert obstacle(needs_of(name), [stranger]) is stranger


def test_group_loads_run_despite_faults_of_what_they_do_not_use() -> None:
    """One repair trip finds a drive's fault and a slow fabric; what spoils the partners' results stops the node."""
    for load in GROUP_LOADS:
        for check in ("node_exporter", "swap_off", "dns", "nvme_health"):
            assert obstacle(needs_of(load), [_failed(check)]) is None
        for check in ("fan_speed", "host_network", "kernel_log", "gpu_ecc", "hca_link", "memory_errors"):
            assert obstacle(needs_of(load), [_failed(check)]) is not None


def _failed(check: str) -> Finding:
    return Finding(check=check, verdict=Verdict.FAIL, code=Code.STEP_FAILED_BEFORE, cause="it is broken")


OOM = "kern  :err   : [Fri Jan  2 03:05:00 2026] Out of memory: Killed process 4242 (all_reduce_perf) total-vm:1kB\n"


@dataclass
class WorseUnderLoad(Hosts):
    """n1's kernel kills a process for want of memory, and n2's GPU counts errors, once they have been loaded."""

    loaded: frozenset[str] = frozenset()

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        if argv[0] == "ib_write_bw":
            self.loaded |= {host.name}
        after = host.name in self.loaded
        errors = healthy_text("nvidia_smi").replace(
            "DRAM Uncorrectable            : 0", "DRAM Uncorrectable            : 3", 1
        )
        texts = {
            "dmesg": healthy_text("dmesg") + (OOM if after and host.name == "n1" else ""),
            "nvidia-smi": errors if after and host.name == "n2" else healthy_text("nvidia_smi"),
        }
        if argv[0] not in texts:
            return super()._answer(host, argv)
        head = {"argv": argv, "status": "ok", "rc": 0, "stdout": texts[argv[0]], "stderr": ""}
        return {**head, "started": 0.0, "seconds": 1.0}


def test_what_the_loads_bring_about_keeps_a_node_from_gold() -> None:
    """An OOM kill and memory errors under load: the checks passed before, the load ended well, and does not count."""
    suite = replace(SUITE, checks=(*SUITE.checks, CHECKS["kernel_log"], CHECKS["gpu_ecc"]))
    step = burnin_step(WorseUnderLoad(), suite=suite, sku=replace(SKU, gpu_count=2))
    outcomes = step.run(nodes(4), IntentLog(None, {}), Deadline.after(60))  # type: ignore[arg-type]
    bad = {
        outcome.node.replace("id", "n"): {
            (one.check, one.verdict) for one in outcome.findings if not one.verdict.admits
        }
        for outcome in outcomes
    }
    assert bad == {
        "n0": set(),
        "n1": {("kernel_log", Verdict.INCONCLUSIVE), ("ib_write_bw", Verdict.INCONCLUSIVE)},
        "n2": {("gpu_ecc", Verdict.FAIL), ("ib_write_bw", Verdict.FAIL)},
        "n3": set(),
    }
