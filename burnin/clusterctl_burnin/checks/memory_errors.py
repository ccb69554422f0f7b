"""memory_errors: no memory module has lost data, and none needs its ECC more often than a sound one.

The kernel's EDAC drivers count from the moment they are loaded on, at boot: what they count is judged by that time.
One uncorrected error is one too many. Corrected ones are judged as a rate, by the tail of the Poisson distribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.cpu_memory import MemoryErrors, parse_edac_counters, parse_memory_modules
from clusterctl_burnin.chance import exceeds
from clusterctl_burnin.check import Area, Check, Expected, Watch
from clusterctl_burnin.checks.memory_size import MODULES
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError, seconds_between

MEMORY_CORRECTED_MAX = LimitKey(
    "memory_corrected_max",
    "per 24 hours",
    default=50,
    source="rasdaemon's default (PAGE_CE_THRESHOLD), there for one page; a sound module has a few in a month",
)

COUNTERS = Probe("edac_counters", ("edac-counters",))
_NAME = "memory_errors"
_DAY_S = 24 * 3600
_NO_DRIVER = (
    "load the EDAC driver of the processor (i10nm_edac, skx_edac or amd64_edac; see the kernel log for EDAC), and let "
    "the BIOS leave memory errors to the OS or report them to it (ghes_edac)"
)
_FIND = "find the socket by that label in the server's manual, or in the BMC's event log"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    counted = parse_edac_counters(readings.text(COUNTERS))
    installed = sum(module.gib > 0 for module in parse_memory_modules(readings.text(MODULES)))
    _require_all(counted, installed)
    bad = [finding for errors in counted for finding in _bad(errors, expected.limits)]
    yield from bad
    if not bad:
        yield passed(
            _NAME, "no memory module reports an error", measured=Quantity(0, "errors"), expected=exactly(0, "errors")
        )


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge what each module's counters gained, over the time between the two readings."""
    seconds = seconds_between(before, after, COUNTERS)
    earlier = {(errors.name, errors.location): errors for errors in parse_edac_counters(before.text(COUNTERS))}
    reset = []
    for errors in parse_edac_counters(after.text(COUNTERS)):
        was = earlier.pop((errors.name, errors.location), None)
        if was is None or errors.corrected < was.corrected or errors.uncorrected < was.uncorrected:
            reset.append(_part(errors))
            was = replace(errors, corrected=0, uncorrected=0)  # what it shows, it has counted since then
        gained = replace(
            errors,
            corrected=errors.corrected - was.corrected,
            uncorrected=errors.uncorrected - was.uncorrected,
            seconds=round(seconds),
        )
        yield from _bad(gained, expected.limits)
    if reset:
        raise UnmeasuredError(f"the counters of {', '.join(reset)} were reset", remedy="run the burn-in again")
    if earlier:
        names = ", ".join(map(_part, earlier.values()))
        raise UnmeasuredError(f"no driver counts the errors of {names} any longer", remedy=_NO_DRIVER)


def _require_all(counted: Sequence[MemoryErrors], installed: int) -> None:
    """Raise `UnmeasuredError` where a module is not watched: its lack of errors proves nothing."""
    watched = sum(errors.placed for errors in counted)
    if not watched:
        raise UnmeasuredError("no driver counts memory errors: EDAC knows no memory module", remedy=_NO_DRIVER)
    if watched < installed:
        cause = f"EDAC counts the errors of {watched} of {installed} memory modules"
        raise UnmeasuredError(cause, remedy=_NO_DRIVER)


def _bad(errors: MemoryErrors, limits: Limits) -> Iterator[Finding]:
    limit = limits[MEMORY_CORRECTED_MAX]
    since = f"in {errors.seconds / 3600:.1f} hours"
    replace = f"{_FIND}, reseat the module, run the burn-in again; if it has another error, replace it"
    if errors.uncorrected:
        cause = f"the memory module had {errors.uncorrected} uncorrected errors {since} and lost data"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.MEMORY_UNCORRECTED,
            subject=_part(errors),
            cause=cause,
            measured=Quantity(errors.uncorrected, "errors"),
            expected=exactly(0, "errors"),
            remedy=replace,
        )
    if not errors.corrected:
        return
    rate = errors.corrected * _DAY_S / max(errors.seconds, 1)
    cause = f"the memory module had {errors.corrected} corrected errors {since}"
    if exceeds(errors.corrected, errors.seconds, limit.value / _DAY_S):
        cause += ", more than a healthy module has"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.MEMORY_CORRECTED_RATE,
            subject=_part(errors),
            cause=cause,
            measured=limit.quantity(rate),
            expected=limit.at_most,
            remedy=replace,
        )
    elif not errors.uncorrected:
        watch = f"{_FIND}, and replace the module if later burn-ins find more errors"
        yield Finding(
            check=_NAME,
            verdict=Verdict.WARN,
            code=Code.MEMORY_CORRECTED,
            subject=_part(errors),
            cause=cause,
            measured=Quantity(errors.corrected, "errors"),
            remedy=watch,
        )


def _part(errors: MemoryErrors) -> str:
    """Return `DIMM A3 (channel 0 slot 1)`; of errors that the hardware could not place, the controller."""
    if not errors.placed:
        return f"memory controller {errors.name}"
    return f"{errors.name} ({errors.location})" if errors.location else errors.name


CHECK = Check(
    _NAME,
    (COUNTERS, MODULES),
    _judge,
    area=Area.MEMORY,
    limits=(MEMORY_CORRECTED_MAX,),
    after_loads=True,
    watch=Watch((COUNTERS,), _judge_load),
)
