"""Eight questions that find most failures of a run, answered from its manifest, the journal and the attribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Stage
from clusterctl.fleet.payloads.jobs import JobAttributed
from clusterctl.jobs.supervision import COMPLETED, Attempt, SupervisedRun
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_history import LOOKED_BACK
from clusterctl.operations.job_manifest import read_manifest
from clusterctl.operations.job_runs import attempt_of, diff, listed
from clusterctl.operations.operation import current_time

_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`good`: False where the answer is a lead, None where it is not known."""

    question: str
    answer: str
    good: bool | None


def checklist(context: SiteContext, name: str) -> tuple[Answer, ...]:
    """Return the answers for a job, or the last attempt of a run. Raises `UsageError`."""
    found, attempt = attempt_of(context, name)
    return tuple(_answers(context, found, attempt))


def _answers(context: SiteContext, found: SupervisedRun, attempt: Attempt) -> Iterator[Answer]:
    yield _ran_before(context, found)
    yield _changed(context, found, attempt)
    yield _same_step(found, attempt)
    yield _nodes_healthy(context, attempt)
    yield _blamed_elsewhere(context, found, attempt)
    yield _alike(context, attempt)
    yield _services(context, attempt)
    yield _hardware(attempt)


def _ran_before(context: SiteContext, found: SupervisedRun) -> Answer:
    question = "Has this script ever run to its end?"
    same = [one for one in listed(context) if one.ordered.script == found.ordered.script and one.id != found.id]
    done = [one for one in same if one.outcome is not None and one.outcome.value == "completed"]
    if done:
        return Answer(question=question, answer=f"yes, {done[0].id}", good=True)
    return Answer(question=question, answer=f"not under supervision; {len(same)} other runs of it", good=None)


def _changed(context: SiteContext, found: SupervisedRun, attempt: Attempt) -> Answer:
    question = "What has changed since the attempt before?"
    before = [one for one in _jobs_of_script(context, found) if one.job and one.job != attempt.job]
    if not before or not attempt.job:
        return Answer(question=question, answer="there is no attempt before", good=None)
    changed = [one.field for one in diff(context, before[-1].job, attempt.job)]
    listed_fields = ", ".join(changed[:_SHOWN]) + (" …" if len(changed) > _SHOWN else "")
    against = f"against job {before[-1].job}"
    text = f"{listed_fields} ({against}; clusterctl job diff)" if changed else f"nothing, {against}"
    return Answer(question=question, answer=text, good=not changed)


def _jobs_of_script(context: SiteContext, found: SupervisedRun) -> list[Attempt]:
    runs = [one for one in listed(context) if one.ordered.script == found.ordered.script and one.at <= found.at]
    return [attempt for one in reversed(runs) for attempt in one.attempts]


def _same_step(found: SupervisedRun, attempt: Attempt) -> Answer:
    question = "Did an attempt before fail at the same step?"
    last = attempt.ended.last if attempt.ended else None
    if last is None:
        return Answer(question=question, answer="the step of the failure is not known", good=None)
    ends = [one.ended for one in found.attempts if one.ended is not None and one.number < attempt.number]
    same = [one.job for one in ends if one.last == last]
    text = f"yes, at step {last}: job {', '.join(same)}" if same else f"no; it ended after step {last}"
    return Answer(question=question, answer=text, good=not same)


def _nodes_healthy(context: SiteContext, attempt: Attempt) -> Answer:
    question = "Are all its nodes gold now?"
    stages = {one.name: one.stage.value for one in context.nodes()}
    asked = {name: stages.get(name, "not a node of this site") for name in attempt.nodes}
    bad = [f"{name} ({stage})" for name, stage in asked.items() if stage != Stage.GOLD.value]
    return Answer(question=question, answer=f"no: {', '.join(bad[:_SHOWN])}" if bad else "yes", good=not bad)


def _blamed_elsewhere(context: SiteContext, found: SupervisedRun, attempt: Attempt) -> Answer:
    question = "Do other jobs blame one of its nodes?"
    recent = context.journal.recent((Kind.JOB_ATTRIBUTED,), current_time() - LOOKED_BACK)
    hits: dict[str, set[str]] = {}
    for event in recent:
        if isinstance(event.payload, JobAttributed) and event.subject not in found.jobs:
            for host in set(event.payload.hosts) & set(attempt.nodes):
                hits.setdefault(host, set()).add(event.subject)
    text = "; ".join(f"{host}: job {', '.join(sorted(jobs)[:3])}" for host, jobs in sorted(hits.items())[:_SHOWN])
    return Answer(question=question, answer=text or "no, in the last 28 days", good=not hits)


def _alike(context: SiteContext, attempt: Attempt) -> Answer:
    question = "Do all its nodes have the same firmware and driver?"
    kept = read_manifest(context, attempt.manifest)
    sets = kept.get("sets", {})
    if not sets:
        return Answer(question=question, answer="its manifest is not kept", good=None)
    text = "yes" if len(sets) == 1 else f"no: {len(sets)} sets (manifest: node_sets)"
    return Answer(question=question, answer=text, good=len(sets) == 1)


def _services(context: SiteContext, attempt: Attempt) -> Answer:
    question = "Were the outside services reachable when it was submitted?"
    services = read_manifest(context, attempt.manifest).get("services", {})
    bad = [f"{name}: {text}" for name, text in services.items() if text != "reachable"]
    if not services:
        return Answer(question=question, answer="none was named (--service)", good=None)
    return Answer(question=question, answer="; ".join(bad) or "yes, from the controller", good=not bad)


def _hardware(attempt: Attempt) -> Answer:
    question = "Does the evidence name hardware, fabric or storage?"
    ended = attempt.ended
    if ended is None:
        return Answer(question=question, answer="the attempt has not ended", good=None)
    if ended.state == COMPLETED:
        return Answer(question=question, answer="no, it completed", good=True)
    hosts = f" ({', '.join(ended.hosts[:_SHOWN])})" if ended.hosts else ""
    text = f"{ended.layer.value}, {ended.certainty.value}: {ended.cause}{hosts}"
    return Answer(question=question, answer=text, good=ended.layer.value not in ("hardware", "fabric", "storage"))
