"""One machine on its way through the installer: what was seen of it; acts are intended before they are done."""

from __future__ import annotations

from collections.abc import Callable

from clusterctl.fleet.finding import Observed
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, InstallState, InstallStatus, InstallTarget
from clusterctl.steps.step import Acts

PREPARE, START, RELEASE = "install.prepare", "install.start", "install.release"


class Job:
    """One machine on its way through the installer.

    ours   an install was intended by us, now or before: what the installer finished may be ours to trust
    stale  nothing but an old failure was seen yet: it is released and tried again, not reported
    """

    def __init__(self, node: NodeState, target: InstallTarget, acts: Acts) -> None:
        self.node = node
        self.target = target
        self.last: Observed[InstallStatus] | None = None
        self.unreachable = ""
        self.troubles = 0
        self.stale = True
        self.ours = node.acts.get(START, 0) > 0
        self._acts = acts
        self._unanswered = {open_act.act for open_act in node.open_acts} & {PREPARE, START, RELEASE}

    @property
    def status(self) -> Observed[InstallStatus]:
        return self.last or Observed(InstallStatus(InstallState.ABSENT))

    def look(self, status: Observed[InstallStatus]) -> None:
        """What the installer says now. It is also what came of an act whose own answer nobody got: that is written down
        before anything is intended again.
        """
        for act in sorted(self._unanswered):
            self._acts.observed(self.node.id, act, _words(status))
        self._unanswered.clear()
        self.stale = self.stale and status.value.state is InstallState.FAILED
        if self.last is None or status.value.state is not self.last.value.state:
            self.troubles = 0
        self.last = status

    def act(
        self, act: str, call: Callable[[InstallTarget, Deadline], Observed[InstallStatus]], deadline: Deadline
    ) -> None:
        """Intend, do while the machine is ours, observe."""
        self._acts.intend(self.node.id, act, self.target.serial)
        self._unanswered.add(act)
        self.ours = self.ours or act == START
        result = call(self.target, self._acts.fenced([self.node.id], deadline))
        self.last = result
        self.stale = False
        self._acts.observed(self.node.id, act, _words(result))
        self._unanswered.discard(act)


def _words(status: Observed[InstallStatus]) -> str:
    return f"{status.value.state.value} {status.value.detail}".strip()
