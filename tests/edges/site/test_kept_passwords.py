"""Passwords that clusterctl gave to BMCs: kept before they are used, private, and chosen before what the site gives."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site import Site, load_site
from clusterctl.edges.site.kept_passwords import KeptPasswords, PasswordVault
from clusterctl.edges.site.logins import SweepLogins
from clusterctl.fleet.bmc.accounts import PasswordRule
from clusterctl.fleet.bmc.observation import Greeting
from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.fleet.node import Mac, NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports.accounts import Generation
from clusterctl.ports.logins import Login
from tests.edges.site.ready import BMC_PASSWORD, write_ready_site

HOST = "10.20.0.11"
NEW, NEWER = "Kept-one-4711", "Kept-two-4712"


def generation(number: int = 1, password: str = NEW, serial: str = "S1", node: str = "id-n1") -> Generation:
    return Generation(NodeId(node), number, "n1", HOST, serial, "admin", password)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A site whose sheet names n1 and n2, without serials."""
    site = write_ready_site(tmp_path / "site")
    (site / "bmcs.csv").write_text(f"name,bmc_address\nn1,{HOST}\nn2,10.20.0.12\n")
    return site


def kept(folder: Path) -> KeptPasswords:
    return KeptPasswords(folder / "state" / "bmc_passwords")


def chosen(site: Site, name: str = "n1") -> Login:
    return site.bmc_login(name)


def test_private_and_written_once(folder: Path) -> None:
    """0600 in 0700; what is there is never written over; no secret is shown."""
    kept(folder).write(generation())
    kept(folder).write(generation(password=NEWER))
    (file,) = (folder / "state" / "bmc_passwords").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (one,) = kept(folder).all()
    assert one.password == NEW
    assert NEW not in repr(one)
    assert KNOWN(f"x {NEW} y") == "x (secret) y"


def test_without_any_the_sites_own_is_chosen(folder: Path) -> None:
    """As before."""
    login = chosen(load_site(folder))
    assert (login.password, login.former) == (BMC_PASSWORD, None)


def test_in_doubt_the_new_one_goes_first(folder: Path) -> None:
    """With the one before behind it; once proven, alone. A site that was read before sees it too."""
    site = load_site(folder)
    assert chosen(site).password == BMC_PASSWORD
    kept(folder).write(generation())
    address = site.bmc_address("n1")
    assert (address.user, address.password, address.former) == ("admin", NEW, ("root", BMC_PASSWORD))
    assert NEW not in repr(address)
    assert BMC_PASSWORD not in repr(address)
    kept(folder).prove(generation(), Serial("S1"))
    assert (chosen(site).password, chosen(site).former) == (NEW, None)
    kept(folder).write(generation(2, NEWER))
    former = chosen(site).former
    assert chosen(site).password == NEWER
    assert former is not None
    assert former.password == NEW
    assert chosen(site, "n2").password == BMC_PASSWORD


def test_a_password_is_its_machines(folder: Path) -> None:
    """Not its node's or its address's: another machine in the node's place is not shown it, by the journal's word."""
    kept(folder).write(generation())
    kept(folder).prove(generation(), Serial("S1"))
    site = load_site(folder)
    assert chosen(site.knowing(lambda _: "S1")).password == NEW
    assert chosen(site.knowing(lambda _: "S2")).password == BMC_PASSWORD
    assert chosen(site.knowing({"n1": "S2", "n2": "S1"}.__getitem__), "n2").password == NEW


def test_a_sweep_knows_it_too(folder: Path) -> None:
    """By the serial that a BMC reports, by the MAC address where the vendor's list joins them, by address."""
    kept(folder).write(generation())
    kept(folder).prove(generation(), Serial("S1"))
    (folder / "factory.csv").write_text("serial,bmc_mac,password\nS1,02:00:00:00:00:07,label-pass-1\n")
    (folder / "factory.csv").chmod(0o600)
    text = (folder / "site.yml").read_text()
    (folder / "site.yml").write_text(text.replace("bmc:\n", "bmc:\n  factory: factory.csv\n", 1))
    site = load_site(folder)
    logins = SweepLogins(site.logins, site.nodes, {"10.20.0.99": Mac("02:00:00:00:00:07")})
    reported = [
        logins.login("10.20.0.98", Greeting(serial="s1")),
        logins.login("10.20.0.99", Greeting()),
        logins.login(HOST, Greeting()),
    ]
    assert [login.password for login in reported if login is not None] == [NEW] * 3


