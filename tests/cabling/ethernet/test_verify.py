"""Ethernet plans against received LLDP: every wrong cable is found, and each cable that no device sees is reported."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cabling.actions import carry_out
from clusterctl.cabling.ethernet.verify import verify_ethernet, without_management
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan, leaves_of_hosts, settle
from clusterctl.fleet.network.lldp import LldpReport, Neighbour
from clusterctl.fleet.node import Mac
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv
from clusterctl_cli.commands.cable_verify import verify

HEADER = (
    "source_device,source_port,destination_device,destination_port,destination_rack,destination_unit,destination_mac"
)
HOSTS = [f"node{number:03}" for number in range(1, 5)]
ROWS = [
    *(f"leaf-1,Ethernet{n},{host},ens1f0,A01,{n},0c:42:a1:00:00:0{n}" for n, host in enumerate(HOSTS, 1)),
    *(f"leaf-2,Ethernet{n},{host},ens1f1,A01,{n}," for n, host in enumerate(HOSTS, 1)),
    "leaf-1,Ethernet49,leaf-2,Ethernet49,,,",
]
TEXT = "\n".join([HEADER, *ROWS]) + "\n"
MGMT = [f"mgmt,Ethernet{n},{host},bmc,A01,{n},0c:42:a1:00:01:0{n}" for n, host in enumerate(HOSTS, 1)]
Cable = frozenset[PortName]


def plan_of(rows: Iterable[str] = ()) -> WiringPlan:
    return settle(read_ethernet_csv(TEXT + "".join(f"{row}\n" for row in rows), "ethernet.csv"))


def cables(plan: WiringPlan) -> list[Cable]:
    return [cable.ends for cable in plan.cables]


def reports_of(there: Iterable[Cable], listeners: Iterable[str]) -> dict[str, LldpReport]:
    """Return what each listener receives over the present cables; every device sends its name and port."""
    seen: dict[str, list[Neighbour]] = {device: [] for device in listeners}
    for ends in there:
        for near in ends:
            for far in ends - {near}:
                if near.device in seen:
                    seen[near.device].append(Neighbour(near.port, f"{far.device}.example.org", (far.port,)))
    return {device: LldpReport(tuple(neighbours)) for device, neighbours in seen.items()}


PLAN = plan_of()
ALL = cables(PLAN)
DEVICES = [*HOSTS, "leaf-1", "leaf-2"]


def test_switches_of_bmcs_are_no_part_of_the_compute_network():
    """The hunt groups RoCE hosts by their leaves: the management switch, which all share, is left out."""
    leaves = leaves_of_hosts(without_management(plan_of(MGMT)))
    assert set(leaves) == set(HOSTS)
    assert set(leaves.values()) == {"leaf-1 to leaf-2 (2 switches)"}
    assert without_management(PLAN) == PLAN


@pytest.mark.parametrize("listeners", [DEVICES, ["leaf-1", "leaf-2"]])
def test_as_planned(listeners):
    """Every cable seen, from both ends or from the switches only: nothing to repair, nothing unmeasured."""
    verification = verify_ethernet(PLAN, reports_of(ALL, listeners))
    assert (verification.planned, verification.observed, verification.right) == (9, 9, 9)
    assert verification.explanations == ()
    assert verification.unmeasured == ()


def test_hosts_alone_do_not_see_what_is_between_switches():
    """Seen from the hosts only, the cable between the leaves is not measured: that is reported, and no more."""
    verification = verify_ethernet(PLAN, reports_of(ALL, HOSTS))
    assert verification.explanations == ()
    assert [str(item.cable.source) for item in verification.unmeasured] == ["leaf-1 Ethernet49"]
    assert verification.unmeasured[0].reason == "no LLDP report of leaf-1 or leaf-2"


def test_nothing_recorded_proves_nothing():
    """Without any report every cable is unmeasured, none right, none missing."""
    verification = verify_ethernet(PLAN, {})
    assert (verification.right, len(verification.unmeasured), verification.explanations) == (0, 9, ())


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_moved_and_missing_cables_are_put_right(data):
    """Far ends permuted and cables unplugged at random: carrying out the actions gives the plan again, with no more
    moves than were made.
    """
    chosen = data.draw(st.lists(st.sampled_from(ALL[:8]), min_size=2, max_size=5, unique=True))
    leaf_ends = [next(end for end in ends if end.device.startswith("leaf")) for ends in chosen]
    nodes = [next(iter(ends - {leaf})) for ends, leaf in zip(chosen, leaf_ends, strict=True)]
    mixed = data.draw(st.permutations(nodes))
    moved = [frozenset(pair) for pair in zip(leaf_ends, mixed, strict=True)]
    lost = data.draw(st.lists(st.sampled_from(ALL[:8]), max_size=1).filter(lambda cut: not set(cut) & set(chosen)))
    there = [ends for ends in ALL if ends not in chosen and ends not in lost] + moved
    verification = verify_ethernet(PLAN, reports_of(there, DEVICES))
    actions = [action for explanation in verification.explanations for action in explanation.steps]
    assert carry_out(actions, there) == frozenset(ALL)
    assert verification.moves <= sum(ends not in ALL for ends in moved) + len(lost)
    assert verification.unmeasured == ()


def test_swapped_network_cables_in_words():
    """Two hosts swapped on one leaf: one finding, both hosts, one line to do."""
    one, two = ALL[0], ALL[1]
    leaf = {end for ends in (one, two) for end in ends if end.device == "leaf-1"}
    first, second = sorted(leaf)
    swapped = [frozenset((first, *(two - leaf))), frozenset((second, *(one - leaf)))]
    (found,) = verify_ethernet(PLAN, reports_of([*ALL[2:], *swapped], DEVICES)).explanations
    assert found.kind.value == "swapped"
    assert found.nodes == ("node001", "node002")
    assert (found.moves, found.links) == (2, 2)


def test_a_silent_device_is_one_cause():
    """A leaf that no neighbour sees on all its links is one finding; so is a host."""
    there = [ends for ends in ALL if not any(end.device == "leaf-2" for end in ends)]
    (leaf,) = verify_ethernet(PLAN, reports_of(there, [*HOSTS, "leaf-1"])).explanations
    assert (leaf.kind.value, leaf.devices, leaf.links) == ("absent_device", ("leaf-2",), 5)
    there = [ends for ends in ALL if not any(end.device == "node003" for end in ends)]
    (host,) = verify_ethernet(PLAN, reports_of(there, DEVICES)).explanations
    assert (host.devices, host.rack) == (("node003",), "A01")
    assert "has no neighbour either" in host.cause


def test_bmc_ports():
    """A BMC is known by its MAC address; one that is not seen is unmeasured, one on a wrong port is wrong."""
    plan = plan_of(MGMT)
    bmc = {n: Neighbour(f"Ethernet{n}", "idrac-ABC", (), Mac(f"0c:42:a1:00:01:0{n}")) for n in (1, 2)}
    right = reports_of(ALL, DEVICES) | {"mgmt": LldpReport((bmc[1], bmc[2]))}
    verification = verify_ethernet(plan, right)
    assert (verification.right, verification.explanations) == (11, ())
    assert {item.reason.split(":")[0] for item in verification.unmeasured} == {
        "no device receives LLDP from the BMC of node003",
        "no device receives LLDP from the BMC of node004",
    }
    crossed = (replace(bmc[1], interface="Ethernet2"), replace(bmc[2], interface="Ethernet1"))
    (found,) = verify_ethernet(plan, reports_of(ALL, DEVICES) | {"mgmt": LldpReport(crossed)}).explanations
    assert found.kind.value == "swapped"


def test_a_mac_address_beats_a_name():
    """A host that was installed under another's name is known by its NIC."""
    liar = Neighbour("Ethernet1", "node004", ("ens1f0",), Mac("0c:42:a1:00:00:01"))
    reports = reports_of([ends for ends in ALL if PortName("leaf-1", "Ethernet1") not in ends], ["leaf-1", "leaf-2"])
    reports["leaf-1"] = LldpReport((*reports["leaf-1"].neighbours, liar))
    assert verify_ethernet(PLAN, reports).right == 9


