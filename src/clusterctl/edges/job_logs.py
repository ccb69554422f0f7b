"""A folder of recorded logs of one job, read on all processors.

    DIR/job.json            what the scheduler recorded (formats/job_facts.py); may be missing
    DIR/FILE                logs of the whole job (slurm-123.out)
    DIR/HOST/kernel.log     the host's kernel log: dmesg -T, dmesg -x, or journalctl -k
    DIR/HOST/FILE           logs of the job's ranks on that host
    DIR/**/nccl_trace_rank_N, DIR/**/comm_lib_trace_rank_N   dumps of PyTorch's flight recorder
    DIR/HOST/pyspy_rank_N.json     stacks of a rank: py-spy dump --json
    DIR/HOST/kernel_stack_rank_N   /proc/PID/stack of a rank
    DIR/HOST/processes.json        what kept the ranks off the processor (formats/job_facts.py)
    DIR/HOST/bmc.json       grave events of the host's BMC (formats/job_facts.py)
    DIR/HOST/ib_counters.json, ib_counters_before.json   error counters of its ports after the failure, and before
    DIR/missing.json        what the collection could not read, as a list of texts

Text that ends in `.gz` is unpacked. Symbolic links are not followed. What cannot be read, or is no text, is reported as
missing.
"""

from __future__ import annotations

import gzip
import multiprocessing
import os
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from clusterctl.fleet.errors import ParseError, UsageError
from clusterctl.formats.flight_recorder import MAX_BYTES, RankRecord, parse_dump
from clusterctl.formats.job_facts import (
    JobFacts,
    moment,
    parse_bmc_events,
    parse_facts,
    parse_missing,
    parse_ports,
    parse_processes,
)
from clusterctl.formats.job_lines import TimeReader
from clusterctl.formats.py_spy import parse_dump as parse_py_spy
from clusterctl.formats.py_spy import parse_kernel_stack
from clusterctl.formats.training_steps import step_of
from clusterctl.jobs.case import AROUND
from clusterctl.jobs.evidence import BmcEvent, LinkErrors, Observation, Progress, RankProcess, Source, Stack
from clusterctl.jobs.scan import LogFile, scan

