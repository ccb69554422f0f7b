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

    @property
    def status(self) -> Observed[InstallStatus]:
        return self.last or Observed(InstallStatus(InstallState.ABSENT))

    def look(self, status: Observed[InstallStatus]) -> None:
        self.stale = self.stale and status.value.state is InstallState.FAILED
        if self.last is None or status.value.state is not self.last.value.state:
            self.troubles = 0
        self.last = status

    def act(
        self, act: str, call: Callable[[InstallTarget, Deadline], Observed[InstallStatus]], deadline: Deadline
    ) -> None:
        """Intend, do, observe."""
        self._acts.intend(self.node.id, act, self.target.serial)
        self.ours = self.ours or act == START
        result = call(self.target, deadline)
        self.last = result
        self.stale = False
        self._acts.observed(self.node.id, act, f"{result.value.state.value} {result.value.detail}".strip())
