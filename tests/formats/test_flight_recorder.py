"""Dumps of the flight recorder: states of groups, and files that are cut, hostile or of another version."""

from __future__ import annotations

import contextlib
import pickle
import resource
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


def nested(depth: int) -> bytes:
    """Return the opcodes of a tuple that holds another one twice, and so on."""
    first = b")q\x00"
    return first + b"".join(b"h%ch%c\x86q%c" % (one, one, one + 1) for one in range(depth))


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02}X\x07\x00\x00\x00versionr\xff\xff\xff\x7fK\x01s.",
        b"\x80\x02}" + nested(60) + b"K\x01s.",
        b"\x80\x02}" + b")" + b"2\x86" * 60 + b"K\x01s.",
        dump(entry(5, time_created_ns=10**400, collective_seq_id=10**400)),
        dump(entry(5, profiling_name=[[]] * 3, process_group=([[]],)), version=[[]]),
    ],
    ids=["a memo of 16 GiB", "a hash of 2^60 steps", "the same by DUP", "endless numbers", "containers for texts"],
)
@pytest.mark.timeout(30)
def test_a_short_dump_takes_little_memory_and_time(content: bytes) -> None:
    """Found by fuzzing: 40 bytes took 13 GiB. Each is refused, or read without what it holds in place of a value."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with contextlib.suppress(ParseError):
        record = parse_dump(content, rank=0, where="x")
        assert [(one.sequence, one.created) for one in record.groups] == [(-1, None)]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_tuples_of_texts_may_be_shared() -> None:
    """Python's pickler writes an equal name once; PyTorch's too."""
    named = ("0", "default_pg")
    (state,) = parse_dump(dump(*(entry(one, process_group=named) for one in range(5))), rank=0, where="x").groups
    assert state.sequence == 4


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