FACTS = "job.json"
MISSING = "missing.json"
BMC, COUNTERS, COUNTERS_BEFORE = "bmc.json", "ib_counters.json", "ib_counters_before.json"
PROCESSES = "processes.json"
KERNEL = frozenset({"kernel.log", "kernel.log.gz", "dmesg.txt", "dmesg.log"})
MAX_FILES = 200_000
_PIECE = 4 << 20
_SHARE = 64 << 20
"""Bytes that one process reads at a time; less than this in all is read without one."""
_TAIL = 256 << 10
"""Bytes of a log's end in which its last step is looked for."""
_DUMP = re.compile(r"(?:nccl|comm_lib)_trace_rank_(\d{1,7})$")
_PY_SPY = re.compile(r"pyspy_rank_(\d{1,7})\.json$")
_KERNEL_STACK = re.compile(r"kernel_stack_rank_(\d{1,7})$")
_RANK_LOG = re.compile(r"rank_(\d{1,7})\.(?:log|out|err)(?:\.gz)?$")
_FACTS_BYTES = 64 << 20
_SAMPLE, _NO_TEXT = 4096, 0.3
"""Bytes at a log's beginning, and the share of characters that are none, from which on it is no text."""
_NO_CHARACTER = re.compile("[\ufffd\x01-\x07\x0e-\x1a\x1c-\x1f\x7f]")
"""Not NUL: files that several hosts write have holes of it."""
_STACK_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEvidence:
    """What a folder holds. `ranks`: the host of each rank that has a log of its own; empty where it is not known."""

    facts: JobFacts
    observations: tuple[Observation, ...] = ()
    records: tuple[RankRecord, ...] = ()
    stacks: tuple[Stack, ...] = ()
    progress: Progress | None = None
    processes: tuple[RankProcess, ...] = ()
    bmc: tuple[BmcEvent, ...] = ()
    links: tuple[LinkErrors, ...] = ()
    ranks: Mapping[int, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """A range of a log, for one process. `end` is None for a packed file, which is read as a whole."""

    path: Path
    log: LogFile
    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class _StackFile:
    """A file with a stack of one rank: the kernel's, or that of the interpreter."""

    path: Path
    host: str
    rank: int
    kernel: bool


@dataclass(slots=True)
class _Files:
    """The files of a folder by what they are."""

    logs: list[tuple[Path, LogFile, int]] = field(default_factory=list)
    dumps: list[tuple[Path, int]] = field(default_factory=list)
    stacks: list[_StackFile] = field(default_factory=list)
    bmc: list[tuple[Path, str]] = field(default_factory=list)
    processes: list[tuple[Path, str]] = field(default_factory=list)
    counters: dict[tuple[str, str], Path] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    def add(self, path: Path, name: str, host: str, entry: os.DirEntry[str]) -> None:
        """Add a file by its name. `name`: within the folder; `host`: of which it is, empty where none is known."""
        if match := _DUMP.search(path.name):
            self.dumps.append((path, int(match[1])))
        elif match := _PY_SPY.search(path.name) or _KERNEL_STACK.search(path.name):
            self.stacks.append(_StackFile(path, host, int(match[1]), path.suffix != ".json"))
        elif host and path.name == BMC:
            self.bmc.append((path, host))
        elif host and path.name == PROCESSES:
            self.processes.append((path, host))
        elif host and path.name in (COUNTERS, COUNTERS_BEFORE):
            self.counters[host, path.name] = path
        elif name not in (FACTS, MISSING):
            source = Source.KERNEL if path.name in KERNEL else Source.JOB
            log = LogFile(name=name, host=host, source=source)
            self.logs.append((path, log, entry.stat(follow_symlinks=False).st_size))

    def read_kernel_since(self, since: datetime | None) -> None:
        """Leave out what kernels logged before a time."""
        for number, (path, log, size) in enumerate(self.logs):
            if log.source is Source.KERNEL:
                self.logs[number] = (path, replace(log, since=since), size)


def read_folder(folder: Path) -> FolderEvidence:
    """Read the folder. Raises `UsageError` where it holds no log, or where `job.json` is wrong."""
    files = _files(folder)
    missing = [f"{name}: cannot be read" for name in files.unreadable]
    if not files.logs and not files.dumps and not files.stacks and not (folder / MISSING).is_file() and not missing:
        raise UsageError(
            "holds no log", where=str(folder), remedy="put the job's logs into it (docs/how-to/job-why.md)"
        )
    facts = _facts(folder)
    times = TimeReader(_reference(facts, files), facts.zone)
    started = moment(facts.started, facts, where=FACTS)
    files.read_kernel_since(started - AROUND if started is not None else None)
    observations = tuple(one for part in _scanned(files, times, missing) for one in part)
    missing.extend(_no_texts(files, observations))
    return FolderEvidence(
        facts=facts,
        observations=observations,
        records=tuple(_records(files, missing)),
        stacks=tuple(_stacks(files, missing)),
        progress=_progress(files, times),
        processes=tuple(_processes(files, missing)),
        bmc=tuple(_bmc_events(files, missing)),
        links=tuple(_links(files, missing)),
        ranks=_ranks(files, observations),
        missing=(*_not_collected(folder), *missing),
        bytes_read=sum(size for _, _, size in files.logs),
    )


def _files(folder: Path) -> _Files:
    found = _Files()
    for number, (path, entry) in enumerate(_walk(folder, 0, found.unreadable)):
        if number >= MAX_FILES:
            remedy = "give the folder of one job"
            raise UsageError(f"holds more than {MAX_FILES} files", where=str(folder), remedy=remedy)
        relative = path.relative_to(folder)
        host = relative.parts[0] if len(relative.parts) > 1 else ""
        found.add(path, str(relative), host, entry)
    return found


def _walk(folder: Path, depth: int, unreadable: list[str]) -> Iterator[tuple[Path, os.DirEntry[str]]]:
    """Yield the plain files of a folder and of those within it, sorted; at most eight folders deep.

    Folders within it that cannot be read are added to `unreadable`.
    """
    try:
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if depth:
            unreadable.append(folder.name)
            return
        raise UsageError(
            f"cannot be read: {error.strerror}", where=str(folder), remedy="give a folder of logs"
        ) from None
    for entry in ordered:
        if entry.is_file(follow_symlinks=False):
            yield Path(entry.path), entry
        elif entry.is_dir(follow_symlinks=False) and depth < 8:
            yield from _walk(Path(entry.path), depth + 1, unreadable)


def _ranks(files: _Files, observations: Iterable[Observation]) -> Mapping[int, str]:
    """Return the ranks that have a log of their own, each with its host; none where names count the ranks of a host.

    The host is that of the folder where several hosts have such logs: those on a shared file system are read on one.
    """
    named = {
        log.name: (int(match[1]), log.host) for path, log, _ in files.logs if (match := _RANK_LOG.search(path.name))
    }
    hosts = dict(named.values())
    written = ((named.get(one.position[0]), one.rank) for one in observations if one.position is not None)
    if len(hosts) < len(named) or any(log and rank not in (None, log[0]) for log, rank in written):
        return {}
    several = len(set(hosts.values())) > 1
    return {rank: host if several else "" for rank, host in hosts.items()}


def _no_texts(files: _Files, observations: Iterable[Observation]) -> Iterator[str]:
    """Yield the logs in which no rule knows a line, and which are no text."""
    known = {one.position[0] for one in observations if one.position is not None}
    for path, log, size in files.logs:
        if size and log.name not in known and path.suffix != ".gz" and (problem := _no_text(path)):
            yield f"{log.name}: {problem}"


def _no_text(path: Path) -> str:
    """Return why a file is no text; empty where it is, or where the scan reports that it cannot be read."""
    try:
        with path.open("rb") as raw:
            sample = raw.read(_SAMPLE)
    except OSError:
        return ""
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"
    text = sample.decode(errors="replace")
    return "is mostly no UTF-8 text" if len(_NO_CHARACTER.findall(text)) > _NO_TEXT * len(text) else ""


def _facts(folder: Path) -> JobFacts:
    file = folder / FACTS
    if not file.is_file():
        return JobFacts(version=1)
    try:
        with file.open("rb") as raw:
            return parse_facts(raw.read(_FACTS_BYTES).decode(), where=str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file), remedy="write it as UTF-8") from None
    except ParseError as error:
        raise UsageError(error.message, where=error.where, remedy="docs/how-to/job-why.md has its fields") from None


