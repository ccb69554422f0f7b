"""A node's evidence of its last burn-in as the recording that `burnin judge` reads. Pure.

A probe's evidence is its command, host, time and `[STATUS, exit code N, S s]`, then stdout, then `[stderr]` and stderr
where it wrote any. The command identifies the probe: a check's by today's checks, a load's by what its
session has kept. What neither names is left out. Evidence
that is older than `session.py` has nothing about the session: then the clock is not judged.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.state import NodeState
from clusterctl_burnin.probe import Probe, ProbeResult, Status
from clusterctl_burnin.recordings.session import SOURCE, RecordedSession, session_in

_HEAD = re.compile(r"\[(?P<status>ok|timeout|missing), exit code (?P<rc>None|-?\d+), (?P<seconds>[\d.e+-]+) s\]\n")
_STDERR = "\n[stderr]\n"


@dataclass(frozen=True, slots=True)
class Export:
    """`document` is the recording; `probes` how many answers it holds; `left_out` the commands of what it does not."""

    document: Mapping[str, Any]
    probes: int
    left_out: tuple[str, ...]


def export(node: NodeState, evidence: Sequence[Evidence], probes: Iterable[Probe]) -> Export | None:
    """Return the recording of `node` (as it stood then); None where no probe's answer is among the evidence."""
    kept = [session for session in map(session_in, evidence) if session is not None]
    asked = _asked(kept) | {shlex.join(probe.argv): probe for probe in probes}
    sessions = [session for session in kept if not session.load]
    answers = _first_answers(evidence, asked)
    results = _results(answers, asked)
    if not results:
        return None
    left_out = dict.fromkeys(item.source for item in evidence if item.source not in {*results, SOURCE})
    readings = _readings(tuple(results.values()), [answers[source] for source in results], sessions)
    document = _head(node, sessions) | {"readings": readings}
    return Export(document, len(results), tuple(left_out))


def _asked(sessions: Iterable[RecordedSession]) -> dict[str, Probe]:
    """Return the probes of the sessions, by their command lines."""
    named = {command: name for session in sessions for name, command in session.commands.items()}
    return {command: Probe(name, tuple(shlex.split(command))) for command, name in named.items()}


def _first_answers(evidence: Sequence[Evidence], asked: Collection[str]) -> dict[str, Evidence]:
    """Return the first answer to each command: the checks come first, and the loads' watch asks some again."""
    answers: dict[str, Evidence] = {}
    for item in sorted(evidence, key=lambda one: one.at):
        if item.source in asked:
            answers.setdefault(item.source, item)
    return answers


def _results(answers: Mapping[str, Evidence], asked: Mapping[str, Probe]) -> dict[str, ProbeResult]:
    found = {source: result_in(asked[source], item) for source, item in answers.items()}
    return {source: result for source, result in found.items() if result is not None}


def result_in(probe: Probe, evidence: Evidence) -> ProbeResult | None:
    """Return the probe's answer; None where its evidence has another layout. Of several lines `[stderr]` the last
    counts: what a tool prints of its own accord may look like one.
    """
    text = evidence.content.decode(errors="replace")
    head = _HEAD.match(text)
    if head is None:
        return None
    stdout, mark, stderr = text[head.end() :].rpartition(_STDERR)
    if not mark:
        stdout, stderr = stderr, ""
    rc = None if head["rc"] == "None" else int(head["rc"])
    seconds = float(head["seconds"])
    return ProbeResult(probe.name, probe.argv, Status(head["status"]), rc, stdout, stderr, evidence.at, seconds)


def _head(node: NodeState, sessions: Sequence[RecordedSession]) -> dict[str, Any]:
    head: dict[str, Any] = {"version": 1, "node": node.name, "serial": node.serial or "", "sku": node.sku}
    if node.inventory is not None:
        head["inventory"] = inventory_to_data(node.inventory)
    for session in sessions[-1:]:
        head |= {"sent": session.sent.isoformat(), "received": session.received.isoformat()}
        head |= {"driver_version": session.driver_version} if session.driver_version else {}
    return head


def _readings(
    results: Sequence[ProbeResult], answers: Sequence[Evidence], sessions: Sequence[RecordedSession]
) -> dict[str, Any]:
    session = sessions[-1] if sessions else None
    begun = min(result.started for result in results)
    ended = max(result.started + timedelta(seconds=result.seconds) for result in results)
    return {
        "version": 1,
        "origin": answers[0].origin.value,
        "host": answers[0].where,
        "boot_id": session.boot_id if session else "unknown",
        "started": (session.started if session else begun).timestamp(),
        "finished": (session.finished if session else ended).timestamp(),
        "probes": {result.name: _probe(result) for result in results},
    }


def _probe(result: ProbeResult) -> dict[str, Any]:
    return {
        "argv": list(result.argv),
        "status": result.status.value,
        "rc": result.rc,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "started": result.started.timestamp(),
        "seconds": result.seconds,
    }
