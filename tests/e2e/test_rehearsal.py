"""The rehearsal, begun as README.md and the tutorial have it typed: eight machines, three of them broken, from BMC
addresses to gold or quarantine; repaired, all to gold.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener

import pexpect
import pytest
from playwright.sync_api import sync_playwright

from clusterctl.fleet.finding import Origin
from lab.tests.lab_kit import RunningLab, clusterctl, needs_lab, running_lab
from tests.docs.pages import DOCS, PAGES, lines, with_docs
from tests.e2e.leaks import Search, Watch, journal_contents, secrets_of
from tests.e2e.promises import broken_promises
from tests.e2e.site_kit import RUN_S, Site
from tests.paths import ROOT
from tests.web.one_look import out_of_sight

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(3600)]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTS = [f"node{number:03d}" for number in range(1, 9)]
LAB, NETWORK = "e2er", "10.152.0.0/16"
FAULTS = ("missing-gpu:node003", "never-boots:node005", "swapped-cable:node007")
KEYS = {"name", "stage", "verdict", "since", "cause", "remedy"}


@dataclass(frozen=True)
class Cause:
    """Where a fault must stop its machine, and the text that its finding must contain."""

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
class Typist:
    """Types the commands of the pages into a folder that looks like the checkout, and answers their questions with yes.

    The lab has a name and addresses of its own, so that a rehearsal of this checkout's is left alone.
    """

    folder: Path
    typed: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "CLUSTERCTL_LAB": LAB, "CLUSTERCTL_LAB_SUBNET": NETWORK}

    def plainly(self, line: str, **more: str) -> tuple[int, str]:
        """Run a command without a terminal; return its exit code and output."""
        self.typed.append(line)
        ran = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=RUN_S,
        )
        return ran.returncode, ran.stdout

    def on_a_terminal(self, line: str) -> tuple[int, str]:
        """Run a command on a terminal of 80 columns; return its exit code and output."""
        self.typed.append(line)
        output, code = pexpect.run(
            f"bash -c '{line.removeprefix('sudo ')}'",  # the tests are root, and sudo would forget the lab's name
            cwd=str(self.folder),
            env=self.environment,
            events={r"\[y/N\]: ": "y\n"},
            withexitstatus=True,
            timeout=RUN_S,
            dimensions=(24, 80),
        )
        return int(code), output.decode(errors="replace")


def section(heading: str) -> list[str]:
    """Return the commands of one section of the tutorial."""
    found: list[str] = []
    now = ""
    for _, line, code in lines(DOCS / "tutorial/rehearsal.md"):
        if line.startswith("## "):
            now = line.removeprefix("## ")
        if code and now == heading and line.strip():
            found.append(line.strip())
    assert found, heading
    return found


@dataclass(frozen=True)
class Rehearsal:
    """A finished bootstrap: what it printed, and what was seen on the machine meanwhile. `typist`: none in a wheel."""

    site: Site
    output: str
    watch: Watch
    typist: Typist | None


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """Log in detail: even the most talkative log may hold no secret."""
    folder = tmp_path_factory.mktemp("e")
    with _typed(folder) if PAGES else _started(folder) as found:
        yield found


@contextmanager
def _typed(folder: Path) -> Iterator[Rehearsal]:
    checkout = _checkout(folder / "checkout")
    typist, site = Typist(checkout), checkout / "rehearsal"
    (command,) = section("1. Run it")
    try:
        with Watch(site / "state/ansible") as watch:
            code, output = typist.plainly(command, CLUSTERCTL_VERBOSE="2")
        assert code == 0, output
        yield Rehearsal(Site(RunningLab(LAB, site), folder / "runs"), output, watch, typist)
    finally:
        typist.plainly("scripts/rehearse-page.sh stop")
        clusterctl("lab", "down", "--name", LAB, timeout_s=600)


def _checkout(folder: Path) -> Path:
    """Return a folder that looks like the checkout, and counts as set up: the environment of the tests is left alone."""
    (folder / ".venv").mkdir(parents=True)
    for entry in [*ROOT.iterdir(), *(ROOT / ".venv").iterdir()]:
        if entry.name not in ("rehearsal", ".git", ".venv") and not entry.name.startswith(".stamp"):
            (folder / entry.relative_to(ROOT)).symlink_to(entry)
    pins = ("requirements.txt", "requirements-dev.txt", "pyproject.toml", "lab/pyproject.toml")
    stamp = subprocess.run(["sha256sum", *pins], cwd=ROOT, capture_output=True, check=True).stdout
    (folder / ".venv/.stamp").write_bytes(stamp)
    return folder


@contextmanager
def _started(folder: Path) -> Iterator[Rehearsal]:
    """The same without a checkout."""
    options = ("--hosts", "8", *(f"--fault={fault}" for fault in FAULTS))
    with running_lab(LAB, NETWORK, folder, *options) as lab:
        site = Site(lab, folder / "runs")
        with Watch(lab.site / "state/ansible") as watch, site.start("bootstrap", "--yes", "-vv") as run:
            assert run.wait() == 1, run.stderr
        yield Rehearsal(site, run.stdout + run.stderr, watch, None)


@with_docs
def test_it_prints_its_verdict_and_where_the_time_went(rehearsal: Rehearsal) -> None:
    """The last lines of `make rehearse`."""
    assert "as it should be: 5 gold, 3 in quarantine" in rehearsal.output
    assert re.search(
        r"^time: \d+ min \d+ s: set-up \d+ s, start of the lab \d+ s, bootstrap \d+ s, reports \d+ s$",
        rehearsal.output,
        re.MULTILINE,
    )


def address_of_the_page(rehearsal: Rehearsal) -> str:
    printed = r"^see it in a browser of this machine: (http://127\.0\.0\.1:\d+/\?token=\S+)$"
    (address,) = re.findall(printed, rehearsal.output, re.MULTILINE)
    return str(address)


@with_docs
def test_its_page_shows_the_broken_ones_with_their_causes(rehearsal: Rehearsal) -> None:
    """At the address that is printed, on the first page; without the token nothing is shown."""
    address = address_of_the_page(rehearsal)
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    with browser.open(address, timeout=RUN_S) as answer:
        page = html.unescape(answer.read().decode())
    assert not [name for name in HOSTS if name not in page]
    assert not [name for name, expected in EXPECTED.items() if expected.cause not in page]
    with pytest.raises(HTTPError, match="401"):
        build_opener().open(address.partition("?")[0], timeout=RUN_S)


@with_docs
@pytest.mark.chromium
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: run make setup")
def test_each_broken_one_is_found_in_one_look(rehearsal: Rehearsal) -> None:
    """In a browser: the tile of each is in sight without a click and without scrolling, and its cause is not cut off."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=1000 * RUN_S)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(1000 * RUN_S)
        page.goto(address_of_the_page(rehearsal))
        assert page.locator(".tile.quarantined").count() == len(EXPECTED)
        assert out_of_sight(page, {name: one.cause for name, one in EXPECTED.items()}, 900) == []
        browser.close()


