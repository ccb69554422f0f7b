"""The watch: what rose on a node while a load ran, by the checks' own parsers and limits.

A node is read before and after each load, and sampled while it runs. A load that ends well although a part of the node
had an error meanwhile did not pass. What could not be read, or was counted from zero again, is INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from clusterctl.fleet.finding import Evidence, Finding, Verdict, worst
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.load_samples import LoadSamples
from clusterctl_burnin.check import Check, Expected, inconclusive
from clusterctl_burnin.loads.obstacles import WATCH
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.load_samples import LOAD_SAMPLES, samples_of
from clusterctl_burnin.sweep import SweepFindings, distinct

NAME = WATCH
EVENTS = frozenset(
    {Code.XID, Code.XID_MEMORY, Code.XID_OFF_THE_BUS, Code.SXID, Code.HCA_LINK_DOWNS, Code.NVLINK_ERRORS}
)
"""A load during which one of these was found did not pass, also where the finding by itself only warns."""
_AGAIN = "run the burn-in again"


@dataclass(frozen=True, slots=True)
class LoadRun:
    """A load of one node, with the controller's time of its start and the seconds that it took."""

    load: str
    started: datetime
    seconds: float

    def __str__(self) -> str:
        return f"during {self.load}, from {self.started:%H:%M:%S} UTC, {self.seconds:.0f} s"