def _reference(facts: JobFacts, files: _Files) -> datetime:
    """Return a moment at or after all lines: the job's end, else the newest file's."""
    ended = moment(facts.ended, facts, where=FACTS)
    if ended is not None:
        return ended
    newest = max((path.stat().st_mtime for path, _, _ in files.logs), default=0.0)
    return datetime.fromtimestamp(newest, UTC)


def _scanned(files: _Files, times: TimeReader, missing: list[str]) -> Iterator[tuple[Observation, ...]]:
    parts = [part for path, log, size in files.logs for part in _parts(path, log, size)]
    total = sum(size for _, _, size in files.logs)
    workers = min(len(os.sched_getaffinity(0)), len(parts), max(1, total // _SHARE))
    if workers < 2:
        results: Iterable[tuple[tuple[Observation, ...], str]] = (_scan_part(part, times) for part in parts)
        yield from _kept(results, missing)
        return
    # a fork of a process with threads, such as the web service, may hold a lock of a thread that it does not have
    context = multiprocessing.get_context("fork" if threading.active_count() == 1 else "forkserver")
    with ProcessPoolExecutor(workers, context) as pool:
        running = pool.map(_scan_part, parts, [times] * len(parts), chunksize=1 if len(parts) < 1000 else 32)
        yield from _kept(running, missing)


def _kept(
    results: Iterable[tuple[tuple[Observation, ...], str]], missing: list[str]
) -> Iterator[tuple[Observation, ...]]:
    for observations, problem in results:
        if problem:
            missing.append(problem)
        yield observations


def _parts(path: Path, log: LogFile, size: int) -> Sequence[_Part]:
    if path.suffix == ".gz":
        return [_Part(path, log, 0, None)]
    return [_Part(path, log, start, min(size, start + _SHARE)) for start in range(0, size, _SHARE)]


def _scan_part(part: _Part, times: TimeReader) -> tuple[tuple[Observation, ...], str]:
    """Return the observations of a part, and why it could not be read; empty where it could."""
    try:
        with part.path.open("rb") as raw:
            return scan(_pieces(raw, part), part.log, times), ""
    except (OSError, EOFError, zlib.error) as error:
        return (), f"{part.log.name}: {error.strerror if isinstance(error, OSError) and error.strerror else error}"


def _pieces(raw: BinaryIO, part: _Part) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines; a part begins with the first line that begins in it, and ends with the last one."""
    stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if part.end is None else raw
    at = part.start
    if part.start:
        stream.seek(part.start - 1)
        at = part.start - 1 + len(stream.readline())
    while part.end is None or at < part.end:
        piece = stream.read(_PIECE if part.end is None else min(_PIECE, part.end - at))
        if not piece:
            return
        piece += stream.readline(_PIECE)
        yield at, piece
        at += len(piece)


def _document(path: Path) -> str:
    """Return the text of a small document. Raises `ParseError`."""
    try:
        with path.open("rb") as raw:
            return raw.read(_STACK_BYTES).decode()
    except OSError as error:
        raise ParseError(str(error.strerror), where=path.name) from None
    except UnicodeDecodeError:
        raise ParseError("is not UTF-8", where=path.name) from None


def _not_collected(folder: Path) -> tuple[str, ...]:
    file = folder / MISSING
    if not file.is_file():
        return ()
    try:
        return parse_missing(_document(file), where=MISSING)
    except ParseError as error:
        return (f"{MISSING}: {error.message}",)


def _bmc_events(files: _Files, missing: list[str]) -> Iterator[BmcEvent]:
    for path, host in files.bmc:
        try:
            for at, text in parse_bmc_events(_document(path), where=path.name):
                yield BmcEvent(host=host, at=at, text=text)
        except ParseError as error:
            missing.append(f"{host}/{path.name}: {error.message}")


def _processes(files: _Files, missing: list[str]) -> Iterator[RankProcess]:
    for path, host in files.processes:
        try:
            for rank, state in sorted(parse_processes(_document(path), where=path.name).items()):
                yield RankProcess(rank=rank, host=host, stopped=state.stopped, throttled=state.throttled)
        except ParseError as error:
            missing.append(f"{host}/{path.name}: {error.message}")


def _links(files: _Files, missing: list[str]) -> Iterator[LinkErrors]:
    """Yield the counters that rose; without a reading from before, none is known to have."""
    for (host, name), path in sorted(files.counters.items()):
        before = files.counters.get((host, COUNTERS_BEFORE))
        if name != COUNTERS or before is None:
            continue
        try:
            then, now = parse_ports(_document(before), where=before.name), parse_ports(_document(path), where=path.name)
        except ParseError as error:
            missing.append(f"{host}/{path.name}: {error.message}")
            continue
        for device, counters in sorted(now.items()):
            for counter, value in sorted(counters.items()):
                increase = value - then.get(device, {}).get(counter, value)
                if increase > 0:
                    yield LinkErrors(host=host, device=device, counter=counter, increase=increase)


def _records(files: _Files, missing: list[str]) -> Iterator[RankRecord]:
    for path, rank in files.dumps:
        try:
            with path.open("rb") as raw:
                yield parse_dump(raw.read(MAX_BYTES + 1), rank=rank, where=path.name)
        except OSError as error:
            missing.append(f"{path.name}: {error.strerror}")
        except ParseError as error:
            missing.append(f"{path.name}: {error.message}")


def _stacks(files: _Files, missing: list[str]) -> Iterator[Stack]:
    """Yield one stack for each rank: of its interpreter, and of the kernel where it waits there."""
    frames: dict[int, tuple[str, ...]] = {}
    kernel: dict[int, tuple[str, ...]] = {}
    hosts: dict[int, str] = {}
    for file in files.stacks:
        try:
            with file.path.open("rb") as raw:
                text = raw.read(_STACK_BYTES).decode(errors="replace")
            if file.kernel:
                kernel[file.rank] = parse_kernel_stack(text)
            else:
                frames[file.rank] = parse_py_spy(text, where=file.path.name)
            hosts[file.rank] = file.host
        except OSError as error:
            missing.append(f"{file.path.name}: {error.strerror}")
        except ParseError as error:
            missing.append(f"{file.path.name}: {error.message}")
    for rank in sorted(hosts):
        yield Stack(rank=rank, host=hosts[rank], frames=frames.get(rank, ()), kernel=kernel.get(rank, ()))


def _progress(files: _Files, times: TimeReader) -> Progress | None:
    """Return the last step that any log of the job shows."""
    found = [
        progress
        for path, log, size in files.logs
        if log.source is Source.JOB and path.suffix != ".gz"
        if (progress := _last_step(path, size, times)) is not None
    ]
    return max(found, key=lambda one: one.iteration, default=None)


def _last_step(path: Path, size: int, times: TimeReader) -> Progress | None:
    try:
        with path.open("rb") as raw:
            raw.seek(max(0, size - _TAIL))
            lines = raw.read(_TAIL).decode(errors="replace").replace("\r", "\n").split("\n")
    except OSError:
        return None  # the scan of the same file reports it
    for number in range(len(lines) - 1, -1, -1):
        step = step_of(lines[number])
        if step is not None:
            above = reversed(lines[max(0, number - 40) : number + 1])
            return Progress(iteration=step.number, at=next((at for line in above if (at := times.read(line))), None))
    return None
