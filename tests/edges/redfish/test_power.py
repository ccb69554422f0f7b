"""Switching power, and never on the wrong machine."""

from __future__ import annotations

import json

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.ports import BmcAddress, Deadline, Power
from tests.edges.redfish.replay import Bmc, Handler, error
from tests.fake_timer import FakeTimer
from tests.faulty import drop, hang, status

Served = tuple[Bmc, BmcAddress]
SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
SERIAL = Serial("EX00042")


def switch(
    bmcs: RedfishBmcs, served: Served, power: Power, serial: Serial = SERIAL, deadline: Deadline | None = None
) -> list[str]:
    """Switch; what was asked and seen, from the evidence."""
    deadline = deadline or Deadline.after(60)
    with bmcs.open(served[1], deadline) as bmc:
        observed = bmc.set_power(power, serial, deadline)
        assert observed.value is power
        assert bmc.power(deadline).value is power
    steps: list[str] = json.loads(observed.evidence[0].content)["steps"]
    return steps


def state(served: Served, reported: str | None) -> None:
    served[0].tree[SYSTEM]["PowerState"] = reported


def test_already_there(bmcs: RedfishBmcs, served: Served) -> None:
    """A machine that is on is not touched to bring it on."""
    switch(bmcs, served, Power.ON)
    assert served[0].resets == []


def test_on_is_seen(bmcs: RedfishBmcs, served: Served) -> None:
    """Power on returns when the BMC reports it, not when it accepts."""
    state(served, "Off")
    assert switch(bmcs, served, Power.ON)[-1] == "PowerState is On"
    assert served[0].resets == ["On"]


def test_off_is_forced_when_the_os_does_not_go(bmcs: RedfishBmcs, served: Served) -> None:
    """The OS is asked first and has its grace; then power is cut."""
    switch(bmcs, served, Power.OFF)
    assert served[0].resets == ["GracefulShutdown", "ForceOff"]


def test_another_machine_is_not_touched(bmcs: RedfishBmcs, served: Served) -> None:
    """The serial is read again before each switch; another one is refused."""
    with pytest.raises(EdgeError, match="belongs to machine EX00042, not to EX99999"):
        switch(bmcs, served, Power.OFF, Serial("EX99999"))
    assert served[0].resets == []


@pytest.mark.parametrize("code", [400, 409])
def test_refused_because_done(bmcs: RedfishBmcs, served: Served, code: int) -> None:
    """A refusal counts as success when the machine is found in the wanted state."""
    state(served, "Off")

    def done(handler: Handler) -> None:
        state(served, "On")
        handler.reply(code, error("Base.1.0.ActionParameterValueConflict", "already on"))

    served[0].faults["POST", RESET] = [done]
    switch(bmcs, served, Power.ON)
    assert served[0].resets == []


def test_refused_for_now_is_asked_again(bmcs: RedfishBmcs, served: Served) -> None:
    """The SYS518 of an iDRAC means: later."""
    state(served, "Off")
    served[0].tree["/redfish/v1"]["Vendor"] = "Dell"
    served[0].tree[SYSTEM]["SKU"] = SERIAL
    busy = error("IDRAC.2.8.SYS518", "Try the operation again.")
    served[0].faults["POST", RESET] = [status(503, busy), status(409, busy)]
    switch(bmcs, served, Power.ON)
    assert served[0].resets == ["On"]


def test_refused(bmcs: RedfishBmcs, served: Served) -> None:
    """A refusal for good is an error in the BMC's words, after one try."""
    state(served, "Off")
    served[0].faults["POST", RESET] = [status(403, error("Base.1.0.InsufficientPrivilege", "Not for you."))]
    with pytest.raises(EdgeError, match="Not for you"):
        switch(bmcs, served, Power.ON)
    assert served[0].resets == []


def test_an_answer_that_is_lost(bmcs: RedfishBmcs, served: Served) -> None:
    """A reset is sent once: when its answer is lost, the power state decides what happened."""
    state(served, "Off")

    def lost(handler: Handler) -> None:
        state(served, "On")
        drop(handler)

    served[0].faults["POST", RESET] = [lost]
    steps = switch(bmcs, served, Power.ON)
    assert served[0].asked.count(("POST", RESET)) == 1
    assert any("closed the connection" in step for step in steps)


@pytest.mark.parametrize("hangs", [False, True])
def test_a_machine_that_never_comes_on(bmcs: RedfishBmcs, served: Served, hangs: bool) -> None:
    """The wait ends at the deadline, with an error that names the BMC, what was asked and what was found last, also
    where the BMC owes an answer then.
    """
    state(served, "Off")
    timer = FakeTimer()

    def accepted(handler: Handler) -> None:
        if hangs:
            served[0].faults["GET", SYSTEM] = [
                lambda handler: handler.reply(200, served[0].tree[SYSTEM]),
                timer.then(hang),
            ]
        handler.reply(204, None)

    served[0].faults["POST", RESET] = [accepted]
    with pytest.raises(EdgeError, match="accepted ResetType On but then shows: PowerState is Off") as caught:
        switch(bmcs, served, Power.ON, deadline=Deadline.after(1, timer=timer))
    assert caught.value.where.startswith("127.0.0.1")


def test_reset_types_from_the_action_info(bmcs: RedfishBmcs, served: Served) -> None:
    """Supermicro lists its reset types elsewhere; one that the BMC does not take is not sent."""
    server, _ = served
    server.tree[SYSTEM]["Actions"] = {"#ComputerSystem.Reset": {"@Redfish.ActionInfo": f"{SYSTEM}/ResetActionInfo"}}
    server.tree[f"{SYSTEM}/ResetActionInfo"] = {"Parameters": [{"Name": "ResetType", "AllowableValues": ["ForceOff"]}]}
    switch(bmcs, served, Power.OFF)
    assert server.resets == ["ForceOff"]
    with pytest.raises(EdgeError, match="accepts none of On"):
        switch(bmcs, served, Power.ON)


@pytest.mark.parametrize(
    ("reported", "power"), [("On", Power.ON), ("Off", Power.OFF), ("PoweringOn", Power.UNKNOWN), (None, Power.UNKNOWN)]
)
def test_states(bmcs: RedfishBmcs, served: Served, reported: str | None, power: Power) -> None:
    """A state between on and off, and a missing one, are unknown."""
    state(served, reported)
    with bmcs.open(served[1], Deadline.after(60)) as bmc:
        assert bmc.power(Deadline.after(60)).value is power


def test_unknown_is_no_target(bmcs: RedfishBmcs, served: Served) -> None:
    """Nothing can be switched to UNKNOWN."""
    with pytest.raises(ClusterctlError):
        switch(bmcs, served, Power.UNKNOWN)
