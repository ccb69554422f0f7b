"""Probes: what is run on a node, and the document that comes back. One SSH session carries all of them."""

from __future__ import annotations

import enum
import functools
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from clusterctl.fleet.errors import ClusterctlError, ParseError
from clusterctl.fleet.finding import Digest, Evidence, Origin
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.documents import MisfitError, read_json
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.package_data import names_in, text_of
from clusterctl_burnin.tools import installation

PARALLEL = 8
"""Probes that run at the same time on one node."""
KIB = 1024
_FOLDER = "node/programs"
_LOADER = """\
import sys, types
name = "clusterctl_burnin.node.processes"
text = sys.argv.pop(1)
if name not in sys.modules:
    sys.modules[name] = types.ModuleType(name)
    exec(text, sys.modules[name].__dict__)
exec(sys.argv.pop(1))
"""
"""Starts a program of the node. Arguments: the text of node/processes.py, that of the program, its arguments. The
supervisor has the first loaded already."""
_AGAIN = re.compile(r"^=== read again after (\d+\.\d+) s ===\n", re.MULTILINE)
"""The line that node/bundle.py prints between two readings."""


@functools.cache
def programs() -> Mapping[str, tuple[str, ...]]:
    """Return the built-in programs: by the first word of a probe's argv, the text of the program and of its worker.

    `gpu-load` is node/programs/gpu_load.py; its worker, which it starts in another Python, is gpu_load_worker.py.
    """
    names = [name for name in names_in(_FOLDER, suffix=".py") if not name.startswith("__")]
    files = {name: (name, f"{name}_worker") for name in names if not name.endswith("_worker")}
    return {
        name.replace("_", "-"): tuple(text_of(f"{_FOLDER}/{file}.py") for file in pair if file in names)
        for name, pair in files.items()
    }


def loader() -> tuple[str, str]:
    """Return the arguments of `python3 -c` that come before the text of a built-in program."""
    return _LOADER, text_of("node/processes.py")


NO_REQUIREMENTS = HostRequirements()


