"""install of a node whose OS an operator wants replaced: proven, given back, installed; wherever it was interrupted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.decisions.reinstall import ordered
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Inventory, NodeId
from clusterctl.ports import InstallState
from tests.events import new_event
from tests.steps.fakes import FakeBmc, FakeInstaller, FakeShell, inventory
from tests.steps.install.test_install import greeting, install

N1 = NodeId("id-n1")


def first_install(book: SqlJournal) -> None:
    """n1 runs; then an operator orders its reinstallation."""
    install(book, FakeInstaller(), FakeShell({"n1": greeting("n1")}), ["n1"])
    book.append([ordered(book.state(N1), "new kernel", ())])


def again(book: SqlJournal, state: InstallState, bmc: FakeBmc | None = None) -> tuple[FakeInstaller, Verdict]:
    """What the next run does with a machine that the installer has in `state`."""
    installer = FakeInstaller({"n1": state})
    bmc = bmc or FakeBmc(inventory("SN-n1"))
    outcome = install(book, installer, FakeShell({"n1": greeting("n1")}), ["n1"], bmc=bmc)["n1"]
    return installer, outcome.findings[0].verdict


def test_what_is_installed_is_given_back_and_installed(book: SqlJournal) -> None:
    """Once; the new OS is given a key pair of its own; then nothing is left to do."""
    first_install(book)
    installer, verdict = again(book, InstallState.INSTALLED)
    (started,) = installer.started
    assert (started.host_key_private, started.host_key_public) == ("new private n1", "new public n1")
    assert installer.calls == [("release", "n1"), ("start", "n1")]
    assert verdict is Verdict.PASS
    assert book.state(N1).host_key == "new public n1"
    assert not book.state(N1).reinstall
    kept, _ = again(book, InstallState.INSTALLED)
    assert kept.calls == []


@pytest.mark.parametrize(
    ("acts", "state", "calls"),
    [
        ((), InstallState.INSTALLED, ["release", "start"]),
        ((Act.INSTALL_RELEASE,), InstallState.INSTALLED, ["release", "start"]),
        ((Act.INSTALL_RELEASE,), InstallState.READY, ["start"]),
        ((Act.INSTALL_RELEASE,), InstallState.ABSENT, ["prepare", "start"]),
        ((Act.INSTALL_RELEASE, Act.INSTALL_START), InstallState.READY, ["start"]),
        ((Act.INSTALL_RELEASE, Act.INSTALL_START), InstallState.INSTALLING, []),
        ((Act.INSTALL_RELEASE, Act.INSTALL_START), InstallState.INSTALLED, []),
    ],
)
def test_killed_anywhere_it_is_finished(
    book: SqlJournal, acts: tuple[str, ...], state: InstallState, calls: list[str]
) -> None:
    """After the order, during the release, after it, during the start, while it installs, once it is done: the next run
    looks first, and does what is left.
    """
    first_install(book)
    for act in acts:
        book.append([new_event("node", N1, Kind.ACT_INTENDED, {"act": act, "target": "SN-n1"})])
    installer, verdict = again(book, state)
    assert [call for call, _ in installer.calls] == calls
    assert verdict is Verdict.PASS


@pytest.mark.parametrize("seen", [inventory("SN-other"), replace(inventory("SN-n1"), drives=())])
def test_another_machine_keeps_its_os(book: SqlJournal, seen: Inventory) -> None:
    """Its serial is read right before: where another answers, or the root disk is gone, nothing is given back."""
    first_install(book)
    installer, verdict = again(book, InstallState.INSTALLED, FakeBmc(seen))
    assert installer.calls == []
    assert verdict is Verdict.FAIL
    assert book.state(N1).reinstall
