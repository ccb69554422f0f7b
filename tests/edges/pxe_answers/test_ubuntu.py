"""Ubuntu's autoinstall: what is rendered, and that subiquity takes it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.edges.pxe.answers import AnswerJob, ReleaseSeries, network_files, ubuntu
from tests.edges.pxe_answers.autoinstall_model import Autoinstall
from tests.edges.pxe_answers.jobs import job
from tests.formats.host_networks import NETWORKS

GOLDENS = Path(__file__).parent / "data"
UBUNTU = (ReleaseSeries.JAMMY, ReleaseSeries.NOBLE)
MIRROR, CACHE = "http://10.9.0.1/ubuntu", "http://10.9.0.1:3142"


def site(series: ReleaseSeries, network: str) -> AnswerJob:
    """A job of a site that has a mirror, a cache and a network of its own."""
    return job(
        series,
        mirror=MIRROR,
        proxy=CACHE,
        time_servers=("10.9.0.1", "ntp.example"),
        packages=("chrony", "nvme-cli"),
        files=network_files(NETWORKS[network], series),
    )


JOBS = {
    "jammy-dhcp": job(ReleaseSeries.JAMMY),
    "jammy-rails": site(ReleaseSeries.JAMMY, "rails"),
    "noble-static": site(ReleaseSeries.NOBLE, "static"),
    "noble-bonded": site(ReleaseSeries.NOBLE, "bonded"),
    "noble-root": job(ReleaseSeries.NOBLE, user="root"),
}


@pytest.mark.parametrize("name", ["jammy-dhcp", "noble-static", "noble-bonded"])
def test_what_is_rendered_is_the_golden(name: str) -> None:
    """To the letter: the effect of a changed answer on the installers is visible here."""
    assert ubuntu.user_data(JOBS[name]) == (GOLDENS / f"{name}.user-data").read_text()


@pytest.mark.parametrize("name", JOBS)
def test_each_key_is_one_that_the_reference_manual_names(name: str) -> None:
    """Subiquity warns of a key that it does not know and goes on without it: a misspelt one must not get so far."""
    Autoinstall.model_validate(ubuntu.autoinstall(JOBS[name]))


@pytest.mark.parametrize("name", JOBS)
def test_subiquity_s_own_schema_takes_it(name: str) -> None:
    """autoinstall-schema.json of a subiquity release, where CLUSTERCTL_SUBIQUITY_SCHEMAS names copies of it."""
    jsonschema = pytest.importorskip("jsonschema")
    paths = os.environ.get("CLUSTERCTL_SUBIQUITY_SCHEMAS", "").split()
    if not paths:
        pytest.skip("CLUSTERCTL_SUBIQUITY_SCHEMAS names no file; subiquity's licence keeps it out of this repository")
    for path in paths:
        jsonschema.validate(ubuntu.autoinstall(JOBS[name]), json.loads(Path(path).read_text()))


def test_it_comes_to_subiquity_as_it_was_meant() -> None:
    """Through cloud-init's user-data, with `autoinstall` alone at the top."""
    text = ubuntu.user_data(JOBS["noble-bonded"])
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text) == {"autoinstall": ubuntu.autoinstall(JOBS["noble-bonded"])}


@pytest.mark.parametrize("series", UBUNTU)
def test_no_drive_is_taken_before_the_service_has_named_one(series: ReleaseSeries) -> None:
    """One drive, by a path that no drive has, and no other way to choose (largest, guided layouts)."""
    storage = ubuntu.autoinstall(job(series))["storage"]
    disks = [action for action in storage["config"] if action["type"] == "disk"]
    assert [disk["match"] for disk in disks] == [{"path": ubuntu.UNRESOLVED}]
    assert "layout" not in storage


def test_the_host_key_that_is_reported_is_the_one_that_stays() -> None:
    """cloud-init would throw it away at the first boot and make another."""
    assert ubuntu.autoinstall(job())["user-data"]["ssh_deletekeys"] is False


def test_no_account_is_given_a_password() -> None:
    """Keys only, for the user and for root; the login that the controller has is there in either case."""
    for user in ("ops", "root"):
        first_boot: dict[str, Any] = ubuntu.autoinstall(job(user=user))["user-data"]
        reported = yaml.safe_dump(first_boot)
        assert "passwd:" not in reported.replace("lock_passwd: true", "")
        assert first_boot["users"][0]["ssh_authorized_keys"] == ["ssh-ed25519 AAAAC3Nza controller"]
        assert first_boot["disable_root"] is (user != "root")


def test_reports_do_not_go_through_the_apt_cache() -> None:
    """The key `proxy` would be exported to subiquity itself, which posts its reports by it."""
    given = ubuntu.autoinstall(JOBS["noble-static"])
    assert "proxy" not in given
    assert given["apt"]["http_proxy"] == CACHE


def test_each_series_gets_its_mirror_in_its_own_format() -> None:
    """The first installers of 22.04 know no mirror-selection; the two must not stand together."""
    jammy, noble = (ubuntu.autoinstall(site(series, "dhcp"))["apt"] for series in UBUNTU)
    assert (jammy["primary"][0]["uri"], "mirror-selection" in jammy) == (MIRROR, False)
    assert (noble["mirror-selection"]["primary"], "primary" in noble) == ([{"uri": MIRROR}], False)


def test_the_kernel_arguments_name_iso_and_seed() -> None:
    """cloud-init of 22.04 takes a seed over HTTP by its older name only; both need the slash at the end."""
    assert ubuntu.kernel_arguments(job(ReleaseSeries.JAMMY)) == (
        "ip=dhcp BOOTIF={bootif} url=http://10.9.0.1:8080/t/0123456789abcdef0123456789abcdef/files/noble/ubuntu.iso "
        "cloud-config-url=/dev/null autoinstall "
        "ds=nocloud-net;s=http://10.9.0.1:8080/t/0123456789abcdef0123456789abcdef/ console=tty0 console=ttyS0"
    )
    assert " ds=nocloud;s=http" in ubuntu.kernel_arguments(job(ReleaseSeries.NOBLE))


def test_meta_data_is_there() -> None:
    """Without it cloud-init takes no seed."""
    assert yaml.safe_load(ubuntu.meta_data(job())) == {
        "instance-id": "clusterctl-node001",
        "local-hostname": "node001",
    }
