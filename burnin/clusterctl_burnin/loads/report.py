"""Findings of the loads by node, from trials: figures, and the partners that the node was measured with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from clusterctl.fleet.finding import Digest, Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import without_figure
from clusterctl_burnin.hunting.node_status import HuntBlame, Measured, NodeStatus
from clusterctl_burnin.limits.limit import Limit, Limits
from clusterctl_burnin.loads.model import Participant, Trial, TrialOutcome
from clusterctl_burnin.registry import GROUP_LOADS

_ELSEWHERE = {
    NodeStatus.PATH: "check the cables and switches between the two nodes, then run the burn-in again",
    NodeStatus.SHARED: "check the leaf switch, its cables and its links to the spines, then run the burn-in again",
    NodeStatus.COMMON: "check the switches, the load's program and its limits, then run the burn-in again",
}
_AGAIN = "run the burn-in again, together with other nodes"


def findings(
    measured: Iterable[Measured], members: Sequence[Participant], limits: Limits
) -> Mapping[str, tuple[Finding, ...]]:
    """Return at least one finding per load for each member: INCONCLUSIVE where the load did not measure it."""
    result: dict[str, list[Finding]] = {member.name: [] for member in members}
    for one in measured:
        blames = one.blame()
        for member in members:
            mine = [found[member.name] for found in blames.values() if member.name in found]
            of_load = tuple(_of_member(one.load, member, mine, limits))
            result[member.name] += without_figure(one.load, GROUP_LOADS[one.load].limits, limits, of_load)
    return {name: tuple(found) for name, found in result.items()}


def _of_member(load: str, member: Participant, blames: Sequence[HuntBlame], limits: Limits) -> Iterator[Finding]:
    bad = [found for found in blames if found.status is not NodeStatus.PROVEN]
    for found in bad:
        yield _bad(load, member, found, limits)
    silent = _silent_devices(load, member, blames)
    if not blames:
        yield _unmeasured(load, "node", "no partner was there to measure the node with", limits)
    elif silent:
        yield _unmeasured(load, "node", f"no partner had a device to measure {', '.join(silent)} with", limits)
    elif not bad:
        yield _passed(load, member.name, blames, limits)


def _silent_devices(load: str, member: Participant, blames: Sequence[HuntBlame]) -> list[str]:
    if not GROUP_LOADS[load].by_rail:
        return []
    seen = {trial.lane.get(member.name) for found in blames for trial in found.trials}
    return [device for device in member.devices if device not in seen] if seen - {None} else []


def _floor(load: str, limits: Limits) -> Limit | None:
    """Return the limit that the load must reach; None for one that judges by no figure."""
    key = GROUP_LOADS[load].limit
    return limits[key] if key else None


def _passed(load: str, name: str, blames: Sequence[HuntBlame], limits: Limits) -> Finding:
    trials = [trial for found in blames for trial in found.trials]
    chance = [trial for found in blames for trial in found.chance]
    floor = _floor(load, limits)
    good = Finding(
        check=load,
        verdict=Verdict.PASS,
        code=Code.PASSED,
        cause=f"{'fast enough' if floor else 'no hang'} {_partners(trials)}",
        measured=floor.quantity(_slowest(trials)) if floor else None,
        expected=floor.at_least if floor else None,
        limits=limits.digest,
        evidence=_evidence((*trials, *chance)),
    )
    if not chance:
        return good
    stories = "; ".join(dict.fromkeys(_story(trial, name) for trial in chance))
    return replace(
        good,
        verdict=Verdict.WARN,
        code=Code.LOAD_RECOVERED,
        cause=f"{good.cause}. It failed once and then passed, which counts as chance: {stories}",
        remedy="check it again after the next burn-in",
    )


def _partners(trials: Sequence[Trial]) -> str:
    """Return with how many other nodes the trials were, and on how many rails."""
    partners = len({name for trial in trials for name in trial.members}) - 1
    rails = len({trial.rail for trial in trials if trial.rail is not None})
    text = f"with {partners} other node{'s' if partners != 1 else ''}"
    return f"{text} on {rails} rails; the slowest is shown" if rails else text


def _slowest(trials: Iterable[Trial]) -> float:
    return min((trial.value for trial in trials if trial.value is not None), default=0.0)


def _evidence(trials: Iterable[Trial]) -> tuple[Digest, ...]:
    return tuple(dict.fromkeys(digest for trial in trials for digest in trial.evidence))


def _bad(load: str, member: Participant, found: HuntBlame, limits: Limits) -> Finding:
    """Return the finding of one rail (or of a load without rails) that keeps the node back."""
    floor = _floor(load, limits)
    worst = min(-1.0 if trial.value is None else trial.value for trial in found.trials)
    hung = TrialOutcome.HUNG in {trial.outcome for trial in found.trials}
    is_bad = found.status is NodeStatus.BAD
    subject = next((t.lane[member.name] for t in found.trials if member.name in t.lane), "node")
    return Finding(
        check=load,
        verdict=Verdict.FAIL if is_bad else Verdict.INCONCLUSIVE,
        code=_code(found),
        subject=subject,
        cause=_cause(load, member, found),
        measured=floor.quantity(worst) if floor and worst >= 0 else None,
        expected=floor.at_least if floor else None,
        remedy=_remedy(load, found),
        deterministic=is_bad and not hung,
        limits=limits.digest,
        evidence=_evidence(found.trials),
    )


_CODES = {
    NodeStatus.PATH: Code.LOAD_PATH,
    NodeStatus.SHARED: Code.LOAD_SHARED,
    NodeStatus.COMMON: Code.LOAD_COMMON,
    NodeStatus.SUSPECT: Code.LOAD_UNSETTLED,
}
_BAD_CODES = {TrialOutcome.HUNG: Code.LOAD_HUNG, TrialOutcome.FAILED: Code.LOAD_FAILED}


def _code(found: HuntBlame) -> Code:
    """Return the diagnosis: the worst outcome of a bad node's trials, else its status."""
    if found.status is not NodeStatus.BAD:
        return _CODES.get(found.status, Code.NOT_MEASURED)
    outcomes = {trial.outcome for trial in found.trials}
    return next((code for outcome, code in _BAD_CODES.items() if outcome in outcomes), Code.LOAD_SLOW)


