"""Dumps of PyTorch's NCCL flight recorder: a pickle of each rank (torch/csrc/distributed/c10d/FlightRecorder).

A dump is a file of a user: only plain values are read, no class is ever built. Versions 2.3 to 2.10. A rank of which
the dump is missing or cut is a finding, not an error of the reader.
"""

from __future__ import annotations

import functools
import io
import itertools
import pickle
import pickletools
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from clusterctl.fleet.errors import ParseError

MAX_BYTES = 64 * 1024 * 1024
_MAJOR = 2
_PUTS, _GETS = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}), frozenset({"GET", "BINGET", "LONG_BINGET"})
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "TUPLE": None, "FROZENSET": None}
"""With the number of their members; None: all since the last mark."""
_PLAIN = [["int"], ["int_or_bool"], ["bool"], ["float"], ["bytes_or_str"], ["bytes"], ["str"], ["None"]]
_MOST_PLAIN = 64
"""Members of a tuple that may be referred to again."""
_LARGEST = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """How far one rank came in one process group.

    sequence   number of the last collective operation that it enqueued; -1 for none
    completed  number of the last one that it completed; -1 for none
    created    when the first operation that is not complete was enqueued, in seconds since 1970; None where all are
    operation  its name (`nccl:all_reduce`)
    ranks      its members by their numbers in the job; empty where the dump does not list them
    """

    group: str
    members: int
    sequence: int
    completed: int
    created: float | None = None
    operation: str = ""
    ranks: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRecord:
    """The dump of one rank."""

    rank: int
    version: str
    groups: tuple[GroupState, ...]


class _Plain(pickle.Unpickler):
    """Reads numbers, texts and containers of them."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"holds the class {module[:60]}.{name[:60]}")


def parse_dump(content: bytes, *, rank: int, where: str) -> RankRecord:
    """Return the dump of a rank. Raises `ParseError` where it is cut, too large, or holds anything but plain values."""
    if len(content) > MAX_BYTES:
        raise ParseError(f"is larger than {MAX_BYTES >> 20} MiB", where=where)
    try:
        _require_bounded(content)
        document = _Plain(io.BytesIO(content)).load()
    except Exception as error:
        raise ParseError(f"is no whole dump of the flight recorder: {type(error).__name__}", where=where) from error
    if not isinstance(document, Mapping) or not isinstance(document.get("entries"), list | tuple):
        raise ParseError("holds no entries", where=where)
    version = _text(document.get("version"))[:20]
    if not version.startswith(f"{_MAJOR}."):
        raise ParseError(f"has version {version!r}; {_MAJOR}.x can be read", where=where)
    return RankRecord(rank=rank, version=version, groups=tuple(_groups(document, where)))


def _require_bounded(content: bytes) -> None:
    """Raise `UnpicklingError` where a few bytes would take memory or time without limit.

    The unpickler keeps room for the largest number of its memo, which a writer counts up from 0. A tuple that holds
    another one twice, and so on, is short to write, and its hash takes 2 to the power of its depth steps: only tuples
    of plain values may be referred to again.
    """
    nested, numbered = set[int](), 0
    pushed: deque[str] = deque(maxlen=_MOST_PLAIN)
    for opcode, argument, _ in pickletools.genops(content):
        name = opcode.name
        if name in _PUTS:
            number = numbered if argument is None else int(argument)
            if number > numbered:
                raise pickle.UnpicklingError("skips numbers of its memo")
            (nested.add if pushed and pushed[-1] == "nested" else nested.discard)(number)
            numbered += 1
        elif name == "DUP" or (name in _GETS and argument in nested):
            raise pickle.UnpicklingError("holds a tuple of containers twice")
        elif name in _TUPLES:
            pushed.append("tuple" if _is_flat(pushed, _TUPLES[name]) else "nested")
        else:
            pushed.append("mark" if name == "MARK" else "plain" if _is_plain(opcode) else "other")


def _is_flat(pushed: deque[str], members: int | None) -> bool:
    """Return whether the last values that were pushed are plain."""
    last = list(itertools.islice(reversed(pushed), members))
    if members is None:
        if "mark" not in last:
            return False
        last = last[: last.index("mark")]
    return all(kind == "plain" for kind in last)


def _is_plain(opcode: pickletools.OpcodeInfo) -> bool:
    """Return whether it pushes a number, a text or None."""
    return not opcode.stack_before and [one.name for one in opcode.stack_after] in _PLAIN


def _groups(document: Mapping[str, Any], where: str) -> Iterable[GroupState]:
    """Yield the state of each group; a group without an entry is one in which nothing was enqueued."""
    listed = _members(document.get("pg_config"))
    entries: dict[str, list[Mapping[str, Any]]] = {name: [] for name in listed}
    for entry in document["entries"]:
        if not isinstance(entry, Mapping):
            raise ParseError("holds an entry that is no mapping", where=where)
        if not entry.get("is_p2p"):
            entries.setdefault(_group(entry), []).append(entry)
    for name, found in entries.items():
        yield _state(name, listed.get(name, frozenset()), found)


def _group(entry: Mapping[str, Any]) -> str:
    name = entry.get("process_group")
    return _text(name[0] if isinstance(name, list | tuple) and name else entry.get("pg_id"))[:100]


def _members(config: Any) -> dict[str, frozenset[int]]:
    """Return the members of each group; `ranks` is a text like `[0, 1, 2]`."""
    if not isinstance(config, Mapping):
        return {}
    found = {}
    for name, group in config.items():
        ranks = group.get("ranks") if isinstance(group, Mapping) else None
        found[_text(name)[:100]] = _numbers(_text(ranks)[: 1 << 20])
    return found


def _text(value: object) -> str:
    """Return a text, or a number as one; nothing of a container, which may be endless."""
    return value if isinstance(value, str) else str(value) if _is_number(value) else ""


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and abs(value) < _LARGEST


@functools.lru_cache(maxsize=4096)
def _numbers(text: str) -> frozenset[int]:
    """Return the numbers of a list. The dumps of a job repeat the same lists: they share one set."""
    parts = (part.strip() for part in text.strip("[]() ").split(","))
    return frozenset(int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 8)


def _state(name: str, ranks: frozenset[int], entries: Iterable[Mapping[str, Any]]) -> GroupState:
    ordered = sorted(entries, key=_sequence)
    done = [entry for entry in ordered if entry.get("state") == "completed"]
    open_ = [entry for entry in ordered if entry.get("state") != "completed"]
    first = open_[0] if open_ else None
    return GroupState(
        group=name,
        members=len(ranks),
        sequence=_sequence(ordered[-1]) if ordered else -1,
        completed=_sequence(done[-1]) if done else -1,
        created=_created(first) if first is not None else None,
        operation=_text(first.get("profiling_name"))[:100] if first is not None else "",
        ranks=ranks,
    )


def _sequence(entry: Mapping[str, Any]) -> int:
    value = entry.get("collective_seq_id")
    return value if _is_number(value) else -1


def _created(entry: Mapping[str, Any]) -> float | None:
    value = entry.get("time_created_ns")
    return value / 1e9 if isinstance(value, float) or _is_number(value) else None
