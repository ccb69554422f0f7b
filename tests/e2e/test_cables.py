"""Cables of a running lab, by the tools of a site: an uplink taken out and back, network cables seen by LLDP."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Origin
from clusterctl.operations.context import open_site
from clusterctl_burnin.package_data import text_of
from lab.tests.lab_kit import clusterctl, eventually, needs_lab, running_lab
from tests.e2e.site_kit import Site
from tests.events import new_event

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(3600)]

UPLINK = "leaf-p1-r1 port 33"
PORT = "leaf-p1-r1:33"
STALLING = """#!/bin/sh
# The lab's ibportstate; where {gate} is there, it does not return once it has disabled a port.
"{tool}" "$@"
status=$?
case "$*" in *disable*) if test -p "{gate}"; then : > "{reached}"; cat "{gate}"; fi ;; esac
exit $status
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three hosts that run, known to the journal as a run would have left them."""
    folder = tmp_path_factory.mktemp("c")
    with running_lab("e2ec", "10.172.0.0/16", folder, "--hosts", "3", "--rails", "2", "--installed") as lab:
        known = dict(line.split(" ", 1) for line in (lab.site / "known_hosts").read_text().splitlines())
        context = open_site(lab.site)
        context.describe()
        for node in context.journal.summaries():
            address = lab.machine(node.name)["address"]
            events = [(Kind.NODE_ADDRESSED, {"address": address}), (Kind.HOST_KEY_PINNED, {"public": known[address]})]
            context.journal.append([new_event("node", node.id, kind, data) for kind, data in events])
        context.journal.close()
        yield Site(lab, folder / "runs")


@pytest.fixture
def stalled(site: Site, tmp_path: Path) -> Iterator[Path]:
    """The site's ibportstate stalls behind a port that it has disabled; this file is there as soon as it does."""
    settings_file = site.folder / "site.yml"
    text = settings_file.read_text()
    settings = yaml.safe_load(text)
    script, gate, reached = tmp_path / "ibportstate", tmp_path / "gate", tmp_path / "reached"
    os.mkfifo(gate)
    script.write_text(STALLING.format(tool=settings["fabric"]["ibportstate"][0], gate=gate, reached=reached))
    script.chmod(0o755)
    settings["fabric"]["ibportstate"] = [str(script)]
    settings_file.write_text(yaml.safe_dump(settings))
    yield reached
    settings_file.write_text(text)


def links(site: Site) -> int:
    """Lines of ports that lead somewhere: two for each link."""
    return len(re.findall(r"^\[\d+\]", site.lab.fabric(), re.MULTILINE))


def recorded(site: Site, folder: Path) -> str:
    file = folder / "fabric"
    file.write_text(site.lab.fabric())
    return str(file)


def quick_limits(folder: Path) -> str:
    """Bit error rates that a second proves."""
    limits = yaml.safe_load(text_of("limits/fabric/ndr.yml"))
    for level in ("max", "goal"):
        limits["limits"][f"symbol_ber_{level}"]["value"] = 1e-11
    file = folder / "quick.yml"
    file.write_text(yaml.safe_dump(limits))
    return str(file)


def test_an_uplink_is_disabled_by_a_run_that_is_killed_and_comes_back(
    site: Site, tmp_path: Path, stalled: Path
) -> None:
    """Killed -9 between act and word, the next run looks, finishes, and does nothing twice; enable proves the link."""
    before = links(site)
    words = ("--port", PORT, "--fabric", recorded(site, tmp_path), "--reason", "bit errors", "--yes")
    with site.start("cable", "disable", *words) as killed:
        assert eventually(stalled.exists, 60), killed.stderr
        killed.kill()
    assert links(site) == before - 2
    again = site.run("cable", "disable", *words)
    assert again.wait() == 0, again.stderr
    assert f"disabled, as a run that was stopped had begun: {UPLINK}" in again.stdout
    assert "0 disabled, 0 refused; out before: 1, budget: 1" in again.stdout
    refused = site.run("cable", "disable", "--port", "leaf-p1-r1:34", *words[2:])
    assert refused.wait() == 1
    assert "the budget is used up" in refused.stdout
    back = site.run("cable", "enable", "--yes", "--limits", quick_limits(tmp_path))
    assert back.wait() == 0, back.stderr + back.stdout
    assert f"{UPLINK}: in use: BER below 1e-11" in back.stdout
    assert links(site) == before


def test_links_are_read_judged_and_a_burn_is_planned(site: Site, tmp_path: Path) -> None:
    """By the lab's own tools: every link is proven healthy between two readings; the routes' links are planned on."""
    tools = Path(yaml.safe_load((site.folder / "site.yml").read_text())["fabric"]["ibqueryerrors"][0]).parent
    readings = [tmp_path / "before", tmp_path / "after"]
    for reading in readings:
        counted = clusterctl("cable", "counters", "--command", str(tools / "ibqueryerrors"))
        assert counted.returncode == 0, counted.stderr
        reading.write_text(counted.stdout)
    words = ("--before", str(readings[0]), "--after", str(readings[1]), "--fabric", recorded(site, tmp_path))
    ill = clusterctl("cable", "health", *words, "--seconds", "5", "--limits", quick_limits(tmp_path))
    assert ill.returncode == 0, ill.stdout + ill.stderr
    assert "22 of 22 links are proven healthy" in ill.stdout
    tables = tmp_path / "fts"
    tables.write_text(subprocess.run([tools / "dump_fts"], capture_output=True, text=True, check=True).stdout)
    plan = json.loads(clusterctl("cable", "burnplan", "--fts", str(tables), *words[4:], "--json").stdout)
    assert (plan["links"], plan["lost"]) == (44, [])
    assert {one["reason"] for one in plan["unreached"]} == {"no route between two hosts uses it"}


def test_network_cables_are_seen_by_lldp(site: Site) -> None:
    """A swap is one line to do; a host that cannot be asked is inconclusive, not missing; the evidence is kept."""
    site.lab("inject", "swapped-ethernet-cable", "node001")
    site.lab("inject", "sshd-stopped", "node003")
    asked = site.run("cable", "verify", "--live", "--json")
    assert asked.wait() == 1, asked.stderr
    answer = json.loads(asked.stdout)
    (found,) = answer["findings"]
    assert (found["kind"], found["nodes"], found["moves"]) == ("swapped", ["node001", "node002"], 2)
    assert found["action"] == "rack A01 U42 mgmt-a01: swap the cables in swp1 and swp2"
    assert [(one["host"], "refused" in one["reason"]) for one in answer["hosts_silent"]] == [("node003", True)]
    with site.journal() as journal:
        kept = [journal.evidence(digest) for digest in answer["evidence"]["node001"]]
    assert [(one.source, one.origin) for one in kept if one] == [
        ("lldpctl -f json0", Origin.SIMULATED),
        ("lldpcli -f json0 show interfaces", Origin.SIMULATED),
    ]
    site.lab("heal")
    repaired = json.loads(site.run("cable", "verify", "--live", "--json").stdout)
    assert (repaired["findings"], repaired["hosts_silent"], repaired["links_right"]) == ([], [], 3)
