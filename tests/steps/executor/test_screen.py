"""A silent host's screen is evidence where its BMC shows it; what the BMC does about it changes nothing else."""

from __future__ import annotations

from clusterctl.fleet.bmc.screen import Screen
from clusterctl.fleet.errors import EdgeError
from clusterctl.operations.excerpts import excerpt
from clusterctl.ports import Deadline, Power
from clusterctl.steps.executor.reachability import BmcProbe, BmcState
from tests.steps.fakes import FakeBmc, FakeBmcs, address_of, inventory

PICTURE = Screen("PNG", b"\x89PNG\r\n\x1a\n...")


def read(bmc: FakeBmc) -> BmcState:
    return BmcProbe(FakeBmcs({"n1": bmc}), address_of).read("n1", Deadline.after(60))


def test_the_screen_is_kept_with_power_and_log() -> None:
    """After them, in the same report."""
    state = read(FakeBmc(inventory("S1"), shown=PICTURE))
    assert [item.content for item in state.evidence] == [b"power", b"log", b"screen"]


def test_a_machine_that_is_off_shows_nothing() -> None:
    """Its BMC is not asked."""
    state = read(FakeBmc(inventory("S1"), state=Power.OFF, shown=PICTURE))
    assert [item.content for item in state.evidence] == [b"power", b"log"]


def test_a_bmc_that_fails_with_it_has_still_reported_the_rest() -> None:
    """Power and log are there, and no error."""
    state = read(FakeBmc(inventory("S1"), shown=EdgeError("no picture")))
    assert (state.power, state.error, len(state.evidence)) == (Power.ON, None, 2)


def test_reports_name_a_picture_and_print_none_of_its_bytes() -> None:
    """The line shows how to write it into a file."""
    text = excerpt(PICTURE.content, ("n1",))
    assert text.startswith("(a PNG picture of 11 bytes")
    assert text.isprintable()
