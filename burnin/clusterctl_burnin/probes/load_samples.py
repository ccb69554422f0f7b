"""What the checks share of a load's samples: the program that runs in parallel with the load, and what it printed."""

from __future__ import annotations

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.load_samples import LoadSamples, parse_load_samples
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

LOAD_SAMPLES = Probe("load_samples", ("load-samples",), timeout=30.0, max_bytes=8 << 20)
"""Read after the load only: it ends the sampler."""
SAMPLER_BEGUN = Probe("load_sampler_begun", ("load-samples", "ready"), timeout=30.0, max_bytes=4096)
"""Before the load: it waits until the sampler runs."""
LONGEST_S = 48 * 3600
"""No load lasts longer."""
_AGAIN = "run the burn-in again"
_WHAT = {"gpu": "the GPUs", "pci": "PCIe errors", "adapter": "the adapters' temperatures"}


def sampler(interval: float, slow: float) -> Probe:
    """Return the program that samples every `interval` seconds, and every `slow` seconds what costs more."""
    argv = ("load-sampler", f"{interval:g}", f"{slow:g}", str(LONGEST_S))
    return Probe("load_sampler", argv, timeout=float(LONGEST_S + 60), max_bytes=4096)


def sampled(readings: Readings, kind: str) -> LoadSamples:
    """Return the samples of the load. Raises `UnmeasuredError` where that kind of part was not sampled."""
    result = readings.result(LOAD_SAMPLES)
    if result.rc != 0:
        cause = f"the node was not sampled while the load ran: {result.error_output}"
        raise UnmeasuredError(cause, remedy=_AGAIN, code=Code.LOAD_NOT_SAMPLED, fault="sampler")
    samples = parse_load_samples(result.stdout)
    if kind in samples.errors:
        cause = f"{_WHAT[kind]} were not sampled while the load ran: {samples.errors[kind]}"
        raise UnmeasuredError(cause, remedy=_AGAIN, code=Code.LOAD_NOT_SAMPLED, fault=kind)
    return samples


def samples_of(readings: Readings) -> LoadSamples | None:
    """Return the samples, to complete what else is known of a load; None where there are none."""
    result = readings.probes.get(LOAD_SAMPLES.name)
    if result is None or result.rc != 0:
        return None
    try:
        return parse_load_samples(result.stdout)
    except ParseError:
        return None
