"""UFM's event log and answers: lines and answers of real UFMs from public sources."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cabling.alarms import meaning_of, name_of, sort_alarms
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.alarms import FabricAlarm, Meaning
from clusterctl.fleet.fabric.history import port_name
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.node import Guid
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.ufm.common import port_number
from clusterctl.formats.ufm.event_log import MAX_LINE, parse_event_log
from clusterctl.formats.ufm.rest import (
    read_alarms,
    read_events,
    read_links,
    read_ports,
    read_systems,
    read_unhealthy_ports,
    read_version,
)

DATA = Path(__file__).parent / "data"
LINES = yaml.safe_load((DATA / "event_log.yml").read_text())
ANSWERS = yaml.safe_load((DATA / "answers.yml").read_text())
READERS = {"events": read_events, "alarms": read_alarms}


@pytest.mark.parametrize("case", LINES, ids=lambda case: f"{case['code']}-{case['id']}")
def test_a_line_of_the_log(case: dict[str, object]) -> None:
    """Time, code, id and both ends are read, by GUID and by number, also where the port has a label."""
    (alarm,) = parse_event_log(str(case["line"]), UTC).alarms
    assert (alarm.code, alarm.id, alarm.at.isoformat()) == (case["code"], case["id"], case["at"])
    assert [port_name(port) for port in alarm.ports] == case["ports"]
    assert alarm.serial == case.get("serial", "")
    assert meaning_of(alarm.code) == case["meaning"]


def test_a_log_as_a_whole() -> None:
    """Lines that follow an entry belong to its text; what is no entry is counted; each entry is there once."""
    text = "\n".join(["cut off line", *(f"{case['line']}\n   more of it" for case in LINES), ""])
    log = parse_event_log(text, UTC)
    assert (len(log.alarms), log.skipped) == (len(LINES), 1)
    assert all("more of it" in alarm.text for alarm in log.alarms if len(alarm.text) < 300)


def test_the_time_of_ufms_host() -> None:
    """UFM writes local time: its zone is the site's, and the journal has UTC."""
    line = "2023-12-20 07:46:24.442 [1] [112] WARNING [Hardware] IBPort [x / 4] [dev_id: fc6a1c0300244e00]: Link-Downed"
    (alarm,) = parse_event_log(line, ZoneInfo("America/Los_Angeles")).alarms
    assert alarm.at == datetime(2023, 12, 20, 15, 46, 24, 442000, tzinfo=UTC)


@given(st.text(max_size=300))
def test_any_text_is_a_log(text: str) -> None:
    """A hostile line breaks nothing, and its text is bounded."""
    head = "2023-12-20 07:46:24 [1] [112] WARNING [Hardware] IBPort ["
    for line in (text, head + text, f"{head}x / 4]: {text}" + "a" * 3 * MAX_LINE):
        log = parse_event_log(line, UTC)
        assert all(len(alarm.text) <= 400 and alarm.text == visible_line(alarm.text) for alarm in log.alarms)


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: f"{case['list']}-{case['found'][0]['code']}")
def test_an_answer(case: dict[str, object]) -> None:
    """Events have their code in `type`, since 6.17 in `event_type`; alarms name their object in two ways."""
    found = READERS[str(case["list"])](json.loads(str(case["answer"])), UTC, "ufm").alarms
    for alarm, wanted in zip(found, case["found"], strict=True):  # type: ignore[call-overload]
        read = {"code": alarm.code, "id": alarm.id, "ports": [port_name(port) for port in alarm.ports]}
        read |= {"device": str(alarm.device), "count": alarm.count}
        assert {name: read[name] for name in wanted} == wanted


