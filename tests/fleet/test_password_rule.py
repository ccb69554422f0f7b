"""Passwords by the site's rule, within what a BMC takes; and what proves whose BMC it is."""

from __future__ import annotations

import secrets
from itertools import cycle

import pytest

from clusterctl.fleet.bmc.accounts import SIGNS, Account, AccountSight, Characters, PasswordRule, Trust, proof
from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.state import NodeState

ACCOUNT = Account("/redfish/v1/AccountService/Accounts/2", "root")


@pytest.mark.parametrize(
    ("wanted", "shortest", "longest", "length"),
    [
        (16, None, None, 16),
        (16, 8, 20, 16),
        (16, 20, 40, 20),
        (20, 8, 16, 16),
        (16, 0, 0, 16),
        (16, 30, 20, 20),
    ],
)
def test_within_the_bmcs_limits(wanted: int, shortest: int | None, longest: int | None, length: int) -> None:
    """The site's length where the BMC takes it, else the nearest that it takes; zero is no limit."""
    assert PasswordRule(wanted).length_for(shortest, longest) == length


def test_too_short_to_be_worth_it() -> None:
    """A BMC that takes no decent password keeps the one it has."""
    with pytest.raises(EdgeError, match="7 characters at most"):
        PasswordRule().length_for(None, 7)


@pytest.mark.parametrize("characters", list(Characters))
def test_of_each_class(characters: Characters) -> None:
    """Each password has a character of each class, and none of any other."""
    rule = PasswordRule(16, characters)
    for _ in range(50):
        drawn = rule.draw(12, secrets.choice)
        assert len(drawn) == 12
        assert all(set(drawn) & set(some) for some in characters.classes)
        assert set(drawn) <= set("".join(characters.classes))
        assert bool(set(drawn) & set(SIGNS)) is (characters is Characters.WITH_SIGNS)


def test_dice_that_show_one_class_only_are_thrown_again() -> None:
    """Until all are there."""
    thrown = cycle(["a"] * 8 + ["B"] + ["c"] * 6 + ["2"])
    drawn = PasswordRule().draw(8, lambda _: next(thrown))
    assert drawn == "Bcccccc2"


def node(serial: str | None, expected: str | None = None) -> NodeState:
    return NodeState(
        NodeId("id"), "n1", serial=Serial(serial) if serial else None, expected_serial=Serial(expected or "") or None
    )


SILENT = AccountSight(ACCOUNT, Trust.FIRST_USE, must_change=True)
PROVES = [
    (node("S1"), AccountSight(ACCOUNT, Trust.NOTHING, Serial("s1 ")), False, "its serial"),
    (node(None, "S1"), AccountSight(ACCOUNT, Trust.FIRST_USE, Serial("S1")), False, "its serial"),
    (node(None), SILENT, True, "its own factory password"),
    (node(None), AccountSight(ACCOUNT, Trust.AUTHORITY, must_change=True), False, "an authority"),
    (node(None), AccountSight(ACCOUNT, Trust.SHEET, must_change=True), False, "the one that the sheet names"),
    (node("S1"), AccountSight(ACCOUNT, Trust.MACHINE, must_change=True), False, "when its serial was read"),
]
DOES_NOT = [
    (node("S1"), AccountSight(ACCOUNT, Trust.SHEET, Serial("S2")), True, "belongs to machine S2"),
    (node(None), AccountSight(ACCOUNT, Trust.SHEET, Serial("S1")), True, "its serial is not known"),
    (node(None, "S1"), SILENT, False, "nothing proves which machine this is"),
    (node("S1"), SILENT, False, "nothing proves which machine this is"),
    (node("S1"), AccountSight(ACCOUNT, Trust.NOTHING, must_change=True), False, "nothing proves"),
]


@pytest.mark.parametrize(("state", "sight", "own", "words"), PROVES)
def test_what_proves_the_machine(state: NodeState, sight: AccountSight, own: bool, words: str) -> None:
    """Its serial; where the BMC reports none yet: a password or certificate that only this machine has."""
    assert words in proof(state, sight, own_login=own)


@pytest.mark.parametrize(("state", "sight", "own", "words"), DOES_NOT)
def test_what_does_not(state: NodeState, sight: AccountSight, own: bool, words: str) -> None:
    """Another serial, an unknown one, a default password, a certificate of just now: each error has what to do."""
    with pytest.raises(ClusterctlError, match=words) as caught:
        proof(state, sight, own_login=own)
    assert caught.value.remedy