def test_own_interfaces_report_macs_too():
    """`show interfaces` of a host names the NIC behind a bare MAC address."""
    port = PortName("node002", "ens1f1")
    reports = reports_of([ends for ends in ALL if port not in ends], ["leaf-1", "leaf-2"])
    bare = Neighbour("Ethernet2", "0c:42:a1:00:00:f2", (), Mac("0c:42:a1:00:00:f2"))
    reports["leaf-2"] = LldpReport((*reports["leaf-2"].neighbours, bare))
    reports["node002"] = LldpReport((), {"ens1f1": Mac("0c:42:a1:00:00:f2")})
    assert verify_ethernet(PLAN, reports).right == 9


def test_several_senders_on_one_port_are_unclear():
    """A port that sees two planned devices proves nothing of its cable, nor does one whose neighbour is another's by plan
    and report: unmeasured, with the reason.
    """
    reports = reports_of(ALL, HOSTS)
    both = LldpReport((*reports["node001"].neighbours, Neighbour("ens1f0", "leaf-2", ("Ethernet40",))))
    unclear = verify_ethernet(PLAN, reports | {"node001": both})
    assert "node001 ens1f0 receives LLDP from leaf-1 Ethernet1 and leaf-2 Ethernet40" in unclear.unmeasured[0].reason
    shared = LldpReport((Neighbour("ens1f0", "leaf-1", ("Ethernet1",)), *reports["node002"].neighbours[1:]))
    unclear = verify_ethernet(PLAN, reports | {"node002": shared})
    assert "node001 ens1f0 and node002 ens1f0 both receive LLDP from leaf-1 Ethernet1" in unclear.unmeasured[0].reason
    assert unclear.explanations == ()


