"""A BMC password with an unfinished change is reported by the doctor, with the way to finish it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from clusterctl.edges.doctor import site_checks
from clusterctl.edges.site import load_site
from clusterctl.edges.site.kept_passwords import KeptPasswords
from clusterctl.fleet.diagnosis import Diagnosis, Health
from clusterctl.fleet.node import NodeId
from clusterctl.ports.accounts import Generation
from tests.edges.site.ready import write_ready_site

FIRST = Generation(NodeId("id-n1"), 1, "n1", "10.20.0.11", "S1", "admin", "Kept-one-4711")
SECOND = replace(FIRST, number=2, password="Kept-two-4712")


def examined(folder: Path, *written: Generation, proven: tuple[Generation, ...] = ()) -> Diagnosis:
    site = write_ready_site(folder / "site")
    kept = KeptPasswords(site / "state" / "bmc_passwords")
    for one in written:
        kept.write(one)
    for one in proven:
        kept.prove(one, None)
    return site_checks.check_passwords(load_site(site))


def test_a_site_that_never_changed_any(tmp_path: Path) -> None:
    """There is nothing to be in doubt of."""
    assert examined(tmp_path).health is Health.OK


def test_all_seen_to_be_taken(tmp_path: Path) -> None:
    """The number is reported."""
    found = examined(tmp_path, FIRST, SECOND, proven=(FIRST, SECOND))
    assert found.health is Health.OK
    assert "1 BMC" in found.found


def test_the_last_one_in_doubt(tmp_path: Path) -> None:
    """The node is named, the password is not, and the command is given."""
    found = examined(tmp_path, FIRST, SECOND, proven=(FIRST,))
    assert found.health is Health.WARN
    assert "whether the BMC of n1 took" in found.found
    assert "accounts rotate" in found.remedy
    assert SECOND.password not in f"{found}"