def watched(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks that judge the time of a load."""
    return tuple(check for check in checks if check.watch is not None)


def probes(checks: Iterable[Check]) -> tuple[Probe, ...]:
    """Return what is read before and after a load, each probe once; the samples are there after it only."""
    return distinct(probe for check in checks if check.watch is not None for probe in check.watch.probes)


def samples_wanted(checks: Iterable[Check]) -> bool:
    """Return whether one of the checks judges what was sampled while a load ran."""
    return any(check.watch is not None and LOAD_SAMPLES in check.watch.probes for check in checks)


def judge(
    checks: Sequence[Check], before: Readings | str, after: Readings | str, expected: Expected, run: LoadRun
) -> SweepFindings:
    """Return what was found during a load, with its evidence. A reading that is text is the reason why there is none.

    The last finding is that of the watch itself: PASS names the checks that watched, INCONCLUSIVE why nothing did.
    """
    if isinstance(before, str):
        return _unread("before", before, run)
    if isinstance(after, str):
        return _unread("after", after, run)
    if before.boot_id != after.boot_id:
        return SweepFindings((_rebooted(run),), ())
    judged = [finding for check in checks for finding in check.found_during(before, after, expected)]
    blind = {finding.check: finding.cause for finding in judged if finding.verdict is Verdict.NOT_APPLICABLE}
    samples = samples_of(after)
    found = [_noted(finding, run, _second(finding, samples)) for finding in judged if finding.check not in blind]
    return SweepFindings((*found, _watched(checks, blind, run, samples)), tuple(_named(found, before, after)))


def _unread(when: str, reason: str, run: LoadRun) -> SweepFindings:
    error = UnmeasuredError(f"the node could not be read {when} the load: {reason}", remedy=_AGAIN)
    return SweepFindings((_noted(inconclusive(NAME, error, run.load), run),), ())


def _noted(finding: Finding, run: LoadRun, second: str = "") -> Finding:
    return replace(finding, cause=f"{finding.cause} ({run}{second})")


_SAMPLED = {
    "hca_errors": "port",
    "ethernet_link": "ethernet",
    "nvlink_errors": "nvlink",
    "gpu_ecc": "gpu_ecc",
}
"""Kind of the sampled counters, by the check that judges what rose."""


def _second(finding: Finding, samples: LoadSamples | None) -> str:
    """Return the second of the load in which the part's counters first rose, as text; empty where it is not known."""
    kind = _SAMPLED.get(finding.check)
    if samples is None or kind is None:
        return ""
    part = finding.subject.removeprefix("gpu ")
    risen = samples.rises(kind, part) if part else ()
    if finding.code is Code.HCA_LINK_DOWNS:
        risen = tuple(one for one in risen if one.counter == "link_downed")
    seconds = [at for one in risen for at, _ in one.rises]
    return f", first seen in second {min(seconds):.0f}" if seconds else ""


def _rebooted(run: LoadRun) -> Finding:
    return Finding(
        check=NAME,
        verdict=Verdict.FAIL,
        code=Code.LOAD_REBOOTED,
        subject=run.load,
        cause=f"the node booted again ({run})",
        remedy="look for a lost power supply, a power event or a machine check in the BMC's event log",
        deterministic=False,
    )


def _watched(checks: Sequence[Check], blind: Mapping[str, str], run: LoadRun, samples: LoadSamples | None) -> Finding:
    seeing = ", ".join(check.name for check in checks if check.name not in blind)
    unseen = "".join(f"; {name} did not: {cause}" for name, cause in blind.items())
    return Finding(
        check=NAME,
        verdict=Verdict.PASS,
        code=Code.PASSED,
        subject=run.load,
        cause=f"{seeing} watched the node ({run}){_peaks(samples)}{unseen}",
    )


_PEAKS = (("gpu", "temperature", "°C"), ("gpu", "power", "W"), ("adapter", "asic", "°C"))


_CONGESTION = {
    "port_xmit_wait": "waited to send for {:.3g} ticks a second",
    "np_ecn_marked_roce_packets": "received {:.3g} packets a second with ECN's mark",
    "rp_cnp_handled": "was slowed down by {:.3g} congestion notices a second",
}


def _congestion(samples: LoadSamples) -> Iterator[str]:
    """Yield the most congested port by each counter, as text: it is no fault, since a loaded fabric is congested."""
    risen = samples.rises("congestion")
    for counter, text in _CONGESTION.items():
        worst_first = sorted((one for one in risen if one.counter == counter), key=lambda one: -one.rose)
        if worst_first:
            top = worst_first[0]
            yield f"{top.part} {text.format(top.rose / max(1.0, samples.seconds))}"


def _peaks(samples: LoadSamples | None) -> str:
    """Return how often the node was sampled, and the highest values, as text."""
    if samples is None:
        return ""
    highs = []
    for kind, gauge, unit in _PEAKS:
        seen = [one for one in samples.highs(kind) if one.gauge == gauge]
        if seen:
            top = max(seen, key=lambda one: one.high)
            highs.append(f"{kind} {top.part} at most {top.high:.0f} {unit} in second {top.at:.0f}")
    shown = [*highs, *_congestion(samples)]
    peaks = f"; {', '.join(shown)}" if shown else ""
    return f", sampled {samples.samples} times in {samples.seconds:.0f} s{peaks}"


def _named(found: Iterable[Finding], *readings: Readings) -> Iterator[Evidence]:
    wanted = {digest for finding in found for digest in finding.evidence}
    yield from (item for one in readings for item in one.evidence().values() if item.digest in wanted)


def disturbed(load: str, found: Sequence[Finding]) -> Finding | None:
    """Return the finding on a load during which parts failed; None where nothing found contradicts the load."""
    against = [finding for finding in found if not finding.verdict.admits or finding.code in EVENTS]
    if not against:
        return None
    gravest = max(against, key=lambda finding: finding.verdict.rank)
    parts = ", ".join(dict.fromkeys(finding.subject for finding in against))
    verdict = worst([Verdict.INCONCLUSIVE, gravest.verdict])
    return Finding(
        check=load,
        verdict=verdict,
        code=Code.LOAD_DISTURBED,
        cause=f"the load ended, and its result does not count: {gravest.check} found something on {parts} meanwhile",
        remedy=gravest.remedy,
        root=gravest.key if not gravest.verdict.admits else "",
        deterministic=False,
        evidence=gravest.evidence,
    )
