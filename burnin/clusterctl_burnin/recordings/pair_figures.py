"""Which pair of nodes measured what on which rail, read from recorded evidence of ib_write_bw."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Evidence
from clusterctl.formats.infiniband.perftest import parse_bandwidth
from clusterctl_burnin.loads.multi_node.ib_write_bw import FIRST_PORT, NAME
from clusterctl_burnin.probe import Probe, Status
from clusterctl_burnin.recordings.export import result_in

_LAST_OPTION = "--report_gbits"
_QUOTING = frozenset("'\"\\")


@dataclass(frozen=True, slots=True)
class PairFigure:
    """`source` wrote to `target` over their devices of one rail (from 0), `value` Gb/s."""

    source: str
    target: str
    rail: int
    device: str
    value: float


def _argv(command: str) -> list[str]:
    return shlex.split(command) if _QUOTING.intersection(command) else command.split()  # `shlex` is fifty times slower


def pair_figure(evidence: Evidence, names: Mapping[str, str]) -> PairFigure | None:
    """Return the figure of a client's evidence; None for a server's, without a measurement, and for other commands.

    `names`: node names by host address.
    """
    if not evidence.source.startswith(f"{NAME} "):
        return None
    argv = _argv(evidence.source)
    if argv[-1] == _LAST_OPTION or "-d" not in argv or "-p" not in argv:
        return None
    port, device, address = argv[argv.index("-p") + 1], argv[argv.index("-d") + 1], argv[-1]
    result = result_in(Probe(NAME, tuple(argv)), evidence)
    if result is None or (result.status, result.rc) != (Status.OK, 0) or not port.isdigit():
        return None
    try:
        value = min(row.average for row in parse_bandwidth(result.stdout))
    except ParseError:
        return None
    return PairFigure(evidence.where, names.get(address, address), int(port) - FIRST_PORT, device, value)