def test_resources() -> None:
    """Ports, links, systems and unhealthy ports as the guide and IBM's public documentation print them."""
    switch = {"guid": "506b4b0300854600", "name": "506b4b0300854600_0", "number": 0, "lid": 158, "peer": "N/A"}
    port = {**switch, "name": "506b4b0300854600_3", "number": 3, "lid": 0, "peer": "248a070300a29d74_1"}
    states = {"logical_state": "Active", "physical_state": "Link Up"}
    (found,) = read_ports([switch, {**port, **states}], "ufm")
    assert (found.port.number, found.peer, found.logical) == (3, PortId(Guid("248a070300a29d74"), 1), "Active")
    ends = {"source_guid": "0002c903007b78b0", "source_port": "29", "destination_guid": "248a0703002e628e"}
    (link,) = read_links([{**ends, "destination_port": "1", "width": "IB_4x"}], "ufm")
    assert (link.a.number, link.b.number, link.width) == (29, 1, "4x")
    modules = [{"type": "PS", "serial_number": "MT1706X07347"}, {"type": "SYSTEM", "serial_number": "MT1706X02692"}]
    system = {"guid": "248a070300fd6100", "system_name": "leaf02", "type": "switch", "fw_version": "15.2000.2626"}
    (one,) = read_systems([{**system, "model": "MSB7800", "modules": modules}], "ufm")
    assert (one.name, one.firmware, one.serial) == ("leaf02", "15.2000.2626", "MT1706X02692")
    bad = {"UnhealthyGUID": "248a0703002e628e", "UnhealthyPortNumber": 1, "Condition": "MANUAL"}
    (unhealthy,) = read_unhealthy_ports([bad], "ufm")
    assert (port_name(unhealthy.port), unhealthy.conditions) == ("248a0703002e628e/1", ("MANUAL",))
    assert read_version({"ufm_release_version": "6.1.99-12"}, "ufm") == "6.1.99-12"


@pytest.mark.parametrize("answer", [{}, ["x"], [{"id": "x"}], [{"id": 1, "type": "1"}], "text", None, [{"id": True}]])
def test_what_is_no_answer_of_ufm(answer: object) -> None:
    """It is an error with the address, never an empty list."""
    with pytest.raises(ParseError) as error:
        read_events(answer, UTC, "https://ufm/ufmRest/app/events")
    assert error.value.where == "https://ufm/ufmRest/app/events"


def test_a_malformed_entry_hides_no_other() -> None:
    """Each is read for itself; what could not be read is named once by its digest, with the reason."""
    good = {"id": 7, "event_type": "112", "timestamp": "2026-01-01 12:00:00", "severity": "Warning"}
    read = read_events([{**good, "timestamp": "soon"}, good, "x", {**good, "id": None}], UTC, "ufm")
    assert [alarm.id for alarm in read.alarms] == [7]
    assert sorted(read.unread.values()) == ["'soon' is no time", "id is no number", "it is no object"]


def test_labels_of_ports() -> None:
    """Cage and half give the number, with and without the ASIC; another text gives none."""
    assert [port_number(text) for text in ("16", "1/17/1", "17/1", "1/4/2", "mlx5_0", "1/2/3")] == [
        16,
        33,
        33,
        8,
        None,
        None,
    ]


def test_few_of_many_codes_matter() -> None:
    """The table has every code of UFM's policy; only some suspect a link; an unknown code is counted by itself."""
    link = [code for code in range(2000) if meaning_of(code).suspects_link]
    assert link == [
        *(110, 111, 112, 113, 119, 130, 141, 275, 276, 328, 329, 701, 702),
        *(913, 914, 915, 916, 917, 918, 919, 920, 1500, 1502, 1503),
    ]
    assert (name_of(112), name_of(5000)) == ("Link Downed", "event 5000")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    port = PortId(Guid("fc6a1c0300244e00"), 4)
    alarms = [
        FabricAlarm(id=n, code=code, at=at, severity="", ports=(port,)) for n, code in enumerate((116, 112, 5000))
    ]
    found = sort_alarms(alarms)
    assert found.suspects == {port: alarms[1]}
    assert found.counts == {Meaning.SYMPTOM: 1, Meaning.LINK_ERRORS: 1, Meaning.UNKNOWN: 1}
    assert found.unknown == {5000: 1}
