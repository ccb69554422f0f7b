"""What the checks share of a load's samples: the program that runs in parallel with the loads, and what it printed."""

from __future__ import annotations

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.load_samples import LoadSamples, parse_load_samples
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

LOAD_SAMPLES = Probe("load_samples", ("load-samples",), timeout=30.0, max_bytes=8 << 20)
"""Read after the load only: what the sampler reads then is of the next load."""
LONGEST_S = 48 * 3600
"""No suite lasts longer."""
_AGAIN = "run the burn-in again"
_WHAT = {"gpu": "the GPUs", "pci": "PCIe errors", "adapter": "the adapters' temperatures"}


def sampler_begun(name: str) -> Probe:
    """Return what waits before a load until the sampler of that name runs: it has all that is logged from then on."""
    return Probe("load_sampler_begun", ("load-samples", "ready", name), timeout=30.0, max_bytes=4096, first=True)


def sampler(interval: float, slow: float, name: str) -> Probe:
    """Return the program that samples every `interval` seconds, and every `slow` seconds what costs more."""
    argv = ("load-sampler", f"{interval:g}", f"{slow:g}", str(LONGEST_S), name)
    return Probe("load_sampler", argv, timeout=float(LONGEST_S + 60), max_bytes=4096)


def sampled(readings: Readings) -> LoadSamples:
    """Return the samples of the load. Raises `UnmeasuredError` where there are none.

    A check judges what it finds in them, and then calls `require_all_sampled`: what was not read hides no error that
    was.
    """
    result = readings.result(LOAD_SAMPLES)
    if result.rc != 0:
        cause = f"the node was not sampled while the load ran: {result.error_output}"
        raise UnmeasuredError(cause, remedy=_AGAIN, code=Code.LOAD_NOT_SAMPLED, fault="sampler")
    return parse_load_samples(result.stdout)


def require_all_sampled(samples: LoadSamples, kind: str) -> None:
    """Raise `UnmeasuredError` where a part of that kind could not be read, or was counted from zero again."""
    reason = samples.errors.get(kind) or _again_from_zero(samples, kind)
    if reason:
        cause = f"{_WHAT[kind]} were not all sampled while the load ran: {reason}"
        raise UnmeasuredError(cause, remedy=_AGAIN, code=Code.LOAD_NOT_SAMPLED, fault=kind)


def _again_from_zero(samples: LoadSamples, kind: str) -> str:
    parts = dict.fromkeys(one.part for one in samples.counters if one.kind == kind and one.reset)
    return f"the counters of {', '.join(parts)} began again from zero" if parts else ""


def samples_of(readings: Readings) -> LoadSamples | None:
    """Return the samples, to complete what else is known of a load; None where there are none."""
    result = readings.probes.get(LOAD_SAMPLES.name)
    if result is None or result.rc != 0:
        return None
    try:
        return parse_load_samples(result.stdout)
    except ParseError:
        return None
