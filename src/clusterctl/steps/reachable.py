"""reachable: a host that does not answer over SSH, and whose part that is. Pure."""

from __future__ import annotations

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.state import NodeState
from clusterctl.formats.host.ssh import Silence, parse_silence
from clusterctl.ports import Power
from clusterctl.steps.witness import Testimony

NAME = "reachable"

_CAUSES = {
    Silence.REFUSED: "the host answers, but its port 22 refuses connections: sshd does not run",
    Silence.NO_ANSWER: "nothing answers at its address: its network is cut, or it is down",
    Silence.NO_GREETING: "its kernel takes the connection, but sshd does not greet: the host hangs",
    Silence.BROKEN: "the connection broke: the host has gone down, or its network",
    Silence.UNKNOWN: "it cannot be logged in to",
}
_CODES = {
    Silence.REFUSED: Code.SSH_REFUSED,
    Silence.NO_ANSWER: Code.SSH_NO_ANSWER,
    Silence.NO_GREETING: Code.SSH_NO_GREETING,
    Silence.BROKEN: Code.SSH_BROKEN,
    Silence.UNKNOWN: Code.SSH_UNKNOWN,
}
_REMEDIES = {
    Silence.REFUSED: "attach a console, start sshd and see why it ended (systemctl status ssh)",
    Silence.NO_ANSWER: "check its management cable and switch port; attach a console and see that its address is up",
    Silence.NO_GREETING: "attach a console, note what its kernel says, then power it off and on through its BMC",
    Silence.BROKEN: "attach a console: does it run, and does its management link come and go?",
    Silence.UNKNOWN: "attach a console: does it run, and does its sshd let clusterctl's key in?",
}


def silent(node: NodeState, words: str, testimony: Testimony, *, remedy: str = "") -> Finding:
    """The finding on a host that gave no session. `words`: what came instead; `remedy` of whoever knows better."""
    kind = parse_silence(words)
    place = f"{node.location}, {node.name}"
    todo = remedy or _REMEDIES[kind]
    if testimony.power is Power.OFF:
        todo = "power it on; if it stays off, check its PSUs and cords"
    return Finding(
        check=NAME,
        verdict=Verdict.FAIL,
        code=_CODES[kind],
        cause=f"{_CAUSES[kind]} ({words}); {testimony.words}",
        measured=kind.value,
        expected="an SSH session",
        remedy=f"{place}: {todo}",
        deterministic=False,
        evidence=tuple(item.digest for item in testimony.evidence),
    )
