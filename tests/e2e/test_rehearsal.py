"""The rehearsal: eight machines, three of them broken, from BMC addresses to gold or quarantine; mended, all to gold."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusterctl.fleet.finding import Origin
from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.leaks import Search, Watch, journal_contents, secrets_of
from tests.e2e.promises import broken_promises
from tests.e2e.site_kit import Controller, Site

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(1800)]

HOSTS = [f"node{number:03d}" for number in range(1, 9)]
FAULTS = ("missing-gpu:node003", "never-boots:node005", "swapped-cable:node007")
KEYS = {"name", "stage", "verdict", "since", "cause", "remedy"}


@dataclass(frozen=True)
class Cause:
    """Where a fault must stop its machine, and what must be said of it."""

    step: str
    check: str
    cause: str
    remedy: tuple[str, ...]


EXPECTED = {
    "node003": Cause("discover", "gpu_count", "7 of 8 GPUs", ("reseat the GPU", "Video.Slot.28-1")),
    "node005": Cause("install", "install", "POST did not complete", ("node005", "A02 U4", "POST")),
    "node007": Cause("cable", "cable", "wrong rail", ("swap the cables", "mlx5_0 and mlx5_1", "A02 U20")),
}


@dataclass(frozen=True)
class Rehearsal:
    """A finished bootstrap: what it said, and what was seen on the machine meanwhile."""

    site: Site
    run: Controller
    code: int
    watch: Watch


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """Run with `-vv`: even the most talkative log may hold no secret."""
    folder = tmp_path_factory.mktemp("e")
    options = ("--hosts", "8", *(f"--fault={fault}" for fault in FAULTS))
    with running_lab("e2er", "10.152.0.0/16", folder, *options) as lab:
        site = Site(lab, folder / "runs")
        with Watch(lab.site / "state/ansible") as watch, site.start("bootstrap", "--yes", "-vv") as run:
            code = run.wait()
        yield Rehearsal(site, run, code, watch)


def test_the_broken_ones_and_only_they_are_quarantined(rehearsal: Rehearsal) -> None:
    """Exit code 1, five gold, three in quarantine, and the fleet's JSON has the keys that others build on."""
    assert rehearsal.code == 1, rehearsal.run.stderr
    nodes = rehearsal.site.ask("nodes")["nodes"]
    assert all(node.keys() >= KEYS for node in nodes)
    expected = {name: "quarantined" if name in EXPECTED else "gold" for name in HOSTS}
    assert {node["name"]: node["stage"] for node in nodes} == expected
    assert {node["name"]: node["verdict"] for node in nodes if node["stage"] == "gold"}.keys() == set(HOSTS) - set(
        EXPECTED
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_why_names_cause_part_and_remedy(rehearsal: Rehearsal, name: str) -> None:
    """Each fault stops its machine at the step that can see it, with one cause and what to do where."""
    expected = EXPECTED[name]
    (why,) = rehearsal.site.ask("why", name)["nodes"]
    assert (why["stopped_at"], why["verdict"]) == (expected.step, "fail")
    assert [finding["check"] for finding in why["findings"]] == [expected.check]
    (finding,) = why["findings"]
    assert expected.cause in finding["cause"]
    assert not [words for words in expected.remedy if words not in finding["remedy"]]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_quarantine_rests_on_evidence_of_the_rehearsal(rehearsal: Rehearsal, name: str) -> None:
    """What a finding points at is in the journal, is not empty, and says that it is simulated."""
    (finding,) = rehearsal.site.ask("why", name)["nodes"][0]["findings"]
    assert finding["evidence"]
    with rehearsal.site.journal() as journal:
        found = [journal.evidence(digest) for digest in finding["evidence"]]
    assert all(item is not None and item.content for item in found)
    assert {item.origin for item in found if item is not None} == {Origin.SIMULATED}


def test_the_pool_lists_the_gold_ones(rehearsal: Rehearsal) -> None:
    """And says that it is a rehearsal's."""
    pool = json.loads((rehearsal.site.folder / "gold.json").read_text())
    assert pool["simulated"] is True
    assert [node["name"] for node in pool["gold"]] == [name for name in HOSTS if name not in EXPECTED]
    assert all(node["address"].startswith("10.152.128.") for node in pool["gold"])


def test_no_secret_leaves_its_place(rehearsal: Rehearsal) -> None:
    """Not in the journal, Ansible's files, the lab's log, any output, or any process's arguments."""
    site, watch = rehearsal.site, rehearsal.watch
    search = Search(secrets_of(site.folder))
    outputs = {"stdout": rehearsal.run.stdout, "stderr": rehearsal.run.stderr}
    contents = [
        *((name, text.encode()) for name, text in outputs.items()),
        *((command[:80], command.encode()) for command in watch.commands),
        *((str(path), content) for path, content in watch.files.items()),
        *journal_contents(site.journal_file),
        ("the lab's log", Path("/var/lib/clusterctl-lab/e2er/daemon.log").read_bytes()),
    ]
    assert sum("ansible-playbook" in command for command in watch.commands)
    assert sum(path.name == "known_hosts" for path in watch.files)  # of a play, whichever way it went
    assert not [leak for where, content in contents for leak in search(content, where)]


def test_the_search_finds_what_it_looks_for(rehearsal: Rehearsal) -> None:
    """Each form of a secret, in each of its places in base64; and nothing where there is nothing."""
    secrets = secrets_of(rehearsal.site.folder)
    assert len(secrets) >= 1 + 3 + 8 * 3
    assert not Search(secrets)(b"nothing", "here")
    files = [rehearsal.site.folder / "secrets" / name for name in ("bmc-password", "maas-api-key", "ssh_ed25519")]
    assert all(Search(secrets)(file.read_bytes(), file.name) for file in files)


def test_private_files_are_private(rehearsal: Rehearsal) -> None:
    """What holds secrets or history is its owner's alone, also while it is in use; public keys are public."""
    folder = rehearsal.site.folder
    paths = [path for place in ("state", "secrets") for path in (folder / place, *(folder / place).rglob("*"))]
    modes = {path: path.lstat().st_mode for path in paths} | rehearsal.watch.modes
    open_to_others = {
        str(path): stat.filemode(mode)
        for path, mode in modes.items()
        if mode & 0o077 and path.suffix != ".pub" and not stat.S_ISLNK(mode)
    }
    assert len(modes) > len(HOSTS)
    assert not open_to_others


def test_mended_machines_become_gold(rehearsal: Rehearsal) -> None:
    """Healed and released, each goes on from the step that stopped it; then the whole fleet is gold."""
    site = rehearsal.site
    site.lab("heal")
    for name in EXPECTED:
        released = site.run("release", name, "--reason", "mended", "--yes")
        assert released.wait() == 0, released.stderr
    again = site.run("bootstrap", "--yes")
    assert again.wait() == 0, again.stderr + again.stdout
    assert site.stages() == dict.fromkeys(HOSTS, "gold")
    pool = json.loads((site.folder / "gold.json").read_text())
    assert [node["name"] for node in pool["gold"]] == HOSTS
    assert not [words for words in broken_promises(site, len(HOSTS)) if "written" in words or "left" in words]


def test_every_link_of_the_gold_hosts_is_loaded_and_the_dirty_one_is_named(rehearsal: Rehearsal) -> None:
    """Real bytes from host to host; the counters of the ports are played by the lab. Afterwards the nodes are gold."""
    site = rehearsal.site
    before = site.stages()
    gold = sorted(name for name, stage in before.items() if stage == "gold")
    with (site.folder / "site.yml").open("a") as file:
        file.write('\nscheduler: {kind: list, nodes: ["node*"]}\n')
    site.lab("inject", "port-errors", f"{gold[0]}:mlx5_2")
    ran = site.run("cable", "burn", "--stage", "40s", "--yes", "--json")
    assert ran.wait() == 1, ran.stderr + ran.stdout  # 40 s prove no bit error rate
    found = json.loads(ran.stdout)
    assert found["hosts"] == gold
    assert found["loaded"] == found["at_goal"] == 2 * 8 * len(gold), ran.stderr
    failed = [finding for finding in found["findings"] if finding["verdict"] == "fail"]
    assert [finding["kind"] for finding in failed] == ["bit_errors"]
    assert {"device": gold[0], "port": "mlx5_2"} in failed[0]["ports"]
    assert found["stopped"] == ""
    assert site.stages() == before
