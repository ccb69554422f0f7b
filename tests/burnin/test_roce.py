"""A site whose compute fabric is Ethernet: its adapters are counted and measured as what they are.

data/roce/ibstat.txt: two adapters of the compute fabric (ConnectX-7 at 400 Gb/s), one for management (ConnectX-6 Lx at 25)
and a bond for storage (ConnectX-7 at 200), in the layout of ibstat(8).
"""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.infiniband.port_counters import parse_port_counters
from clusterctl.formats.infiniband.roce import parse_roce_ports
from clusterctl_burnin.loads.group_load import Lasts
from clusterctl_burnin.loads.model import Command
from clusterctl_burnin.loads.rank_placement import seat
from clusterctl_burnin.node.programs import port_counters, roce_ports
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.registry import CHECKS, GROUP_LOADS
from tests.burnin.kit import HEALTHY, LIMITS, SKU, expected, healthy_text, readings, result

ROCE = dataclasses.replace(SKU, hca_link_layer="Ethernet", hca_model="ConnectX-7")
IBSTAT = (HEALTHY.parent / "roce" / "ibstat.txt").read_text()
V4, V6, LOCAL = (
    "0000:0000:0000:0000:0000:ffff:0a00:0001",
    "fd00:0000:0000:0000:0000:0000:0000:0001",
    "fe80:0000:0000:0000:a288:c2ff:fe00:0001",
)
Ports = list[dict[str, Any]]


def ports(change: Callable[[Ports], None] = lambda _: None) -> str:
    """The document of the two adapters: a GID of each kind, PFC and ECN on priority 3."""
    kinds = ((LOCAL, "IB/RoCE v1"), (LOCAL, "RoCE v2"), (V4, "IB/RoCE v1"), (V4, "RoCE v2"))
    gids = [{"index": at, "gid": gid, "kind": kind, "interface": "eth"} for at, (gid, kind) in enumerate(kinds)]
    found = [
        {"name": f"mlx5_{n}", "interface": f"eth{n}", "mtu": "9000", "gids": gids, "pfc": [3], "ecn": [3]}
        for n in range(2)
    ]
    change(found)
    return json.dumps({"ports": found})


def on_roce(document: str = "", ibstat: str = IBSTAT) -> Readings:
    text = document or ports()
    return readings(ibstat=result("ibstat", ibstat), roce_ports=result("roce_ports", text))


def judged(check: str, node: Readings, **changes: object) -> tuple[Finding, ...]:
    return CHECKS[check].findings(node, expected(sku=dataclasses.replace(ROCE, **changes)))


@pytest.mark.parametrize("check", ["hca_count", "hca_link", "hca_firmware", "roce"])
def test_a_healthy_roce_node_passes(check: str) -> None:
    """Two of two adapters; neither the management adapter nor the storage bond is counted."""
    found = judged(check, on_roce())
    assert [finding.verdict for finding in found] == [Verdict.PASS], found


def test_what_it_passes_with_is_reported() -> None:
    """Flow control, ECN and MTU are in the finding."""
    (finding,) = judged("roce", on_roce())
    assert finding.measured == "PFC 3; ECN 3; MTU 9000; GID index 3"


def test_a_lost_adapter_is_counted() -> None:
    """One that is gone, and one that is down: the second is a port's fault, and still counts."""
    first = IBSTAT[IBSTAT.index("CA 'mlx5_1'") :]
    (finding,) = judged("hca_count", on_roce(ibstat=first), hca_rate_gbps=400, hca_count=3)
    assert (finding.verdict, finding.code) == (Verdict.FAIL, Code.HCA_COUNT)
    down = IBSTAT.replace(
        "State: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400",
        "State: Down\n\t\tPhysical state: Disabled\n\t\tRate: 40",
        1,
    )
    assert [f.verdict for f in judged("hca_count", on_roce(ibstat=down))] == [Verdict.PASS]
    (finding,) = judged("hca_link", on_roce(ibstat=down))
    assert (finding.code, finding.subject) == (Code.HCA_PORT_DOWN, "mlx5_0")
    assert "ip link" in finding.remedy


def test_the_wrong_link_layer_is_named() -> None:
    """An InfiniBand SKU on a node in Ethernet mode: the remedy is the mode or the SKU, not a new adapter."""
    found = CHECKS["hca_count"].findings(
        on_roce(), expected(sku=dataclasses.replace(ROCE, hca_link_layer="InfiniBand"))
    )
    assert found[0].cause == "0 of 2 InfiniBand adapters answer: none"
    assert "hca_link_layer: Ethernet" in found[0].remedy