def test_own_logins(folder: Path) -> None:
    """A factory password is a machine's own where no other has it."""
    sheet = (
        "name,bmc_address,bmc_password\n"
        f"n1,{HOST},own-one-1\nn2,10.20.0.12,default-1\nn3,10.20.0.13,default-1\nn4,10.20.0.14,\n"
    )
    (folder / "bmcs.csv").write_text(sheet)
    (folder / "bmcs.csv").chmod(0o600)
    assert load_site(folder).own_logins() == {"n1"}


def test_numbers_go_on(folder: Path) -> None:
    """Neither a node's nor a machine's number is used again, also where the machine has become another node's."""
    vault = PasswordVault(kept(folder), PasswordRule())
    one = NodeState(NodeId("id-n1"), "n1", bmc=HOST, serial=Serial("S1"))
    first = vault.draw(one, "root", 16, "S1")
    vault.prove(first, Serial("S1"))
    moved = NodeState(NodeId("id-n2"), "n2", bmc="10.20.0.12", serial=Serial("S1"))
    latest = vault.latest(moved)
    assert latest is not None
    assert (latest.password, latest.proven) == (first.password, True)
    assert vault.draw(moved, "root", 16, "S1").number == 2
    other = NodeState(NodeId("id-n1"), "n1", bmc=HOST, serial=Serial("S9"))
    assert vault.latest(other) is None
    assert vault.draw(other, "root", 16, "S9").number == 2


BROKEN = {
    "not JSON": ("id-n1.1", "nonsense", "is no password of a BMC"),
    "a field is missing": ("id-n1.1", '{"version": 1, "name": "n1"}', "is no password of a BMC"),
    "another version": (
        "id-n1.1",
        json.dumps({"version": 2, "name": "", "bmc": "", "serial": "", "user": "", "password": "x"}),
        "another version",
    ),
    "no text": (
        "id-n1.1",
        json.dumps({"version": 1, "name": "", "bmc": "", "serial": "", "user": "", "password": 7}),
        "is no password of a BMC",
    ),
    "a stranger's file": ("notes.txt", "x", "is no password of a BMC"),
    "a mark without its password": ("id-n1.1.proven", '{"version": 1, "serial": "S1"}', "is missing"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_reported(folder: Path, case: str) -> None:
    """Named with its file, and never passed over: a password would be lost."""
    name, text, words = BROKEN[case]
    place = folder / "state" / "bmc_passwords"
    place.mkdir(parents=True)
    (place / name).write_text(text)
    (place / name).chmod(0o600)
    with pytest.raises(UsageError, match=words) as caught:
        load_site(folder).bmc_address("n1")
    assert name.removesuffix(".proven") in caught.value.where
    assert caught.value.remedy


def test_one_that_others_may_read(folder: Path) -> None:
    """Is refused, as every secret is."""
    kept(folder).write(generation())
    (folder / "state" / "bmc_passwords" / "id-n1.1").chmod(0o644)
    with pytest.raises(ClusterctlError, match="others may read it"):
        load_site(folder).bmc_address("n1")


def test_files_that_come_and_go_are_noticed(folder: Path) -> None:
    """One that was taken out is forgotten, and what comes in its place under the same name is believed."""
    ours = kept(folder)
    for password in (NEW, NEWER):
        ours.write(generation(password=password))
        ours.prove(generation(password=password), Serial("S2"))
        assert [(one.password, one.proven, one.serial) for one in ours.of("s2", "", "")] == [(password, True, "S2")]
        assert not ours.of("S1", "n1", HOST)
        for file in (folder / "state" / "bmc_passwords").iterdir():
            file.unlink()
        assert ours.all() == ()
