from __future__ import annotations

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.infiniband.adapters import parse_ibstat
from clusterctl.formats.infiniband.perftest import parse_bandwidth
from clusterctl.formats.nvidia.collectives import parse_collective
from tests.formats.samples import sample

CA = """CA 'mlx5_10'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.39.1002
\tNode GUID: 0xA088C20300AB0001
\tPort 1:
\t\tState: Down
\t\tPhysical state: Polling
\t\tRate: 10
\t\tPort GUID: 0xa088c20300ab0001
\t\tLink layer: InfiniBand
"""
TABLE = (
    " #bytes     #iterations    BW peak[{0}]    BW average[{0}]   MsgRate[Mpps]\n 1000000    10   0.00   100.00   0.1\n"
)
HEAD = "#   Rank  0 Pid 1 on a device 0 [0x1b] H100\n#   Rank  1 Pid 2 on b device 0 [0x1b] H100\n"


@pytest.mark.parametrize(("name", "down"), [("ibstat.47.0.h100.all.active.0", 0), ("ibstat.47.0.h100.some.down.0", 3)])
def test_ibstat_recordings_are_read_without_loss(name: str, down: int) -> None:
    """Every adapter and every GUID of the recording, in natural order."""
    text = sample(name)
    adapters = parse_ibstat(text)
    assert len(adapters) == text.count("CA '") == 12
    assert all(f"Node GUID: 0x{a.node_guid}" in text for a in adapters)
    assert [a.name for a in adapters][-2:] == ["mlx5_10", "mlx5_11"]
    assert sum(not port.up for a in adapters for port in a.ports) == down


def test_ibstat_that_broke_off_is_refused() -> None:
    """A recording in which ibstat panicked half-way: the adapters before it prove nothing about the rest."""
    with pytest.raises(ParseError, match="ibpanic"):
        parse_ibstat(sample("ibstat.39.0.a100.failed.ibpanic.exit-255.0"))


def test_a_port_that_is_down() -> None:
    """State, physical state and GUID in lower case."""
    (adapter,) = parse_ibstat(CA)
    assert (adapter.name, adapter.infiniband, adapter.node_guid) == ("mlx5_10", True, "a088c20300ab0001")
    assert not adapter.ports[0].up


@pytest.mark.parametrize("text", ["", CA.replace("\t\tRate: 10\n", ""), CA[: CA.index("\tPort 1")], CA + "oops\n"])
def test_ibstat_text_that_is_not_whole_is_refused(text: str) -> None:
    """Nothing, a missing field, a missing port, a strange line."""
    with pytest.raises(ParseError):
        parse_ibstat(text)


def test_perftest_recordings() -> None:
    """Both sides' tables; MB are 2**20 bytes."""
    for name, rows in (("ib_loopback_8M_size.log", 2), ("ib_loopback_all_sizes.log", 24)):
        assert len(parse_bandwidth(sample(name))) == rows
    first = parse_bandwidth(sample("ib_loopback_8M_size.log"))[0]
    assert (first.message_bytes, first.iterations) == (8388608, 20000)
    assert first.average == pytest.approx(201.8, abs=0.01)


@pytest.mark.parametrize(("unit", "expected"), [("Gb/sec", 100.0), ("MB/sec", 0.8388608)])
def test_perftest_units(unit: str, expected: float) -> None:
    """The header's unit decides."""
    assert parse_bandwidth(TABLE.format(unit))[0].average == pytest.approx(expected)


@pytest.mark.parametrize(
    "text", ["", "Couldn't connect to 10.0.0.1:18515", TABLE.format("furlongs"), TABLE.splitlines()[1]]
)
def test_perftest_without_a_table_is_refused(text: str) -> None:
    """No table, an unknown unit, a row without its header."""
    with pytest.raises(ParseError):
        parse_bandwidth(text)


def test_nccl_recording_of_an_old_version() -> None:
    """34 rows of two halves, not validated; the totals at the end."""
    found = parse_collective(sample("nccl_allreduce.log"))
    assert (found.ranks, len(found.rows), found.wrong, found.out_of_bounds) == (8, 34, 0, 0)
    assert found.rows[-1].size == 8589934592
    assert found.rows[-1].busbw == 235.03
    assert found.average_busbw == 68.4048


def test_nccl_row_of_a_new_version() -> None:
    """With the root column and `#wrong`; one half or two."""
    row = " 17179869184 4294967296 float sum -1 68652 250.24 469.21 0"
    assert parse_collective(HEAD + row).rows[0].busbw == 469.21
    both = parse_collective(HEAD + row + " 68700 250.1 468.9 3")
    assert (both.rows[0].busbw, both.wrong, both.out_of_bounds) == (468.9, 3, None)


@pytest.mark.parametrize(
    "text", ["", HEAD, HEAD + " 1024 256 float sum -1 1 2\n", HEAD + " 1024 256 float sum -1 a b c d\n"]
)
def test_nccl_text_without_results_is_refused(text: str) -> None:
    """No rows, too few fields, no numbers."""
    with pytest.raises(ParseError):
        parse_collective(text)
