"""`doctor` on a site that reads NetBox."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.edges.doctor.netbox import check_netbox
from clusterctl.edges.site import load_site
from clusterctl.fleet.diagnosis import Health
from tests.edges.site.ready import write_ready_site
from tests.netbox.emulator import World, served
from tests.netbox.sites import site

OK, BROKEN = Health.OK, Health.BROKEN


@pytest.mark.parametrize(
    ("slug", "token", "health", "found"),
    [
        ("hall-1", None, OK, "and has the site hall-1"),
        ("hall-2", None, BROKEN, "hall-2"),
        ("hall-1", "wrong", BROKEN, "does not permit"),
    ],
)
def test_route_token_and_site_are_proven(
    tmp_path: Path, slug: str, token: str | None, health: Health, found: str
) -> None:
    """The token is in no message."""
    world = World()
    world.add("dcim/sites", {"id": 1, "slug": "hall-1", "name": "Hall 1"})
    with served(world) as url:
        folder = site(tmp_path, url, site=slug)
        if token is not None:
            (folder / "secrets" / "netbox").write_text(token)
        diagnosis = check_netbox(load_site(folder, may_be_empty=True))
    assert (diagnosis.health, found in diagnosis.found) == (health, True), diagnosis
    assert (folder / "secrets" / "netbox").read_text() not in f"{diagnosis.found} {diagnosis.remedy}"


def test_a_netbox_that_is_not_there_is_broken_and_none_is_fine(tmp_path: Path) -> None:
    with served(World()) as url:
        pass
    gone = check_netbox(load_site(site(tmp_path / "a", url), may_be_empty=True))
    assert (gone.health, bool(gone.remedy)) == (BROKEN, True)
    none = check_netbox(load_site(write_ready_site(tmp_path / "b")))
    assert (none.health, none.found) == (OK, "the site has none")
