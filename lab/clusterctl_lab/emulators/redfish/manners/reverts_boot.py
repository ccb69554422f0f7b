"""A BMC that says yes to a boot override and forgets it."""

from __future__ import annotations

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.boot import BootTarget
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit, is_boot_patch


class RevertsBoot(Habit):
    manner = Manner.REVERTS_BOOT
    does = "a boot override is answered with 200, and is gone, with the mode back at Legacy, when one looks"
    source = "some Supermicro, as users of Ironic and sushy tell"

    def after(self, request: Request, answer: Answer) -> Answer:
        if is_boot_patch(self.desk, request) and answer.status < 300:
            state = self.desk.state
            state.boot_target, state.boot_once, state.boot_mode, state.boot_uri = BootTarget.NONE, False, "Legacy", ""
            state.boot_order = ()
        return answer
