"""Counters and other data of ports, from ibqueryerrors, perfquery and db_csv: whole, or refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.errors import ClusterctlError, ParseError
from clusterctl.fleet.fabric.telemetry import HIGHEST, ErrorRates, PortCounters, Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.formats.infiniband.fabric_file import decode_telemetry
from tests.formats.infiniband import printers

FABRIC = printers.two_switches()
LEAF, HOST = FABRIC.links[0].a, FABRIC.links[0].b
COUNTS = st.dictionaries(st.sampled_from(sorted(HIGHEST)), st.integers(1, 2**64 - 1), min_size=1)
SECTIONS = f"""
START_NODES_INFO
NodeGUID,FWInfo_Extended_Major,FWInfo_Extended_Minor,FWInfo_Extended_SubMinor
0x{LEAF.guid},0x1f,0x7d8,0x3e8
END_NODES_INFO

START_PM_INFO
NodeGUID,PortGUID,PortNumber,SymbolErrorCounter,SymbolErrorCounterExt,LinkDownedCounterExt,PortRcvErrors,PortXmitDataExtended
0x{LEAF.guid},0x{LEAF.guid},{LEAF.number},65535,70000,3,9,0x10000000000
END_PM_INFO

START_CABLE_INFO
NodeGuid,PortGuid,PortNum,Vendor,PN,SN,FWVersion,LengthDesc,Temperature
0x{LEAF.guid},0x{LEAF.guid},{LEAF.number},"Mellanox","MMA4Z00-NS","MT2301","46.120","3 m","42C"
0x{HOST.guid},0x{HOST.guid},1,"Other","DAC","X1","N/A","1 m","N/A"
END_CABLE_INFO

START_TEMP_SENSING
NodeGUID,CurrentTemperature
0x{LEAF.guid},61
END_TEMP_SENSING

