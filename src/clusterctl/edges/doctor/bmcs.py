"""Route, TCP, TLS and Redfish of every BMC. Nobody logs in, so that a wrong password locks nobody out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from clusterctl.edges.doctor.patient import Answer
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok, warn

NAME = "bmcs"


def judge(names: Mapping[str, str], answers: Mapping[str, Answer]) -> Diagnosis:
    """`names`: BMC's address → node. Broken where none answers; some that do not are the nodes' matter: a warning."""
    failed = {host: answer for host, answer in answers.items() if answer.error is not None}
    silent = [host for host in names if host not in answers]
    good = len(answers) - len(failed)
    if not answers:
        return not_measured(NAME, f"none of {len(names)} could be asked in time", "run it again on an idle machine")
    if failed:
        return _failed(names, failed, good)
    if silent:
        message = f"{good} answer, {len(silent)} could not be asked in time"
        return not_measured(NAME, message, "run it again on an idle machine")
    strangers = sum(bool(answer.note) for answer in answers.values())
    pinned = f", {strangers} to be believed on first use" if strangers else ""
    return ok(NAME, f"all {good} answer{pinned}")


def _failed(names: Mapping[str, str], failed: Mapping[str, Answer], good: int) -> Diagnosis:
    """The most common reason, whom it concerns, and its remedy."""
    reasons = Counter(answer.error.message for answer in failed.values() if answer.error is not None)
    reason, _ = reasons.most_common(1)[0]
    concerned = {host: a.error for host, a in failed.items() if a.error is not None and a.error.message == reason}
    whom = enumerated([f"{name} ({host})" for host, name in names.items() if host in concerned])
    others = f"; {len(failed) - len(concerned)} others fail otherwise" if len(failed) > len(concerned) else ""
    message = f"{len(failed)} of {len(names)} fail; {whom}: {reason}{others}"
    remedy = next(iter(concerned.values())).remedy or "check the route to the BMC network: ip route get ADDRESS"
    if good:
        return warn(NAME, message, remedy)
    return broken(NAME, message, f"check the route to the BMC network first; then: {remedy}")
