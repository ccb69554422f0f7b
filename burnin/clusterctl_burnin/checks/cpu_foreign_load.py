"""cpu_foreign_load: on an idle node nothing but the burn-in uses the processors.

Other work takes time from each figure that is measured; on a new node it is a forgotten job, or a service that loops.
The probe's own session is left out. Threads of the kernel count, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.linux import BusyProcess, parse_cpu_load
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Probe, Readings

FOREIGN_CPU_MAX = LimitKey(
    "foreign_cpu_max",
    "% of a processor",
    default=100,
    source="own choice; the services of an idle node take a few percent of one processor together",
)
LOAD = Probe("cpu_load", ("cpu-load", "4"), timeout=20.0, waits=True)
_NAME = "cpu_foreign_load"
_NAMED = 3


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    processes = parse_cpu_load(readings.text(LOAD))
    limit = expected.limits[FOREIGN_CPU_MAX]
    percent = sum(one.percent for one in processes)
    if percent <= limit.value:
        yield passed(
            _NAME, "nothing else uses the processors", measured=limit.quantity(percent), expected=limit.at_most
        )
        return
    busiest = sorted(processes, key=lambda one: -one.percent)
    yield Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.CPU_FOREIGN_LOAD,
        subject=_subject(busiest[0]),
        cause=f"an idle node's processors are in use: {', '.join(map(_described, busiest[:_NAMED]))}",
        measured=limit.quantity(percent),
        expected=limit.at_most,
        remedy=_remedy(busiest[0]),
        deterministic=False,
    )


def _subject(process: BusyProcess) -> str:
    return f"{process.name} (process {process.pid})"


def _described(process: BusyProcess) -> str:
    owner = "the kernel" if process.kernel else process.user or "a user that is unknown"
    return f"{process.name} of {owner} {process.percent:.0f} %"


def _remedy(process: BusyProcess) -> str:
    if process.kernel:
        return f"read the kernel log for what {process.name} works on, then reboot the node and run the burn-in again"
    return (
        f"find out who started process {process.pid} (systemctl status {process.pid}), end it or its service, and "
        "run the burn-in again"
    )


CHECK = Check(
    _NAME,
    (LOAD,),
    _judge,
    area=Area.PROCESSOR,
    limits=(FOREIGN_CPU_MAX,),
    causes=(Cause("identity"),),
    idle_only=True,
)
