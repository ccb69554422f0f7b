"""cpu_frequency, hca_firmware, hca_errors, and GPUs that have left the bus: broken in each way that they know."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Guid, Hca, Serial
from clusterctl.formats.infiniband.adapters import parse_ibstat
from clusterctl.formats.infiniband.port_counters import parse_port_counters
from clusterctl_burnin.chance import exceeds
from clusterctl_burnin.checks.cpu_frequency import TURBOSTAT
from clusterctl_burnin.node.processes import all_processes
from clusterctl_burnin.probe import ProbeResult
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import INVENTORY, Edit, expected, healthy_text, readings, result

FAIL, INCONCLUSIVE = Verdict.FAIL, Verdict.INCONCLUSIVE
REFUSED = "".join(f"=== mlx5_1 at {at} exit 1\nperfquery: can't open UMAD port\n" for at in ("100.1", "105.1"))
LOST = (
    "Unable to determine the device handle for GPU 0000:43:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
)


def counters(*samples: Mapping[str, int], up: float = 3600.0, names: tuple[str, ...] = ("mlx5_0", "mlx5_1")) -> str:
    """The probe's document: mlx5_0 as in `samples`, five seconds apart, the others without any error."""
    text = f"=== up {up}\n"
    for number, sample in enumerate(samples):
        for name in names:
            text += f"=== {name} at {100 + 5 * number}.0 exit 0\n# Port counters: Lid 1 port 1 (CapMask: 0x5A00)\n"
            for counter in ("SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors"):
                value = sample.get(counter, 0) if name == "mlx5_0" else 0
                text += f"{counter}:".ljust(33, ".") + f"{value}\n"
    return text


def ports(*samples: Mapping[str, int], up: float = 3600.0) -> ProbeResult:
    return result("port_counters", counters(*samples, up=up))


@dataclass(frozen=True)
class Case:
    """A broken node and the one bad finding that its check must report."""

    check: str
    verdict: Verdict
    subject: str
    cause: str
    remedy: str
    broken: dict[str, ProbeResult | Edit] = field(default_factory=dict)


