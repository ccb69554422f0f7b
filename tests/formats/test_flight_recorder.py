"""Dumps of the flight recorder: states of groups, and files that are cut, hostile or of another version."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.flight_recorder import MAX_BYTES, GroupState, parse_dump


def entry(sequence: int, state: str = "completed", group: str = "0", **more: Any) -> dict[str, Any]:
    return {
        "record_id": sequence,
        "pg_id": 0,
        "process_group": (group, "default_pg"),
        "collective_seq_id": sequence,
        "p2p_seq_id": 0,
        "op_id": sequence,
        "is_p2p": False,
        "profiling_name": "nccl:all_reduce",
        "state": state,
        "time_created_ns": 1_700_000_000_000_000_000 + sequence,
        "retired": state == "completed",
        "frames": [{"name": "main", "filename": "train.py", "line": 3}],
    } | more


def dump(*entries: dict[str, Any], **more: Any) -> bytes:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
    return pickle.dumps({"version": "2.10", "entries": list(entries), "pg_config": config} | more)


def test_how_far_a_rank_came() -> None:
    """The last enqueued and the last completed operation, and when the one that is stuck was enqueued."""
    record = parse_dump(dump(entry(7), entry(9, "scheduled"), entry(8, "started")), rank=3, where="x")
    (state,) = record.groups
    assert record.rank == 3
    assert (state.group, state.members, state.sequence, state.completed) == ("0", 4, 9, 7)
    assert state.created == pytest.approx(1_700_000_000, abs=1)
    assert state.operation == "nccl:all_reduce"


def test_an_empty_ring_is_a_rank_that_enqueued_nothing() -> None:
    (state,) = parse_dump(dump(), rank=0, where="x").groups
    assert state == GroupState(group="0", members=4, sequence=-1, completed=-1, ranks=frozenset(range(4)))


def test_point_to_point_operations_are_left_out() -> None:
    """Their numbers are of a pair of ranks."""
    (state,) = parse_dump(dump(entry(5), entry(99, "started", is_p2p=True)), rank=0, where="x").groups
    assert state.sequence == 5


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("a class was built",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        dump(entry(1))[:-20],
        pickle.dumps(Harmful()),
        pickle.dumps({"version": "2.10", "entries": [Harmful()]}),
        pickle.dumps({"version": "2.10", "entries": ["text"]}),
        pickle.dumps({"version": "9.1", "entries": []}),
        pickle.dumps([1, 2]),
        b"\x80\x04" + b"(" * 2000,
    ],
    ids=range(9),
)
def test_what_is_no_dump_is_refused(content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of the file is run; the error names the file."""
    with pytest.raises(ParseError) as caught:
        parse_dump(content, rank=0, where="nccl_trace_rank_0")
    assert caught.value.where == "nccl_trace_rank_0"
    assert capsys.readouterr().out == ""


def test_a_huge_file_is_refused_before_it_is_read() -> None:
    with pytest.raises(ParseError, match="larger"):
        parse_dump(bytes(MAX_BYTES + 1), rank=0, where="x")
