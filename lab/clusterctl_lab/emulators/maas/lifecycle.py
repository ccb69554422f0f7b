"""The state transitions of a machine: MAAS's background work, and its reactions to the machine's reports."""

from __future__ import annotations

import asyncio
import logging

from clusterctl_lab.emulators.maas.background import Background
from clusterctl_lab.emulators.maas.bmc import PowerDriver, PowerError
from clusterctl_lab.emulators.maas.faults import Faults
from clusterctl_lab.emulators.maas.model import Node, Store
from clusterctl_lab.emulators.maas.refusal import RefusedError
from clusterctl_lab.emulators.maas.status import FAILURES, Status
from clusterctl_lab.maas_quirk import IN_REQUEST, NEVER_OBEYS, MaasQuirk
from clusterctl_lab.world import World

log = logging.getLogger(__name__)

PENDING, PASSED, FAILED = 0, 2, 3
NO_BMC = "Could not contact node's BMC: "
RETRY = {"Retry-After": "10"}
REVERTIBLE = frozenset({Status.COMMISSIONING, Status.DEPLOYING})


class Lifecycle:
    """Starts the operations. The machine's actions after a network boot are in `boot.py`."""

    def __init__(self, world: World, store: Store, power: PowerDriver, faults: Faults) -> None:
        self.world = world
        self.store = store
        self.power = power
        self.faults = faults
        self.background = Background()

    def commission(self, node: Node, user: str, *, tests: bool = True) -> None:
        node.previous, node.status, node.owner = node.status, Status.COMMISSIONING, user
        node.runs_tests = tests
        node.commissioning, node.testing = PENDING, PENDING if tests else -1
        node.commissioning_id = self.store.next_id("script")
        node.testing_id = self.store.next_id("script") if tests else node.testing_id
        self.store.log(node, "Commissioning")
        self.begin(node)

    def test(self, node: Node, user: str) -> None:
        node.previous, node.status, node.owner = node.status, Status.TESTING, user
        node.testing, node.testing_id = PENDING, self.store.next_id("script")
        self.store.log(node, "Testing")
        self.begin(node)

    def deploy(self, node: Node, user: str) -> None:
        node.previous, node.status, node.owner = Status.ALLOCATED, Status.DEPLOYING, user
        node.netboot = True
        node.installation_id = self.store.next_id("script")
        self.store.log(node, "Deploying")
        self.begin(node)

    def rescue(self, node: Node, user: str) -> None:
        node.previous, node.status, node.owner = node.status, Status.ENTERING_RESCUE_MODE, node.owner or user
        self.store.log(node, "Entering rescue mode")
        self.begin(node)

    def exit_rescue(self, node: Node) -> None:
        node.status = Status.EXITING_RESCUE_MODE
        self.background.spawn(node.system_id, self._leave_rescue(node))

    def erase(self, node: Node) -> None:
        node.previous, node.status = node.status, Status.DISK_ERASING
        self.begin(node)

    def release(self, node: Node) -> None:
        """Release immediately where MAAS records the machine as off, else after switching it off."""
        self.background.stop(node.system_id)
        self._forget_install(node)
        if node.power_state == "off":
            self.released(node)
            return
        node.status = Status.RELEASING
        self.store.log(node, "Releasing")
        self.background.spawn(node.system_id, self._release(node))

    def abort(self, node: Node, kind: str) -> None:
        """Abort after switching the machine off: a deployment returns to Allocated, a test to its previous state, a
        commissioning always to New (recorded).
        """
        self.background.stop(node.system_id)
        if node.status is Status.COMMISSIONING:
            node.previous = Status.NEW
        if node.previous is not Status.ALLOCATED:
            node.owner = ""
        self.store.log(node, f"Aborted {kind}")
        self.background.spawn(node.system_id, self._abort(node))

    def break_(self, node: Node) -> None:
        self.background.stop(node.system_id)
        self._forget_install(node)
        node.status, node.owner = Status.BROKEN, ""

    def power_on(self, node: Node) -> None:
        self.background.spawn_aside(self._power_on(node))

    def power_off(self, node: Node) -> None:
        self.check_power_idle(node)
        self.background.spawn_aside(self._power_off_aside(node))

    def check_power_idle(self, node: Node) -> None:
        """503 while MAAS is already talking to the machine's BMC."""
        if node.powering:
            raise RefusedError(
                503,
                f"Unable to change power state to 'off' for node {node.hostname}: another action is already in "
                "progress for that node.",
            )

    async def query(self, node: Node) -> str:
        """Query the BMC: `on`, `off` or `error`."""
        self.faults.need_rack()
        try:
            node.power_state = await self.power.query(node.power_parameters)
        except PowerError as error:
            self._bmc_is_silent(node, error)
        return node.power_state

    def begin(self, node: Node) -> None:
        """Boot the machine from the network. The power action itself is never reverted, as in MAAS."""
        self.background.stop(node.system_id)
        quirks = self.quirks(node)
        if MaasQuirk.REVERTS in quirks and node.status in REVERTIBLE:
            self.background.spawn_aside(self._revert_soon(node))
        elif not quirks & IN_REQUEST or node.status not in REVERTIBLE:
            self.background.spawn_aside(self._power_on(node))

    async def wait_in_request(self, node: Node) -> None:
        """Wait for the BMC inside the request, where a quirk requests that, even when the caller has disconnected.

        Raises 500 or 503 where the BMC did not obey; then the machine returns to its earlier state, whatever happened
        in between.
        """
        quirks = self.quirks(node)
        if not quirks & IN_REQUEST:
            return
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.background.spawn_aside(self._start_in_request(node, done))
        error = await asyncio.shield(done)
        if error and MaasQuirk.DETAIL_503 in quirks:
            raise RefusedError(503, f"No rack controllers can access the BMC of node: {node.hostname}", RETRY)
        if error:
            raise RefusedError(500, f"Unable to power on {node.hostname}: {error}")

    async def _start_in_request(self, node: Node, done: asyncio.Future[str]) -> None:
        before = node.status
        error = "the BMC does not answer"
        if self.quirks(node) & NEVER_OBEYS:
            self.store.log(node, "Powering on")
        else:
            error = await self._order_on(node)
        await asyncio.sleep(self.world.delays.slow_request)
        if error:
            self._revert(node, before)
        if not done.done():
            done.set_result(error)

    async def _order_on(self, node: Node) -> str:
        """Switch the machine on; return why that failed."""
        self.store.log(node, "Powering on")
        node.addressed = node.addressed or node.status is Status.DEPLOYING
        try:
            await self.power.on(node.power_parameters)
        except PowerError as error:
            return str(error)
        node.power_state = "on"
        return ""

    async def _revert_soon(self, node: Node) -> None:
        before = node.status
        self.store.log(node, "Powering on")
        await asyncio.sleep(self.world.delays.slow_request)
        self._revert(node, before)

    def _revert(self, node: Node, before: Status) -> None:
        """Revert the status only: what a release removed (owner, layout) is not restored."""
        back = Status.ALLOCATED if before is Status.DEPLOYING else node.previous
        why = f"Aborting {before.name} and reverting to {back.name}. Unable to power control the node."
        message = f"({node.owner}) - {why} Please check power credentials."
        self.store.log(node, "Failed to query node's BMC", message, "WARNING")
        node.power_state = "error"
        node.status = back

    def quirks(self, node: Node) -> frozenset[MaasQuirk]:
        """The quirks that MAAS has with this machine."""
        machine = next((each for each in self.world.machines.values() if each.boot_mac in node.macs), None)
        return machine.maas_quirks if machine is not None else frozenset()

    def anywhere(self, quirk: MaasQuirk) -> bool:
        """Whether the region has this quirk."""
        return any(quirk in machine.maas_quirks for machine in self.world.machines.values())

    def scripts_fail(self, node: Node) -> bool:
        return node.hostname in self.faults.failing_scripts or MaasQuirk.FAILING_SCRIPTS in self.quirks(node)

    def fail(self, node: Node, why: str, action: str = "") -> None:
        """Turn a transient state into its failed state; other states stay."""
        if node.status not in FAILURES:
            return
        self.background.unwatch(node.system_id)
        node.status = FAILURES[node.status]
        self.store.log(node, "Marking node failed", why, "ERROR", action)

    def watch(self, node: Node, seconds: float) -> None:
        """Fail the operation unless it has progressed within `seconds`; replaces an earlier watch."""
        if node.hostname in self.faults.stuck:
            return
        minutes = format(self.world.delays.netboot_timeout / 60, "g")
        why = f"Node operation '{node.status.label}' timed out after {minutes} minutes."
        self.background.watch(node.system_id, seconds, lambda: self.fail(node, why, "mark_failed"))

    def released(self, node: Node) -> None:
        node.status, node.owner, node.agent_name, node.locked = Status.READY, "", "", False
        node.addressed = False
        node.annotations.clear()
        self.store.log(node, "Released")

    async def switch_off(self, node: Node) -> None:
        """Switch the machine off on MAAS's behalf. Raises `PowerError`; then MAAS records the power state as error."""
        self.store.log(node, "Powering off")
        await self.power_goes_off(node)

    async def power_goes_off(self, node: Node) -> None:
        """Record that the power goes off, also where the machine itself has finished its work. Raises as
        `switch_off`.
        """
        node.powering = True
        try:
            await self.power.off(node.power_parameters)
            node.power_state = "off"
        except PowerError as error:
            self._bmc_is_silent(node, error)
            raise
        finally:
            node.powering = False

    async def _power_on(self, node: Node) -> None:
        self.store.log(node, "Powering on")
        node.addressed = node.addressed or node.status is Status.DEPLOYING
        node.powering = True
        try:
            await self.power.on(node.power_parameters)
        except PowerError as error:
            log.info("power on of %s failed: %s", node.hostname, error)
            why = f"Power on for the node failed: {NO_BMC}{error}"
            node.power_state = "error"
            self.fail(node, why)
            self.store.log(node, "Failed to power on node", why, "ERROR")
            return
        finally:
            node.powering = False
        node.power_state = "on"
        if node.status in FAILURES and not self.background.watching(node.system_id):
            self.watch(node, self.world.delays.netboot_timeout)

    async def _power_off_aside(self, node: Node) -> None:
        try:
            await self.switch_off(node)
        except PowerError as error:
            self.store.log(node, "Failed to power off node", f"Power off for the node failed: {error}", "ERROR")

    async def _release(self, node: Node) -> None:
        try:
            await self.switch_off(node)
        except PowerError as error:
            log.info("release of %s failed: %s", node.hostname, error)
            node.status = Status.FAILED_RELEASING
            return
        self.released(node)

    async def _abort(self, node: Node) -> None:
        try:
            await self.switch_off(node)
        except PowerError as error:
            self.fail(node, f"Power off for the node failed: {NO_BMC}{error}")
            return
        if node.status is Status.COMMISSIONING:
            node.commissioning = node.testing = -1
        node.status = node.previous

    async def _leave_rescue(self, node: Node) -> None:
        try:
            await self.switch_off(node)
        except PowerError as error:
            self.fail(node, f"Power off for the node failed: {NO_BMC}{error}")
            return
        node.status = node.previous
        self.store.log(node, "Exited rescue mode")
        if node.status is Status.DEPLOYED:
            await self._power_on(node)
        else:
            node.owner = ""

    def _bmc_is_silent(self, node: Node, error: PowerError) -> None:
        node.power_state = "error"
        self.store.log(node, "Failed to query node's BMC", str(error), "WARNING")

    @staticmethod
    def _forget_install(node: Node) -> None:
        node.osystem = node.series = node.kernel = ""
        node.netboot, node.ephemeral, node.user_data = True, False, b""