def test_a_firmware_agent_next_to_the_host_does_not_disturb():
    """A NIC's own agent, which the plan does not know, is seen in addition to the host's: the host counts."""
    reports = reports_of(ALL, DEVICES)
    agent = Neighbour("Ethernet1", "b8:ce:f6:00:00:01", (), Mac("b8:ce:f6:00:00:01"))
    reports["leaf-1"] = LldpReport((*reports["leaf-1"].neighbours, agent))
    assert verify_ethernet(PLAN, reports).right == 9


def test_a_stranger():
    """A device that the plan does not know, on a free port."""
    reports = reports_of(ALL, DEVICES)
    reports["leaf-1"] = LldpReport((*reports["leaf-1"].neighbours, Neighbour("Ethernet30", "printer", ("1",))))
    (found,) = verify_ethernet(PLAN, reports).explanations
    assert (found.kind.value, found.devices) == ("unknown_device", ("printer",))
    assert "unplug it from leaf-1 Ethernet30" in found.action


def as_lldpctl(report: LldpReport) -> str:
    """As `lldpctl -f json0` prints it."""
    entries = [
        {
            "name": neighbour.interface,
            "via": "LLDP",
            "chassis": [{"id": [{"type": "local", "value": "1"}], "name": [{"value": neighbour.chassis}]}],
            "port": [{"id": [{"type": "ifname", "value": neighbour.ports[0]}]}],
        }
        for neighbour in report.neighbours
    ]
    return json.dumps({"lldp": [{"interface": entries}]})


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A plan, and what every device receives."""
    return written(tmp_path, reports_of(ALL, DEVICES))


def written(folder: Path, reports: Mapping[str, LldpReport]) -> Path:
    (folder / "ethernet.csv").write_text(TEXT)
    (folder / "lldp").mkdir()
    for device, report in reports.items():
        (folder / "lldp" / f"{device}.json").write_text(as_lldpctl(report))
    return folder


def run(site: Path, *more: object):
    arguments = ["--ethernet", site / "ethernet.csv", "--lldp", site / "lldp", *more]
    return CliRunner().invoke(verify, [str(argument) for argument in arguments])


def test_the_command_when_all_is_well(site):
    """Exit code 0 and the counts."""
    result = run(site, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "links_planned": 9,
        "links_observed": 9,
        "links_right": 9,
        "findings": [],
        "moves": 0,
        "devices_to_visit": 0,
        "warnings": [],
        "not_measured": [],
        "disputed": [],
    }


def test_the_command_with_an_invented_interface(site):
    """Every cable is proven, and the exit code is still 1: one report contradicts another."""
    own = reports_of(ALL, ["node003"])["node003"].neighbours
    invented = LldpReport((*own, Neighbour("x0", "leaf-1", ("Ethernet1",))))
    (site / "lldp/node003.json").write_text(as_lldpctl(invented))
    result = run(site)
    assert result.exit_code == 1
    assert "disputed: what node003 x0 reports: node001 ens1f0 and node003 x0 both receive LLDP" in result.stdout
    assert "9 of 9 planned cables are proven, 9 observed: 0 to repair, 0 not measured, 1 reports" in result.stdout
    assert [one["port"] for one in json.loads(run(site, "--json").stdout)["disputed"]] == ["node003 x0"]


def test_the_command_with_findings(site):
    """Exit code 1 for a missing cable, and for one that no device could see."""
    (site / "lldp/node001.json").write_text('{"lldp": [{}]}')
    (site / "lldp/leaf-1.json").unlink()
    result = run(site)
    assert result.exit_code == 1
    assert "rack A01\n  missing link: the planned link leaf-1 Ethernet1 – node001 ens1f0 is not up" in result.stdout
    assert "8 of 9 planned cables are proven, 8 observed: 1 to repair, 0 not measured" in result.stdout
    (site / "lldp/leaf-2.json").unlink()
    document = json.loads(run(site, "--json").stdout)
    assert {"link": ["leaf-1 Ethernet49", "leaf-2 Ethernet49"]}.items() <= document["not_measured"][0].items()


@pytest.mark.parametrize("content", [b"", b"\xff", b'{"lldp": [', b"{}"])
def test_the_command_on_broken_records(site, content):
    """A record that is not understood is wrong input, by file: never a device without neighbours."""
    (site / "lldp/node001.json").write_bytes(content)
    error = run(site).exception
    assert isinstance(error, UsageError)
    assert "node001.json" in error.where


def test_the_command_without_records(site, tmp_path):
    """An empty folder, or one option without the other, is wrong usage."""
    (tmp_path / "none").mkdir()
    assert "no *.json" in str(run(site, "--lldp", tmp_path / "none").exception)
    alone = CliRunner().invoke(verify, ["--ethernet", str(site / "ethernet.csv")])
    assert isinstance(alone.exception, UsageError)
    assert alone.exception.where == "--lldp"
    assert CliRunner().invoke(verify, []).exception.where == "--fabric"
