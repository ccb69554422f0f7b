"""ethernet_link: speed, duplex, bond members and counters of the node's Ethernet ports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.ethernet_links import parse_ethernet_links
from clusterctl_burnin.node.programs import ethernet_links
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, healthy_text, readings

Port = dict[str, Any]


def changed(change: Callable[[Port], object], *, name: str = "ens1f1np1", which: int = 1) -> str:
    """The healthy document; one reading of one port is changed, or both where `which` is negative."""
    document = json.loads(healthy_text("ethernet_links"))
    for number, reading in enumerate(document["readings"]):
        if which < 0 or number == which:
            change(next(port for port in reading["ports"] if port["name"] == name))
    return json.dumps(document)


def found(text: str) -> list[tuple[str, Verdict, Code]]:
    judged = CHECKS["ethernet_link"].findings(readings(ethernet_links=lambda _: text), expected())
    return [(one.subject, one.verdict, one.code) for one in judged]


def counted(**counters: int | None) -> Callable[[Port], object]:
    return lambda port: port["counters"].update(counters)


def test_healthy_ports() -> None:
    """Old errors stand in the counters, and a port without a cable has no speed."""
    assert [verdict for _, verdict, _ in found(healthy_text("ethernet_links"))] == [Verdict.PASS]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (changed(lambda port: port.update(duplex="half"), which=-1), Code.ETHERNET_DUPLEX),
        (changed(lambda port: port.update(speed=100), which=-1), Code.ETHERNET_SPEED),
        (changed(lambda port: port.update(speed=25000), which=-1), Code.ETHERNET_SPEED),
        (changed(lambda port: port.update(member=False), which=-1), Code.BOND_INCOMPLETE),
        (changed(counted(rx_crc_errors=4)), Code.ETHERNET_ERRORS),
        (changed(counted(rx_missed_errors=1000)), Code.ETHERNET_ERRORS),
        (changed(lambda port: port.update(downs=3)), Code.ETHERNET_FLAPS),
    ],
)
def test_a_bad_port_is_named(text: str, code: Code) -> None:
    """Half duplex, too slow for the site or for its bond, out of its bond, errors, drops, a flap."""
    assert found(text) == [("ens1f1np1", Verdict.FAIL, code)]


@pytest.mark.parametrize(
    "text",
    [
        changed(lambda port: port.update(speed=None), which=-1),
        changed(counted(rx_crc_errors=0)),
        changed(counted(rx_crc_errors=None)),
        changed(lambda port: port.update(name="ens9")),
        json.dumps({"readings": [{"at": 1.0, "ports": []}] * 2}),
        json.dumps({"readings": [{"at": 1.0, "ports": []}]}),
    ],
)
def test_what_is_not_measured_does_not_pass(text: str) -> None:
    """No speed, counters from zero, no counter, a port that is gone, no port with a link, one reading."""
    verdicts = {verdict for _, verdict, _ in found(text)}
    assert Verdict.INCONCLUSIVE in verdicts
    assert Verdict.PASS not in verdicts


def test_the_program_reads_sysfs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A port with hardware, one without a speed; no bridge, and not the BMC's own port, which is on USB."""
    (tmp_path / "bus/usb").mkdir(parents=True)
    (tmp_path / "net/idrac/device").mkdir(parents=True)
    (tmp_path / "net/idrac/device/subsystem").symlink_to(tmp_path / "bus/usb")
    tmp_path = tmp_path / "net"
    (tmp_path / "idrac/type").write_text("1\n")
    (tmp_path / "idrac/operstate").write_text("up\n")
    for name, hardware in (("eno1", True), ("eno2", True), ("br0", False)):
        folder = tmp_path / name
        (folder / "statistics").mkdir(parents=True)
        (folder / "type").write_text("1\n")
        (folder / "operstate").write_text("up\n" if name == "eno1" else "down\n")
        (folder / "duplex").write_text("full\n")
        (folder / "speed").write_text("100000\n" if name == "eno1" else "-1\n")
        (folder / "carrier_down_count").write_text("2\n")
        for counter in ethernet_links.COUNTERS:
            (folder / "statistics" / counter).write_text("7\n")
        if hardware:
            (folder / "device").mkdir()
    assert ethernet_links.main(["0.01"], tmp_path) == 0
    first, last = parse_ethernet_links(capsys.readouterr().out, 2)
    assert [(port.name, port.up, port.speed) for port in last.ports] == [("eno1", True, 100000), ("eno2", False, None)]
    assert first.ports[0].counters["rx_crc_errors"] == 7
    assert last.at > first.at


def test_drops_while_a_load_runs_warn_and_accuse_no_cable() -> None:
    """A port with few receive buffers drops packets at full speed; an idle one does not."""
    read = json.loads(changed(counted(rx_missed_errors=1_000_000)))["readings"]
    before, after = (readings(ethernet_links_once=lambda _, one=one: json.dumps({"readings": [one]})) for one in read)
    (drops,) = CHECKS["ethernet_link"].found_during(before, after, expected())
    assert (drops.subject, drops.verdict, drops.code) == ("ens1f1np1", Verdict.WARN, Code.ETHERNET_ERRORS)
    assert "cable" not in drops.remedy
    assert "ethtool -G" in drops.remedy
    (idle,) = CHECKS["ethernet_link"].findings(
        readings(ethernet_links=lambda _: changed(counted(rx_missed_errors=1_000_000))), expected()
    )
    assert (idle.verdict, "cable" in idle.remedy) == (Verdict.FAIL, False)