class UnmeasuredError(ClusterctlError):
    """A probe did not measure what a check needs; the check becomes INCONCLUSIVE with this message and remedy.

    `code` and `fault` become the finding's: checks that were not measured for the same reason have one root.
    """

    kind = "unmeasured"

    def __init__(self, message: str, *, remedy: str = "", code: Code = Code.NOT_MEASURED, fault: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.code = code
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Probe:
    """A command, run once for all the checks that read it.

    `timeout` in seconds; `max_bytes` of stdout (and of stderr) are kept. While it exits non-zero and its output
    contains `retry_on`, it is run again until its time-out. One that `waits` most of its time is started before
    others, and does not count among the `PARALLEL` that run at a time. No other is started until those that are `first`
    have ended. With `again_after` it runs again so many seconds after the first: counters are judged by what was
    added. The words of `programs` are built in; another tool is installed by `role`.
    """

    name: str
    argv: tuple[str, ...]
    timeout: float = 10.0
    max_bytes: int = 256 * KIB
    retry_on: str = ""
    waits: bool = False
    again_after: float = 0.0
    role: str = ""
    first: bool = False


@dataclass(frozen=True, slots=True)
class TwoReadings:
    """What a probe printed the first and the second time, and the seconds between the two starts."""

    first: str
    second: str
    seconds: float


class Status(enum.Enum):
    """How a probe ended. OK means only that it ended by itself: its exit code is judged by the check. MISSING: its
    tool is not there or, with the reason on stderr, it could not be started.
    """

    OK = "ok"
    TIMEOUT = "timeout"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe answered; `rc` is None unless it ended by itself, `started` is the node's clock."""

    name: str
    argv: tuple[str, ...]
    status: Status
    rc: int | None
    stdout: str
    stderr: str
    started: datetime
    seconds: float

    @property
    def error_output(self) -> str:
        """The last line that it wrote to stderr, or else to stdout: mostly why it failed."""
        lines = [line for line in (self.stderr.strip() or self.stdout).splitlines() if any(map(str.isalnum, line))]
        return lines[-1].strip()[:200] if lines else "it printed nothing"

    @property
    def command(self) -> str:
        return _joined(self.argv)


@functools.lru_cache(maxsize=1024)
def _joined(argv: tuple[str, ...]) -> str:
    """Return the command line, cached: thousands of nodes run the same few commands."""
    return shlex.join(argv)


@dataclass(frozen=True, slots=True)
class Readings:
    """Everything that one session brought back from a node. Times are the node's own clock.

    `recorded`: False where nothing records the answers, so that no finding names them as evidence.
    """

    host: str
    boot_id: str
    origin: Origin
    started: datetime
    finished: datetime
    probes: Mapping[str, ProbeResult] = field(default_factory=dict)
    recorded: bool = True
    _made: dict[str, tuple[Digest, Evidence]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def result(self, probe: Probe) -> ProbeResult:
        """Return the probe's result where it ended by itself; else raise `UnmeasuredError`."""
        found = self.probes.get(probe.name)
        if found is None:
            raise UnmeasuredError(
                f"{probe.name} did not report",
                remedy="run the burn-in again",
                code=Code.DID_NOT_REPORT,
                fault=probe.name,
            )
        if found.status is Status.MISSING and found.stderr:
            raise UnmeasuredError(
                f"{found.command} could not be started: {found.error_output}",
                remedy=(
                    "check which resource of the node is exhausted (processes, memory, open files), "
                    "then run the burn-in again"
                ),
                code=Code.PROBE_NOT_STARTED,
                fault=probe.name,
            )
        if found.status is Status.MISSING:
            raise UnmeasuredError(
                f"{probe.argv[0]} is not installed on the node",
                remedy=f"{installation(probe.argv[0], probe.role)}, then run the burn-in again",
                code=Code.TOOL_MISSING,
                fault=probe.argv[0],
            )
        if found.status is Status.TIMEOUT:
            raise UnmeasuredError(
                f"{found.command} did not answer within {min(probe.timeout, max(1.0, found.seconds)):.3g} s",
                remedy=f"look for a hung {probe.argv[0]} and for driver errors in the kernel log; reboot the node",
                code=Code.PROBE_TIMED_OUT,
                fault=probe.name,
            )
        return found

    def text(self, probe: Probe) -> str:
        """Return its stdout where it exited 0; else raise `UnmeasuredError`."""
        found = self.result(probe)
        if found.rc != 0:
            ours = probe.argv[0] in programs()  # no operator can run it by its name
            raise UnmeasuredError(
                f"{found.command} failed with exit code {found.rc}: {found.error_output}",
                remedy="repair that on the node"
                if ours
                else (f"run {found.command} on the node and repair what it reports"),
                code=Code.PROBE_FAILED,
                fault=probe.name,
            )
        return found.stdout

    def twice(self, probe: Probe) -> TwoReadings:
        """Return both outputs of a probe with `again_after`. Raises `UnmeasuredError` and `ParseError`."""
        first, *rest = _AGAIN.split(self.text(probe), maxsplit=1)
        if not rest:
            raise ParseError("the second reading is missing", where=probe.name)
        return TwoReadings(first, rest[1], float(rest[0]))

    def evidence(self) -> Mapping[str, Evidence]:
        """Return the raw output of each probe, by the probe's name."""
        return {name: self._evidence(name)[1] for name in self.probes if self.recorded}

    def digests(self, probes: Iterable[Probe]) -> tuple[Digest, ...]:
        """Return the evidence of a check that read `probes`."""
        return tuple(self._evidence(probe.name)[0] for probe in probes if self.recorded and probe.name in self.probes)

    def _evidence(self, name: str) -> tuple[Digest, Evidence]:
        """Return the evidence, made once: many checks read one probe."""
        if name not in self._made:
            evidence = self._evidence_of(self.probes[name])
            self._made[name] = (evidence.digest, evidence)
        return self._made[name]

    def _evidence_of(self, result: ProbeResult) -> Evidence:
        parts = [f"[{result.status.value}, exit code {result.rc}, {result.seconds} s]\n{result.stdout}"]
        if result.stderr:
            parts.append(f"[stderr]\n{result.stderr}")
        return Evidence(
            result.command, self.host, result.started, self.origin, "\n".join(parts).encode(errors="replace")
        )


def seconds_between(before: Readings, after: Readings, probe: Probe) -> float:
    """Return the seconds between the probe's starts in two readings, at least 1. Raises `UnmeasuredError`."""
    return max(1.0, (after.result(probe).started - before.result(probe).started).total_seconds())


@dataclass(frozen=True, slots=True)
class _ProbeDocument:
    argv: tuple[str, ...]
    status: Status
    rc: int | None
    stdout: str
    stderr: str
    started: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ReadingsDocument:
    """The document that the script prints, as it stands in recordings, too."""

    version: Literal[1]
    origin: Origin
    host: str
    boot_id: str
    started: float
    finished: float
    probes: dict[str, _ProbeDocument]

    def readings(self) -> Readings:
        return Readings(
            host=self.host,
            boot_id=self.boot_id,
            origin=self.origin,
            started=_utc(self.started),
            finished=_utc(self.finished),
            probes={name: _result(name, probe) for name, probe in self.probes.items()},
        )


def argv_for(user: str, *, privileged: bool) -> tuple[str, ...]:
    """Return what to run over SSH; `script` goes to its stdin. The node's site packages are not loaded."""
    python = ("python3", "-I", "-S", "-")
    return ("sudo", "-n", *python) if privileged and user != "root" else python


def script(
    probes: Iterable[Probe],
    *,
    parallel: int = PARALLEL,
    requirements: HostRequirements = NO_REQUIREMENTS,
    patience: float = 1.0,
    budget: float | None = None,
) -> bytes:
    """Return the program that runs `probes` on a node; needs Python 3.9 there and nothing else. The built-in programs
    give what they ask `patience` times as long. After `budget` seconds no probe runs any longer.
    """
    return _script(tuple(probes), parallel, requirements, patience, budget)


@functools.lru_cache(maxsize=64)
def _script(
    probes: tuple[Probe, ...], parallel: int, requirements: HostRequirements, patience: float, budget: float | None
) -> bytes:
    """Return the script, cached for thousands of nodes; it contains only what is needed there."""
    wanted = {probe.argv[0] for probe in probes}
    spec: dict[str, Any] = {
        "parallel": parallel,
        "requirements": requirements.data(),
        "patience": patience,
        "budget": budget,
        "loader": loader(),
        "programs": {name: texts for name, texts in programs().items() if name in wanted},
        "probes": [
            {
                "name": p.name,
                "argv": p.argv,
                "timeout": p.timeout,
                "max_bytes": p.max_bytes,
                "retry_on": p.retry_on,
                "waits": p.waits,
                "first": p.first,
                "again_after": p.again_after,
            }
            for p in probes
        ],
    }
    texts = [text_of("node/processes.py"), text_of("node/bundle.py")]
    call = f"main(json.loads({json.dumps(json.dumps(spec))}))"
    return f"import json, sys\nsys.argv[1:] = {texts!r}\n{_LOADER}\n{call}\n".encode()


def parse_readings(stdout: str) -> Readings:
    """Read the document that the script printed; `ParseError` when it is none."""
    wrong = "the node's answer is not a probe document"
    try:
        return read_json(ReadingsDocument, stdout).readings()
    except MisfitError as error:
        raise ParseError(f"{wrong}: {error.message}", where=error.field) from None
    except ParseError as error:
        raise ParseError(f"{wrong}: {error.message}") from None


def _result(name: str, probe: _ProbeDocument) -> ProbeResult:
    started = _utc(probe.started)
    return ProbeResult(name, probe.argv, probe.status, probe.rc, probe.stdout, probe.stderr, started, probe.seconds)


def _utc(epoch: float) -> datetime:
    try:
        return datetime.fromtimestamp(epoch, UTC)
    except (OSError, OverflowError, ValueError) as error:
        raise ParseError(f"{epoch:g} is no time of the calendar: {type(error).__name__}") from None
