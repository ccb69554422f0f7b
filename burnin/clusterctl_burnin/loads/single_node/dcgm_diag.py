"""dcgm_diag: NVIDIA's own diagnosis of all GPUs (`dcgmi diag`), which the role cuda_dcgm brings.

DCGM knows levels and no seconds: of the seconds that a suite gives it, the highest level is taken that is normally done
in them (https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html). The judgement has been held
against recorded answers of DCGM 3 and 4, on no GPU of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clusterctl.fleet.finding import Finding
from clusterctl_burnin.check import Area, Expected
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.dcgm import NAME, TIMEOUTS, findings
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

SERIALS = Probe(
    "gpu_serials",
    ("nvidia-smi", "--query-gpu=index,serial", "--format=csv,noheader"),
    timeout=20.0,
    role="nvidia_driver",
)
"""Not the checks' `nvidia-smi -q`: GPUs that work are warm, and no measure of idle ones."""
NORMAL_S: Mapping[int, int] = {1: 30, 2: 120, 3: 900, 4: 7200}
"""How long a level normally takes on eight GPUs."""
_DEFAULT_S = NORMAL_S[2]


def level_of(seconds: int) -> int:
    """Return the highest level that normally ends in so many seconds; the first where none does."""
    return max((level for level, normal in NORMAL_S.items() if normal <= seconds), default=1)


def _probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
    del limits
    level = level_of(_DEFAULT_S if seconds is None else seconds)
    argv = ("dcgmi", "diag", "--run", str(level), "--json")
    return Probe(NAME, argv, timeout=TIMEOUTS[level], max_bytes=2**20), SERIALS


_ANY = Probe(NAME, ("dcgmi", "diag"), timeout=TIMEOUTS[1])
"""By its name it is found, whatever its level was."""


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    result = readings.result(_ANY)
    yield from findings(_level(result.argv), result, _serials(readings), expected)


def _level(argv: tuple[str, ...]) -> int:
    """Return the level that was run; a recording may be older than the suite."""
    level = argv[argv.index("--run") + 1] if "--run" in argv[:-1] else ""
    if level.isdecimal() and int(level) in NORMAL_S:
        return int(level)
    raise UnmeasuredError(f"{' '.join(argv)} names no level of DCGM from 1 to 4", remedy="run the burn-in again")


def _serials(readings: Readings) -> Mapping[int, str]:
    """Return serials by nvidia-smi's index, which is DCGM's, too; none without its answer. `[N/A]` is none."""
    try:
        rows = [line.partition(",") for line in readings.text(SERIALS).splitlines()]
    except UnmeasuredError:
        return {}
    serials = {index.strip(): serial.strip() for index, _, serial in rows}
    return {int(index): serial for index, serial in serials.items() if index.isdecimal() and serial.isalnum()}


LOAD = NodeLoad(
    NAME,
    _probes,
    _judge,
    needs=frozenset({Area.GPU}),
    about=frozenset({Area.GPU}),
)