def test_the_broken_ones_and_only_they_are_quarantined(rehearsal: Rehearsal) -> None:
    """Five gold, three in quarantine, and the fleet's JSON has the keys that others build on."""
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
    """The evidence of a finding is in the journal, is not empty, and is marked as simulated."""
    (finding,) = rehearsal.site.ask("why", name)["nodes"][0]["findings"]
    assert finding["evidence"]
    with rehearsal.site.journal() as journal:
        found = [journal.evidence(digest) for digest in finding["evidence"]]
    assert all(item is not None and item.content for item in found)
    assert {item.origin for item in found if item is not None} == {Origin.SIMULATED}


def test_the_pool_lists_the_gold_ones(rehearsal: Rehearsal) -> None:
    """The report has a note that it is a rehearsal's."""
    pool = json.loads((rehearsal.site.folder / "gold.json").read_text())
    assert pool["simulated"] is True
    assert [node["name"] for node in pool["gold"]] == [name for name in HOSTS if name not in EXPECTED]
    assert all(node["address"].startswith("10.152.128.") for node in pool["gold"])


def test_no_secret_leaves_its_place(rehearsal: Rehearsal) -> None:
    """Not in the journal, Ansible's files, the lab's log, any output, or any process's arguments."""
    site, watch = rehearsal.site, rehearsal.watch
    search = Search(secrets_of(site.folder))
    contents = [
        ("the output", rehearsal.output.encode()),
        *((command[:80], command.encode()) for command in watch.commands),
        *((str(path), content) for path, content in watch.files.items()),
        *journal_contents(site.journal_file),
        ("the lab's log", Path(f"/var/lib/clusterctl-lab/{LAB}/daemon.log").read_bytes()),
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


def test_why_names_the_cause_on_a_terminal(rehearsal: Rehearsal) -> None:
    """Section 2 of the tutorial, and README: the cause has its remedy."""
    if rehearsal.typist is None:
        pytest.skip("an installed wheel has no tutorial")
    nodes, why = (rehearsal.typist.on_a_terminal(line) for line in section("2. Ask why a node is not gold"))
    assert nodes[0] == 0, nodes[1]
    assert why[0] == 0, why[1]
    assert "swap the cables in mlx5_0 and mlx5_1" in " ".join(why[1].split())


def test_repaired_machines_become_gold(rehearsal: Rehearsal) -> None:
    """Section 3 of the tutorial as it is typed: healed and released, each goes on from the step that stopped it; then
    the whole fleet is gold.
    """
    site = rehearsal.site
    if rehearsal.typist is not None:
        for line in section("3. Repair and release"):
            code, output = rehearsal.typist.on_a_terminal(line)
            assert code == 0, output
    else:
        site.lab("heal")
        released = site.run("release", *EXPECTED, "--reason", "repaired", "--yes")
        assert released.wait() == 0, released.stderr
        again = site.run("bootstrap", "--yes")
        assert again.wait() == 0, again.stderr + again.stdout
    assert site.stages() == dict.fromkeys(HOSTS, "gold")
    pool = json.loads((site.folder / "gold.json").read_text())
    assert [node["name"] for node in pool["gold"]] == HOSTS
    assert not [words for words in broken_promises(site, len(HOSTS)) if "written" in words or "left" in words]


@pytest.mark.soak
def test_every_link_of_the_gold_hosts_is_loaded_and_the_dirty_one_is_named(rehearsal: Rehearsal) -> None:
    """Real bytes from host to host; the counters of the ports are played by the lab. Afterwards the nodes are gold."""
    site = rehearsal.site
    before = site.stages()
    gold = sorted(name for name, stage in before.items() if stage == "gold")
    with (site.folder / "site.yml").open("a") as file:
        file.write('\nscheduler: {kind: list, nodes: ["node*"]}\n')
    site.lab("inject", "port-errors", f"{gold[0]}:mlx5_2")
    ran = site.run("cable", "burn", "--rail", "2", "--stage", "60s", "--yes", "--json")
    assert ran.wait() == 1, ran.stderr + ran.stdout  # 60 s prove no bit error rate
    found = json.loads(ran.stdout)
    assert found["hosts"] == gold
    assert found["loaded"] == 2 * len(gold), ran.stderr
    dirty = [finding for finding in found["findings"] if finding["kind"] == "bit_errors"]
    assert [{"device": gold[0], "port": "mlx5_2"} in finding["ports"] for finding in dirty] == [True]
    assert found["stopped"] == ""
    assert site.stages() == before