START_PHY_BER
NodeGUID,PortGUID,PortNumber,Raw BER,Effective BER,Symbol BER
0x{LEAF.guid},0x{LEAF.guid},{LEAF.number},1.5e-9,1.5E-254,NA
END_PHY_BER
"""


def read(text: str) -> Telemetry:
    return decode_telemetry(text.encode(), FABRIC, file="counters.txt")


@settings(deadline=None)
@given(errors=st.dictionaries(st.sampled_from([LEAF, HOST, FABRIC.links[4].a]), COUNTS))
def test_ibqueryerrors(errors):
    """Listed counters as they are, of both kinds of device; every other linked port has zeros."""
    counters = read(printers.ibqueryerrors(FABRIC, errors)).counters
    assert counters.keys() == {end for link in FABRIC.links for end in (link.a, link.b)}
    for port, found in counters.items():
        assert found.values == dict.fromkeys(HIGHEST, 0) | errors.get(port, {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no `## Summary`"),
        ("ibwarn: [9] mad_rpc_open_port: can't open UMAD port", "the tool"),
        (printers.ibqueryerrors(FABRIC, {}).replace("Summary: 6", "Summary: 5"), "checked 5 of the fabric's 6"),
        (
            printers.ibqueryerrors(FABRIC, {}).replace("\n## Supp", "\n##   66 PMA query failures\n## Supp"),
            "66 queries failed",
        ),
        (printers.ibqueryerrors(FABRIC, {PortId("00000000000000ff", 1): {"PortRcvErrors": 1}}), "no device"),
        (printers.ibqueryerrors(FABRIC, {LEAF: {"PortRcvErrors": 1}}).replace("== 1]", "== 1"), "not understood"),
    ],
)
def test_ibqueryerrors_that_proves_nothing(text, why):
    """No summary (which exits well without a subnet manager), a part of the fabric, a device unknown: all refused."""
    with pytest.raises(ParseError, match=why):
        read(text)


def test_hidden_counters_are_unknown():
    """What was suppressed, or is below a threshold, is not zero: it was not read."""
    text = printers.ibqueryerrors(FABRIC, {LEAF: {"SymbolErrorCounter": 57}}, "[SymbolErrorCounter = 10]")
    counters = read(text.replace("Suppressed:", "Suppressed: LinkDownedCounter")).counters
    assert counters[LEAF].values["SymbolErrorCounter"] == 57
    assert HIGHEST.keys() - counters[HOST].values.keys() == {"SymbolErrorCounter", "LinkDownedCounter"}


def test_ibqueryerrors_with_all_its_options():
    """With --data and -r the same lines hold more: bytes in brackets, and the link below its port."""
    message = "[SymbolErrorCounter == 57] [PortXmitData == 16056 (62.719KB)]"
    text = printers.ibqueryerrors(FABRIC, {LEAF: {"SymbolErrorCounter": 57}}).replace(
        "[SymbolErrorCounter == 57]", message
    )
    link = '       Link info:   3   3[  ] ==( 4X 2.5 Gbps Active/  LinkUp)==>  0xa2  2  3[  ] "x" (Could be 12X )\n\n## Sum'
    assert read(text.replace("\n## Sum", link)).counters[LEAF].values["PortXmitData"] == 16056


def test_lost_ports_are_noticed():
    """The summary has how many ports have errors; fewer lines than that are a text cut off."""
    text = printers.ibqueryerrors(FABRIC, {LEAF: {"PortRcvErrors": 1}, HOST: {"PortRcvErrors": 2}})
    with pytest.raises(ParseError, match="2 ports have errors, 1 are listed"):
        read("\n".join(line for line in text.splitlines() if f"{HOST.guid} port 1:" not in line))


@pytest.mark.parametrize("extended", [True, False])
def test_perfquery(extended):
    """Ports by LID, one table after another; which table it was decides where counters stop."""
    text = printers.perfquery(1, LEAF.number, extended=extended, SymbolErrorCounter=65535, PortXmitData=5)
    counters = read(text + printers.perfquery(11, 1, extended=extended)).counters
    assert counters.keys() == {LEAF, HOST}
    assert counters[LEAF].values["PortXmitData"] == 5
    assert counters[LEAF].stopped("SymbolErrorCounter") is not extended


def test_devices_without_extended_error_counters():
    """Their extended table ends with what passes: the errors are unknown, not zero."""
    (found,) = read(printers.perfquery(1, LEAF.number).split("SymbolErrorCounter")[0]).counters.values()
    assert "PortRcvPkts" in found.values
    assert "SymbolErrorCounter" not in found.values


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (printers.perfquery(99, 1), "no LID 99"),
        (printers.perfquery(1, 255), "belongs to no link"),
        (printers.perfquery(1, 1) * 2, "a second time"),
        (printers.perfquery(1, 1).split("PortMulticastRcvPkts")[0], "PortMulticastRcvPkts is missing"),
        (printers.perfquery(1, 1).replace("..0", "..x", 1), "not understood"),
    ],
)
def test_perfquery_refused(text, why):
    """An unknown LID, the sum of all ports, a port twice, a table cut off."""
    with pytest.raises(ParseError, match=why):
        read(text)


def test_db_csv():
    """Extended counters where there are, transceivers, temperatures, firmware and error rates; NA is no figure."""
    found = read(printers.db_csv(FABRIC, SECTIONS))
    values = {"SymbolErrorCounter": 70000, "LinkDownedCounter": 3, "PortRcvErrors": 9, "PortXmitData": 1 << 40}
    assert found.counters == {LEAF: PortCounters(values, narrow=False)}
    assert found.transceivers[LEAF] == Transceiver("Mellanox", "MMA4Z00-NS", "MT2301", "46.120", "3 m", 42)
    assert (found.transceivers[HOST].firmware, found.transceivers[HOST].temperature_c) == ("", None)
    assert found.temperatures == {LEAF.guid: 61}
    assert found.firmware == {LEAF.guid: "31.2008.1000"}
    assert found.error_rates == {LEAF: ErrorRates(1.5e-9, 1.5e-254, None)}


@pytest.mark.parametrize(
    ("old", "new"), [(",70000,", ",many,"), ('"42C"', '"warm"'), (",1.5e-9,", ",nan,"), (",3,9,", ",3,")]
)
def test_db_csv_nonsense(old, new):
    """What is no figure is refused with its line, and so is a row that lacks a cell."""
    with pytest.raises(ParseError) as caught:
        read(printers.db_csv(FABRIC, SECTIONS.replace(old, new)))
    assert caught.value.where.split(":")[1].isdigit()


def test_time_of_reading():
    """A comment with a time and its zone gives the time; anything else does not."""
    text = printers.ibqueryerrors(FABRIC, {})
    assert read("# 2026-01-31T08:00:00+01:00\n" + text).at == datetime(2026, 1, 31, 7, tzinfo=UTC)
    assert read("# at 2026-01-31T08:00:00Z\n" + text).at == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert read("# 2026-99-31T08:00:00Z\n" + text).at is None
    assert read("# 2026-01-31T08:00:00\n" + text).at is None


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_text(data):
    """Whatever is lost or overwritten: a typed error that names the file, or a reading, never a traceback."""
    ill = {LEAF: {"PortRcvErrors": 3, "LinkDownedCounter": 1}}
    texts = [printers.ibqueryerrors(FABRIC, ill), printers.perfquery(1, 1), printers.db_csv(FABRIC, SECTIONS)]
    text = data.draw(st.sampled_from(texts))
    at, lost = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 30))
    damaged = text[:at] + data.draw(st.text(max_size=8)) + text[at + lost :]
    try:
        found = decode_telemetry(damaged.encode("utf-8", "replace"), FABRIC, file="counters.txt")
    except ClusterctlError as error:
        found = error.where
    assert isinstance(found, Telemetry) or found.startswith("counters.txt")


TRAFFIC = f"""\
Data Counters for 0x{LEAF.guid} "leaf-1"
   GUID 0x{LEAF.guid} port 0: [PortXmitData == 0 (0.000B)] [PortRcvData == 0 (0.000B)] [PortXmitPkts == 0 (0.000)]
   GUID 0x{LEAF.guid} port {LEAF.number}: [PortXmitData == 400000001152 (1.455TB)] [PortRcvData == 1800 (7.031KB)]