def _remedy(load: str, found: HuntBlame) -> str:
    """Return the remedy of the trials themselves, which know what was missing, else general advice."""
    if found.status is NodeStatus.BAD:
        return GROUP_LOADS[load].remedy
    known = dict.fromkeys(trial.remedy for trial in found.trials if trial.remedy)
    return "; ".join(known) or _ELSEWHERE.get(found.status, _AGAIN)


def _cause(load: str, member: Participant, found: HuntBlame) -> str:
    stories = "; ".join(dict.fromkeys(_story(trial, member.name) for trial in found.trials))
    if found.status is NodeStatus.PATH:
        return f"{load} fails between this node and {found.partner}, and with no other partner of either: {stories}"
    if found.status is NodeStatus.SHARED:
        return f"{load} fails because of {found.shared}, and with no other cause: {stories}"
    if found.status is NodeStatus.COMMON:
        return f"{load} fails with every node, so the cause is common to them: {stories}"
    if found.status is NodeStatus.BAD:
        return f"{load} fails with this node, whichever partner it has: {stories}"
    if found.status is NodeStatus.SUSPECT:
        return f"{load} failed, and the faulty node is unknown: {stories}"
    return f"{load} did not measure the node by itself: {stories}"


def _story(trial: Trial, of: str) -> str:
    partners = ", ".join(name for name in trial.members if name != of)
    what = {
        TrialOutcome.PASSED: "passed",
        TrialOutcome.SLOW: "slow",
        TrialOutcome.FAILED: "failed",
        TrialOutcome.HUNG: "hung",
        TrialOutcome.UNMEASURED: "not measured",
    }[trial.outcome]
    return f"{what} with {partners}" + (f" ({trial.detail})" if trial.detail else "")


def _unmeasured(load: str, subject: str, cause: str, limits: Limits) -> Finding:
    cause = f"{load}: {cause}"
    return Finding(
        check=load,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NO_PARTNER,
        subject=subject,
        cause=cause,
        remedy="burn it in together with more nodes, or with idle gold ones: --partner NODE",
        deterministic=False,
        limits=limits.digest,
    )