CASES: dict[str, tuple[Callable[[Ports], None], Verdict, str]] = {
    "no address": (lambda found: found[0].update(gids=[]), Verdict.INCONCLUSIVE, "mlx5_0"),
    "link local only": (lambda found: found[1].update(gids=found[1]["gids"][:2]), Verdict.INCONCLUSIVE, "mlx5_1"),
    "no v2": (lambda found: found[1].update(gids=found[1]["gids"][2:3]), Verdict.INCONCLUSIVE, "mlx5_1"),
    "a port is not there": (lambda found: found.pop(), Verdict.INCONCLUSIVE, "node"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_keeps_an_adapter_from_roce(name: str) -> None:
    """No routable RoCE v2 GID, or no answer about the adapter."""
    change, verdict, subject = CASES[name]
    found = judged("roce", on_roce(ports(change)))
    assert [(finding.verdict, finding.subject) for finding in found] == [(verdict, subject)]


def test_an_adapter_with_other_settings_is_the_odd_one_out() -> None:
    """Of three, one without flow control; where half of them differ, no one is accused."""
    third = IBSTAT[: IBSTAT.index("CA 'mlx5_1'")].replace("mlx5_0", "mlx5_9").replace("0x", "0xb")
    ibstat = IBSTAT[: IBSTAT.index("CA 'mlx5_2'")] + third

    def odd(found: Ports) -> None:
        found.append(found[0] | {"name": "mlx5_9", "pfc": []})

    found = judged("roce", on_roce(ports(odd), ibstat), hca_count=3)
    assert [(one.code, one.subject, one.measured) for one in found] == [(Code.ROCE_SETTINGS_DIFFER, "mlx5_9", "none")]
    half = judged("roce", on_roce(ports(lambda found: found[0].update(pfc=None))))
    assert [finding.verdict for finding in half] == [Verdict.PASS]


def gid_indices(command: Command) -> list[str]:
    """The values of -x of all commands that a member runs."""
    call = command.stdin.decode().strip().splitlines()[-1]
    spec = json.loads(ast.literal_eval(call.removeprefix("main(json.loads(").removesuffix("))")))
    return [argv[argv.index("-x") + 1] for argv in (probe["argv"] for probe in spec["probes"]) if "-x" in argv]


def test_ib_write_bw_names_the_gid() -> None:
    """Each rail's server and client use the index of their own RoCE v2 GID; an InfiniBand node uses none."""
    members = tuple(seat(on_roce(), "10.0.0.1", ROCE).member(name, "10.0.0.1") for name in "ab")
    assert [member.gids for member in members] == [(3, 3), (3, 3)]
    job = GROUP_LOADS["ib_write_bw"].job(members, LIMITS, Lasts(), "ops")
    assert [gid_indices(command) for command in job.commands.values()] == [["3", "3"], ["3", "3"]]
    plain = tuple(seat(readings(), "10.0.0.1", SKU).member(name, "10.0.0.1") for name in "ab")
    job = GROUP_LOADS["ib_write_bw"].job(plain, LIMITS, Lasts(), "ops")
    assert [gid_indices(command) for command in job.commands.values()] == [[], []]


def test_the_program_reads_what_the_kernel_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GIDs with index and kind, in sysfs as the kernel lays it out; an InfiniBand port and an unset GID are left out."""
    for name, layer in (("mlx5_0", "Ethernet"), ("mlx5_1", "InfiniBand")):
        port = tmp_path / name / "ports" / "1"
        for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
            (port / folder).mkdir(parents=True)
        (port / "link_layer").write_text(f"{layer}\n")
        for index, gid in enumerate((V6, V4, roce_ports.NO_GID)):
            (port / "gids" / str(index)).write_text(f"{gid}\n")
        for index in range(2):
            (port / "gid_attrs" / "types" / str(index)).write_text("RoCE v2\n")
            (port / "gid_attrs" / "ndevs" / str(index)).write_text("lo\n")
    answer = json.dumps({"prio_pfc": [False, False, False, True]})
    roce_ports.main(lambda *_: (0, answer, ""), tmp_path)
    (port_found,) = parse_roce_ports(capsys.readouterr().out)
    assert (port_found.name, port_found.gid_index, port_found.pfc, port_found.ecn) == ("mlx5_0", 1, (3,), None)


def test_the_kernels_counters_stand_in_for_perfquery(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A management datagram does not reach an Ethernet port; its counters are in sysfs."""
    counters = tmp_path / "mlx5_0" / "ports" / "1" / "counters"
    counters.mkdir(parents=True)
    (counters.parent / "link_layer").write_text("Ethernet\n")
    for number, file in enumerate(port_counters.KERNEL.values()):
        (counters / file).write_text(f"{number}\n")
    monkeypatch.setattr(port_counters, "DEVICES", tmp_path)

    def ask(*argv: str) -> tuple[int, str]:
        return (0, "mlx5_0\n") if argv == ("ibstat", "-l") else (1, "perfquery: can't resolve self port\n")

    assert port_counters.main(0.01, ask) == 0
    port = parse_port_counters(capsys.readouterr().out).ports["mlx5_0"]
    assert port.first is not None
    assert dict(port.first.counters) == dict(zip(port_counters.KERNEL, range(5), strict=True))


@pytest.mark.parametrize("text", ["", "[]", '{"ports": [{}]}', ports(lambda found: found[0].update(mtu="many"))])
def test_another_document_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_roce_ports(text)


def test_an_infiniband_sku_needs_none_of_it() -> None:
    """Its adapters are in InfiniBand mode, and that is all."""
    (finding,) = CHECKS["roce"].findings(
        readings(roce_ports=result("roce_ports", healthy_text("roce_ports"))), expected()
    )
    assert (finding.verdict, "InfiniBand mode" in finding.cause) == (Verdict.PASS, True)
