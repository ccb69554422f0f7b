"""The site directory that a lab writes: ready to use, and never overwriting an operator's file."""

from __future__ import annotations

import stat
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import yaml

from clusterctl.edges.site.load import load_site
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.wiring.plan import parse_wiring_csv
from clusterctl_lab.emulators.fabric import trunks
from clusterctl_lab.healthy import build
from clusterctl_lab.keys import make_keys
from clusterctl_lab.layout import Layout
from clusterctl_lab.metal import as_metal
from clusterctl_lab.site_directory import MANIFEST, PREVIOUS, SiteDirectory
from clusterctl_lab.site_files import SiteFacts, render

LAYOUT = Layout(IPv4Network("10.88.0.0/16"))
KEYS = make_keys("test")
FILES = {"site.yml": (b"name: a\n", 0o644), "secrets/key": (b"hush\n", 0o600)}


def facts(hosts: int = 40) -> SiteFacts:
    machines = tuple(build(index, LAYOUT, KEYS.bmc_password) for index in range(1, hosts + 1))
    return SiteFacts(
        lab="lab",
        layout=LAYOUT,
        machines=machines,
        trunks=trunks(machines),
        keys=KEYS,
        ca=b"-----BEGIN CERTIFICATE-----\n",
        maas_port=5443,
        fabric_tools=Path("/var/lib/clusterctl-lab/lab/bin"),
        variables={"nvidia_repository_key": "line 1\nline: 2\n", "nvidia_driver_kernel_headers": []},
    )


def test_site_is_valid_and_names_every_machine(tmp_path: Path) -> None:
    """The site edge takes it as it is, secrets resolve, and evidence will be marked simulated."""
    SiteDirectory(tmp_path / "site", "lab").write(render(facts()))
    site = load_site(tmp_path / "site")
    site.check_secrets()
    assert site.settings.simulated
    assert [node.name for node in site.nodes] == [f"node{index:03d}" for index in range(1, 41)]
    assert site.bmc_address("node007").password == KEYS.bmc_password
    assert site.settings.configure.variables["nvidia_repository_key"] == "line 1\nline: 2\n"


def test_virtual_metal_of_the_labs_maas(tmp_path: Path) -> None:
    """Its site names MAAS, kinds of machines of its own, and gives an install the time that it takes."""
    machines = tuple(as_metal(machine) for machine in facts(2).machines)
    written = replace(facts(2), machines=machines, virtual=True)
    SiteDirectory(tmp_path / "site", "lab").write(render(written))
    settings = load_site(tmp_path / "site").settings
    assert settings.maas is not None
    assert settings.maas.url == "https://10.88.0.2:5443/MAAS"
    assert settings.deadlines.install == 1800
    assert (tmp_path / "site/skus/metal-dell.yml").exists()


def test_wiring_plan_has_every_cable_once() -> None:
    """Hosts to leaves and leaves to spines, as the fabric really is; the plan's own parser accepts it."""
    text = render(facts())["wiring.csv"][0].decode()
    plan = parse_wiring_csv(text)
    assert len(plan.cables) == 40 * 8 + len(facts().trunks)
    assert "node033,mlx5_1,leaf-p2-r2,1,A09,4,3,CBL000258" in text


def test_secrets_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    """Passwords and keys have mode 0600 in a folder of mode 0700, and stand in no other file."""
    site = tmp_path / "site"
    SiteDirectory(site, "lab").write(render(facts()))
    assert stat.S_IMODE((site / "secrets").stat().st_mode) == 0o700
    secrets = [KEYS.bmc_password, KEYS.maas_api_key, KEYS.ssh_private]
    for file in (path for path in site.rglob("*") if path.is_file()):
        if any(secret in file.read_text() for secret in secrets):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert not any(secret in repr(KEYS) for secret in secrets)


def test_site_of_a_person_is_refused_untouched(tmp_path: Path) -> None:
    """A folder that no lab wrote stays as it is, byte by byte."""
    (tmp_path / "site.yml").write_text("mine")
    with pytest.raises(UsageError, match="no lab wrote"):
        SiteDirectory(tmp_path, "lab").write(FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["site.yml"]
    assert (tmp_path / "site.yml").read_text() == "mine"


def test_site_of_another_lab_is_refused(tmp_path: Path) -> None:
    """Two labs never share a site directory."""
    SiteDirectory(tmp_path / "site", "one").write(FILES)
    with pytest.raises(UsageError, match="belongs to lab one"):
        SiteDirectory(tmp_path / "site", "two").check()
    assert SiteDirectory(tmp_path / "site", "two").remove() == ()
    assert (tmp_path / "site/site.yml").exists()


def test_changed_file_is_kept_by_up_and_by_down(tmp_path: Path) -> None:
    """What an operator edited survives a second `up`, a third, and `down`; the rest is the new lab's."""
    site = SiteDirectory(tmp_path / "site", "lab")
    site.write(FILES)
    (site.path / "site.yml").write_text("name: b\n")
    for _ in range(2):
        assert site.write({**FILES, "secrets/key": (b"new\n", 0o600)}) == ("site.yml",)
        assert (site.path / "secrets/key").read_text() == "new\n"
    assert site.remove() == ("site.yml",)
    assert (site.path / "site.yml").read_text() == "name: b\n"


def test_runs_on_an_earlier_lab_are_set_aside(tmp_path: Path) -> None:
    """A new lab's machines are not taken for the old one's: its journal starts empty, the last one stays to read."""
    site = SiteDirectory(tmp_path / "site", "lab")
    site.write(FILES)
    for round_ in ("first", "second"):
        (site.path / "state").mkdir()
        (site.path / "state/journal.db").write_text(round_)
        site.write(FILES)
        assert not (site.path / "state").exists()
        assert (site.path / PREVIOUS / "state/journal.db").read_text() == round_


def test_remove_leaves_nothing_of_the_lab(tmp_path: Path) -> None:
    """With all that bootstrap wrote; an operator's own file stays and is named."""
    site = SiteDirectory(tmp_path / "site", "lab")
    site.write(FILES)
    (site.path / "state").mkdir()
    (site.path / "gold.json").write_text("{}")
    assert site.remove() == ()
    assert not site.path.exists()
    site.write(FILES)
    (site.path / "notes.txt").write_text("mine")
    assert site.remove() == ("notes.txt",)
    assert [path.name for path in site.path.iterdir()] == ["notes.txt"]


def test_file_that_the_new_lab_does_not_write_goes(tmp_path: Path) -> None:
    """Nothing stale (a known_hosts of dead hosts) is left with the new files."""
    site = SiteDirectory(tmp_path / "site", "lab")
    site.write({**FILES, "known_hosts": (b"old", 0o644)})
    site.write(FILES)
    assert sorted(path.name for path in site.path.iterdir()) == [MANIFEST, "secrets", "site.yml"]


def test_the_site_file_has_a_header_that_explains_it() -> None:
    """A reader who finds it later learns that its cluster was simulated, and by which lab."""
    text = render(facts(1))["site.yml"][0].decode()
    assert 'rehearsal lab "lab"' in text.splitlines()[0]
    assert yaml.safe_load(text)["simulated"] is True