CASES = (
    Case(
        "cpu_frequency",
        FAIL,
        "node",
        "8 of 8 busy processors",
        "profile to performance",
        {"turbostat": lambda t: t.replace("\t29", "\t19").replace("\t30", "\t20")},
    ),
    Case(
        "cpu_frequency",
        FAIL,
        "cpu 1",
        "1 of 4 busy processors",
        "replace the processor",
        {"turbostat": lambda t: t.replace("1\t7\t3011", "1\t7\t1200")},
    ),
    Case(
        "cpu_frequency", INCONCLUSIVE, "node", "not understood", "raw", {"turbostat": lambda t: t.replace("3011", "?")}
    ),
    Case("cpu_frequency", INCONCLUSIVE, "node", "no processor", "raw", {"turbostat": lambda t: t.split("\n")[0]}),
    Case(
        "hca_firmware",
        FAIL,
        "mlx5_1",
        "older than the site's",
        "update the firmware of mlx5_1 to 28.39.1002",
        {"ibstat": lambda t: "28.9.1".join(t.rsplit("28.39.1002", 1))},
    ),
    Case(
        "hca_firmware",
        INCONCLUSIVE,
        "mlx5_0",
        "another chip",
        "model",
        {"ibstat": lambda t: t.replace("28.", "20.", 1)},
    ),
    Case(
        "hca_firmware",
        INCONCLUSIVE,
        "mlx5_0",
        "'unknown'",
        "mstflint",
        {"ibstat": lambda t: t.replace("28.39.1002", "unknown", 1)},
    ),
    Case(
        "hca_firmware",
        Verdict.WARN,
        "node",
        "adapters of one kind (MT4129) have different firmware",
        "clusterctl firmware",
        {"ibstat": lambda t: "28.41.1000".join(t.rsplit("28.39.1002", 1))},
    ),
    Case("hca_firmware", INCONCLUSIVE, "node", "1 of 2", "missing", {"ibstat": lambda t: t[: t.index("CA 'mlx5_1'")]}),
    Case(
        "hca_errors",
        FAIL,
        "mlx5_0",
        "gathers errors",
        "clean",
        {"port_counters": ports({"SymbolErrorCounter": 7}, {"SymbolErrorCounter": 57})},
    ),
    Case("hca_errors", FAIL, "mlx5_0", "gathers errors", "clean", {"port_counters": ports({}, {"PortRcvErrors": 500})}),
    Case(
        "hca_errors",
        FAIL,
        "mlx5_0",
        "gathers errors",
        "clean",
        {"port_counters": ports({}, {"LinkErrorRecoveryCounter": 6})},
    ),
    Case(
        "hca_errors",
        FAIL,
        "mlx5_0",
        "1 of them during the measurement",
        "switch port's log",
        {"port_counters": ports({}, {"LinkDownedCounter": 1})},
    ),
    Case(
        "hca_errors",
        FAIL,
        "mlx5_0",
        "3 times in the 60 minutes",
        "switch port's log",
        {"port_counters": ports({"LinkDownedCounter": 3}, {"LinkDownedCounter": 3})},
    ),
    Case(
        "hca_errors",
        INCONCLUSIVE,
        "mlx5_0",
        "SymbolErrorCounter has reached its highest value",
        "perfquery -R",
        {"port_counters": ports({"SymbolErrorCounter": 65535}, {"SymbolErrorCounter": 65535})},
    ),
    Case(
        "hca_errors",
        INCONCLUSIVE,
        "mlx5_0",
        "something cleared the counters",
        "again",
        {"port_counters": ports({"SymbolErrorCounter": 9}, {})},
    ),
    Case(
        "hca_errors",
        INCONCLUSIVE,
        "mlx5_0",
        "not active",
        "link up",
        {"ibstat": lambda t: t.replace("Active", "Down", 1)},
    ),
    Case(
        "hca_errors",
        INCONCLUSIVE,
        "mlx5_1",
        "did not ask",
        "root",
        {"port_counters": result("port_counters", counters({}, {}, names=("mlx5_0",)))},
    ),
    Case(
        "hca_errors",
        INCONCLUSIVE,
        "mlx5_1",
        "can't open UMAD port",
        "run as root",
        {"port_counters": result("port_counters", counters({}, {}, names=("mlx5_0",)) + REFUSED)},
    ),
    Case(
        "hca_errors",
        INCONCLUSIVE,
        "node",
        "ibstat: No such file",
        "infiniband-diags",
        {"port_counters": result("port_counters", "", rc=127, stderr="ibstat: No such file or directory\n")},
    ),
    Case("hca_errors", INCONCLUSIVE, "node", "cut off", "raw", {"port_counters": lambda t: t[: len(t) // 2]}),
    Case(
        "gpu_count",
        FAIL,
        "gpu 0000:43:00.0",
        "left the PCI bus",
        "reseat",
        {"nvidia_smi": result("nvidia_smi", LOST, rc=15)},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}-{case.cause}".replace(" ", "_"))
def test_a_broken_node_is_reported_with_cause_and_remedy(case: Case) -> None:
    """The right verdict on the right part, in words, with something to do; and nothing else passes for it."""
    found = CHECKS[case.check].findings(readings(**case.broken), expected())
    findings = [f for f in found if f.subject == case.subject and case.cause in f.cause]
    assert findings, [str(f) for f in found]
    assert (findings[0].verdict, case.remedy in findings[0].remedy) == (case.verdict, True), findings[0]
    assert not any(finding.verdict is Verdict.PASS for finding in found)


@pytest.mark.parametrize(
    ("samples", "up"),
    [
        (({"PortRcvErrors": 60_000}, {"PortRcvErrors": 60_000}), 3600.0),
        (({}, {"SymbolErrorCounter": 1}), 3600.0),
        (({"LinkDownedCounter": 2}, {"LinkDownedCounter": 2}), 60.0),
        (({"LinkDownedCounter": 9}, {"LinkDownedCounter": 9}), 100 * 24 * 3600.0),
    ],
    ids=["old errors", "one error", "bring-up", "nine in a hundred days"],
)
def test_what_stands_in_counters_is_no_fault(samples: tuple[Mapping[str, int], ...], up: float) -> None:
    """Errors of the past, a single one now, and a link that was brought up or moved are all healthy."""
    (finding,) = CHECKS["hca_errors"].findings(readings(port_counters=ports(*samples, up=up)), expected())
    assert finding.verdict is Verdict.PASS


def test_an_adapter_is_named_by_its_serial() -> None:
    """By the GUID that the BMC knows it by; without it, by its name alone."""
    guid = parse_ibstat(healthy_text("ibstat"))[0].node_guid
    known = replace(INVENTORY, hcas=(Hca("NIC.Slot.1", "ConnectX-7", Serial("MT1"), Guid(guid)),))
    broken = readings(port_counters=ports({}, {"PortRcvErrors": 500}))
    serials = [
        CHECKS["hca_errors"].findings(broken, expected(inventory=inventory))[0].serial for inventory in (known, None)
    ]
    assert serials == ["MT1", ""]


@pytest.mark.parametrize(
    ("count", "seconds", "per_second", "exceeded"),
    [
        (0, 5, 0.0, False),
        (1, 5, 0.0, True),
        (2, 5, 120 / 3600, False),
        (3, 5, 120 / 3600, True),
        (60, 5, 10, False),
        (90, 5, 10, True),
        (520, 5, 100, False),
        (600, 5, 100, True),
        (10**9, 60, 100, True),
        (4010, 40, 100, False),
    ],
)
def test_a_rate_is_exceeded_where_chance_cannot_explain_the_count(
    count: int, seconds: float, per_second: float, exceeded: bool
) -> None:
    """One error in a moment proves no rate; where nothing at all is allowed, it does."""
    assert exceeds(count, seconds, per_second) is exceeded


def test_counters_of_64_bits_go_on() -> None:
    """Where the adapter has extended counters, a value at which plain ones stop is a number like any other."""
    text = counters({"LinkDownedCounter": 255}, {"LinkDownedCounter": 255}, up=1e9).replace(
        "# Port c", "# Port extended c"
    )
    for port in parse_port_counters(text).ports.values():
        assert port.first is not None
        assert not port.first.stopped("LinkDownedCounter")
    stopped = parse_port_counters(text.replace("extended ", "")).ports["mlx5_0"].first
    assert stopped is not None
    assert stopped.stopped("LinkDownedCounter")


def test_the_load_ends_by_itself_and_leaves_no_process() -> None:
    """Turbostat returns its command's exit code: the load must end with 0, and its loops with it."""
    *_, shell, option, busy = TURBOSTAT.argv
    assert "sleep 2" in busy
    short = (shell, option, busy.replace("sleep 2", "sleep 0.1"))
    load = subprocess.Popen(short, start_new_session=True, stderr=subprocess.PIPE, text=True)
    assert load.stderr is not None
    output = load.stderr.read()
    assert (load.wait(600), output) == (0, "")
    assert not [pid for pid, _, session in all_processes() if session == load.pid and pid != load.pid]
