"""`clusterctl accounts`, as an operator types it, against the lab's BMCs and MAAS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from clusterctl.edges.site.kept_passwords import KeptPasswords
from clusterctl.fleet.errors import ClaimLostError, UsageError
from clusterctl.fleet.event import Stream
from clusterctl.operations.context import open_site
from clusterctl.ports.accounts import Generation
from clusterctl_cli.output import length_limits
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.healthy import build
from clusterctl_lab.machine import Machine
from tests.cli.site_of_three import run
from tests.edges.maas.kit import API_KEY, BMC_PASSWORD, BMC_PORT, MAAS_PORT, Lab
from tests.edges.site.ready import write_ready_site
from tests.events import data_of

RULE = "  rotation: {length: 18}\n"
NAMES = ("node001", "node002", "node003")


@dataclass
class Place:
    site: Path
    lab: Lab

    def machine(self, name: str = "node001") -> Machine:
        return self.lab.world.machines[name]

    def behave(self, name: str, *quirks: BmcQuirk, password: str = BMC_PASSWORD) -> None:
        """Its BMC as it was delivered, with these quirks."""
        bmc = replace(self.machine(name).bmc, quirks=frozenset(quirks), password=password)
        self.lab.run(self.lab.world.replace(replace(self.machine(name), bmc=bmc)))

    def edit(self, old: str, new: str) -> None:
        text = (self.site / "site.yml").read_text()
        assert old in text
        (self.site / "site.yml").write_text(text.replace(old, new, 1))

    def sheet(self, passwords: tuple[str, ...] = (), serials: bool = True) -> None:
        rows = ["name,bmc_address,serial,bmc_password"]
        for name, password in zip(NAMES, (*passwords, "", "", ""), strict=False):
            serial = self.machine(name).serial if serials else ""
            rows.append(f"{name},{self.machine(name).bmc.address},{serial},{password}")
        (self.site / "bmcs.csv").write_text("\n".join(rows) + "\n")
        (self.site / "bmcs.csv").chmod(0o600)

    def begin(self, name: str, password: str) -> None:
        """As a run leaves it that was killed just before it asked the BMC."""
        context = open_site(self.site)
        context.describe()
        (node,) = [node for node in context.journal.summaries() if node.name == name]
        generation = Generation(node.id, 1, name, node.bmc, self.machine(name).serial, "root", password)
        KeptPasswords(self.site / "state" / "bmc_passwords").write(generation)

    def evidence(self) -> list[str]:
        """All that the journal keeps of the nodes: events, and what they rest on."""
        context = open_site(self.site)
        events = [event for node in context.journal.states() for event in context.journal.history(Stream.NODE, node.id)]
        kept = context.evidence(digest for event in events for digest in event.evidence)
        assert kept
        return [*(str(data_of(event)) for event in events), *(item.content.decode() for item in kept.values())]

    def run(self, *words: str, typed: str = "") -> Result:
        return run(self.site, *words, typed=typed)

    def report(self, *words: str) -> tuple[int, Any]:
        done = self.run(*words, "--json")
        return done.return_value, {item["name"]: item for item in json.loads(done.stdout)["nodes"]}

    def passwords(self) -> set[str]:
        return {self.machine(name).bmc.password for name in NAMES}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"), machines=3, network="127.179.0.0/16")
    yield lab
    lab.close()


@pytest.fixture
def place(lab: Lab, tmp_path: Path) -> Place:
    """A site of three machines with a rule, as they were delivered, and a MAAS that knows none of them."""
    site = write_ready_site(tmp_path / "site")
    found = Place(site, lab)
    lab.maas.service.store.nodes.clear()
    for index, name in enumerate(NAMES, 1):
        lab.run(lab.world.replace(build(index, lab.world.layout, BMC_PASSWORD)))
        assert found.machine(name).name == name
    (site / "secrets" / "bmc-password").write_text(BMC_PASSWORD)
    (site / "secrets" / "maas-api-key").write_text(API_KEY)
    found.edit("  ca_file: bmc-ca.pem", f"  ca_file: {lab.ca.file}\n  port: {BMC_PORT}\n{RULE}")
    found.edit("  ca_file: maas-ca.pem", f"  ca_file: {lab.ca.file}")
    found.edit("https://maas.example:5443/MAAS", f"https://{lab.world.layout.maas}:{MAAS_PORT}/MAAS")
    found.sheet()
    return found


def test_rotated_checked_and_seen(place: Place) -> None:
    """Each machine has a password of its own, 18 characters long; check, node and why report it; no output has a secret."""
    assert place.report("accounts", "check")[1]["node001"]["takes"] == "given"
    code, report = place.report("accounts", "rotate", "--all", "--yes")
    assert code == 0
    assert {(item["number"], item["finished"]) for item in report.values()} == {(1, False)}
    assert len(place.passwords()) == 3
    assert {len(password) for password in place.passwords()} == {18}
    code, report = place.report("accounts", "check")
    assert code == 0
    assert {item["takes"] for item in report.values()} == {"rotated"}
    assert report["node001"]["max_length"] == 40
    assert report["node001"]["since"]
    shown = [place.run(*words).stdout for words in (("nodes", "node001"), ("why", "node001"), ("accounts", "check"))]
    assert "about to password.change on /redfish/v1/AccountService/Accounts/2" in shown[0]
    assert "BMC: password 1 of root is in use" in shown[0]
    assert "Its BMC's password was changed" in shown[1]
    assert "the site's rule" in shown[2]
    again = place.run("accounts", "rotate", "node002", "--yes", "-vv")
    shown += [again.stdout, again.stderr, *place.evidence()]
    assert json.loads(place.run("why", "node002", "--json").stdout)["nodes"][0]["bmc_password"]["number"] == 2
    kept = {one.password for one in KeptPasswords(place.site / "state" / "bmc_passwords").all()}
    assert len(kept) == 4
    assert not [password for password in (*kept, BMC_PASSWORD) if password in "".join(shown)]


def test_a_dry_run_and_a_no(place: Place) -> None:
    """Change nothing, keep nothing."""
    assert "Nothing was changed" in place.run("accounts", "rotate", "--all", "--dry-run").stdout
    assert place.passwords() == {BMC_PASSWORD}
    assert not (place.site / "state" / "bmc_passwords").exists()


def test_a_bmc_that_wants_it(place: Place) -> None:
    """Check and discover name the command; a shared default password is no proof without TLS, an authority is one."""
    place.behave("node001", BmcQuirk.MUST_CHANGE_PASSWORD)
    code, report = place.report("accounts", "check", "node001")
    assert code == 1
    assert report["node001"]["error"]["remedy"] == "clusterctl accounts rotate node001"
    assert place.run("discover", "--limit", "node001", "--yes").return_value == 1
    assert "clusterctl accounts rotate node001" in " ".join(place.run("why", "node001").stdout.split())
    code, report = place.report("accounts", "rotate", "node001", "--yes")
    assert (code, report["node001"]["error"]) == (0, None)
    assert place.machine().bmc.password != BMC_PASSWORD


def test_neither_and_unknown(place: Place) -> None:
    """One that was changed by someone else, and one that does not answer: reported, with exit code 1."""
    place.behave("node002", password="another-password")
    text = (place.site / "bmcs.csv").read_text()
    (place.site / "bmcs.csv").write_text(text.replace(place.machine("node003").bmc.address, "127.179.200.200"))
    code, report = place.report("accounts", "check")
    assert code == 1
    assert [report[name]["takes"] for name in NAMES] == ["given", "neither", "unknown"]
    assert [(report[name]["error"] or {}).get("kind") for name in NAMES] == [None, "authentication", "unreachable"]


def test_nothing_proves_which_machine_it_is(place: Place) -> None:
    """Trusted on first use, and the factory password is public: refused, and nothing is changed; with one of its
    own it is.
    """
    place.edit(f"  ca_file: {place.lab.ca.file}\n  port", "  first_use: pin\n  port")
    place.behave("node001", BmcQuirk.MUST_CHANGE_PASSWORD)
    code, report = place.report("accounts", "rotate", "node001", "--yes")
    assert code == 1
    assert "nothing proves which machine this is" in report["node001"]["error"]["message"]
    assert place.passwords() == {BMC_PASSWORD}
    place.sheet(("label-of-one-7",))
    place.behave("node001", BmcQuirk.MUST_CHANGE_PASSWORD, password="label-of-one-7")
    assert place.report("accounts", "rotate", "node001", "--yes")[0] == 0


def test_at_discovery_where_the_site_asks_for_it(place: Place) -> None:
    """`when: discover`: changed by the run itself, and then read."""
    place.edit("rotation: {length: 18}", "rotation: {when: discover}")
    place.behave("node001", BmcQuirk.MUST_CHANGE_PASSWORD)
    place.run("discover", "--limit", "node001", "--yes")
    assert place.machine().bmc.password != BMC_PASSWORD
    assert "BMC: password 1 of root is in use" in place.run("nodes", "node001").stdout
    assert "factory password" not in place.run("why", "node001").stdout
    assert place.machine("node002").bmc.password == BMC_PASSWORD


def test_what_was_begun_is_finished_by_the_next_run(place: Place) -> None:
    """A password that MAAS does not have, and one that is in doubt: settled before anything else is done."""
    (place.site / "secrets" / "maas-api-key").write_text("consumerkey:tokenkey:not-the-one")
    code, report = place.report("accounts", "rotate", "node001", "--yes")
    assert (code, report["node001"]["number"]) == (1, 1)
    assert report["node001"]["error"]["kind"] == "authentication"
    assert "the installer does not have it yet" in " ".join(place.run("why", "node001").stdout.split())
    (place.site / "secrets" / "maas-api-key").write_text(API_KEY)
    place.begin("node002", "DoubtfuK4722abcdef")
    done = place.run("discover", "--yes", "--limit", "node00[12]")
    assert "node001: finished (password 1)" in done.stderr
    assert "node002: finished (password 1)" in done.stderr
    assert place.machine("node002").bmc.password == "DoubtfuK4722abcdef"
    assert "does not have it yet" not in " ".join(place.run("why", "node001").stdout.split())


def test_without_a_rule(place: Place) -> None:
    """Nothing is changed by a guess."""
    place.edit(RULE, "")
    with pytest.raises(UsageError, match="no rule") as caught:
        place.run("accounts", "rotate", "--all", "--yes")
    assert "site.yml" in caught.value.where


def test_one_that_a_run_works_with(place: Place) -> None:
    """Is left to it."""
    context = open_site(place.site)
    context.describe()
    (node,) = [node.id for node in context.journal.summaries() if node.name == "node001"]
    context.journal.claim([node], "another")
    with pytest.raises(ClaimLostError):
        place.run("accounts", "rotate", "node001", "--yes")
    assert place.passwords() == {BMC_PASSWORD}


@pytest.mark.parametrize(
    ("shortest", "longest", "words"),
    [(8, 20, "8 to 20"), (None, 40, "at most 40"), (8, None, "at least 8"), (0, 0, "")],
)
def test_limits_in_words(shortest: int | None, longest: int | None, words: str) -> None:
    """A limit that the BMC does not report is left out, and leaves no sign that reads like another number."""
    assert length_limits(shortest, longest) == words