## Summary: {len(FABRIC.devices)} nodes checked, 0 bad nodes found
##          11 ports checked, 0 ports have errors beyond threshold
## Thresholds:
## Suppressed:
"""
"""As `ibqueryerrors --counters` of infiniband-diags 44 prints it against ibsim, shortened."""


def test_data_counters_follow_the_error_counters():
    """Both outputs in one text: a port has both; one that the second part does not show has no data counter."""
    text = (
        "# 2026-01-31T00:00:00.000000Z\n" + printers.ibqueryerrors(FABRIC, {LEAF: {"SymbolErrorCounter": 7}}) + TRAFFIC
    )
    found = read(text)
    assert found.at == datetime(2026, 1, 31, tzinfo=UTC)
    assert found.counters[LEAF].values["SymbolErrorCounter"] == 7
    assert found.counters[LEAF].values["PortXmitData"] == 400_000_001_152
    assert "PortXmitData" not in found.counters[HOST].values
    assert found.counters[HOST].values["SymbolErrorCounter"] == 0


def test_data_counters_alone_prove_no_error_counter():
    assert read(TRAFFIC).counters[LEAF].values.keys().isdisjoint(HIGHEST)


def test_data_counters_that_were_cut_off_are_refused():
    cut = TRAFFIC.partition("## Summary")[0]
    with pytest.raises(ParseError, match="cut off"):
        read(printers.ibqueryerrors(FABRIC, {}) + cut)
