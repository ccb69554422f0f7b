"""hold, release, quarantine, waive, merge, retire: what is written, printed, and refused."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import ClaimLostError, UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import NodeId
from clusterctl.operations.context import open_site
from clusterctl_cli import main
from clusterctl_cli.main import cli
from tests.cli.site_of_three import HOT, PROOF, SWAPPED, append, quarantined, run, seq, write
from tests.events import new_event
from tests.steps.fakes import inventory

WHY = ("--reason", "ticket 7", "--yes")
WAIVE = ("waive", "n2", "--check", "gpu_ecc", "--until", "30d", *WHY)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("fresh"))


@pytest.fixture
def site(fresh: Path, tmp_path: Path) -> Path:
    """A site of its own for each test."""
    return Path(shutil.copytree(fresh, tmp_path / "site"))


def shown(site: Path, name: str) -> dict[str, Any]:
    """The node's line of `nodes --json`."""
    return dict(json.loads(run(site, "nodes", "-l", f"name={name}", "--json").stdout)["nodes"][0])


def pool(site: Path) -> list[str]:
    """Who is published."""
    return [node["name"] for node in json.loads((site / "gold.json").read_text())["gold"]]


def test_a_hold_is_journaled_with_actor_and_reason(site: Path) -> None:
    """Every operator sees the holder, the reason and the end; no work is left to do."""
    assert run(site, "hold", "n2", "--until", "2w", *WHY).return_value == 0
    node = shown(site, "n2")
    me = node["hold"]["by"]
    assert (node["stage"], node["hold"]["reason"]) == ("quarantined", "ticket 7")
    assert node["cause"].startswith(f"held by {me} until 20")
    assert "2 uncorrectable errors" in node["cause"]
    assert f"nothing: held by {me}" in run(site, "plan", "--limit", "n2").stdout
    assert f"Held by {me} until" in run(site, "why", "n2").stdout
    history = run(site, "nodes", "n2").stdout
    assert "HELD until 20" in history
    assert me in history


def test_a_held_gold_node_leaves_the_pool_and_comes_back(site: Path) -> None:
    """At once, both ways; its stage stays gold."""
    run(site, "hold", "n1", *WHY)
    assert (pool(site), shown(site, "n1")["stage"]) == ([], "gold")
    assert "gold (held)" in run(site, "nodes").stdout
    assert "Held by operators" in run(site, "report").stdout
    result = run(site, "release", "n1", *WHY).stdout
    assert "no longer held by" in result
    assert pool(site) == ["n1"]


def test_a_node_that_nothing_has_happened_to_can_be_held(site: Path) -> None:
    """The sheet names it: that is enough."""
    run(site, "hold", "n3", *WHY)
    assert shown(site, "n3")["hold"]["reason"] == "ticket 7"


def test_bootstrap_leaves_held_nodes_alone_and_reports_it(site: Path) -> None:
    """No step, no claim; exit code 1, as for all that is held."""
    run(site, "release", "n2", *WHY)
    run(site, "hold", "n*", *WHY)
    before = open_site(site).journal.states()
    done = run(site, "bootstrap", "--yes", "--json")
    assert done.return_value == 1
    left = json.loads(done.stdout)["left_alone"]
    assert left.keys() == {"n1", "n2", "n3"}
    assert all("until released: ticket 7" in words for words in left.values())
    assert open_site(site).journal.states() == before


def test_a_held_node_is_no_partner(site: Path) -> None:
    """Nothing is measured with it either."""
    run(site, "hold", "n1", *WHY)
    with pytest.raises(UsageError, match="n1 cannot be a partner: held by"):
        run(site, "bootstrap", "--partner", "n1", "--yes")


def test_patterns_mean_all_or_none(site: Path) -> None:
    """One of them that cannot be released keeps all as they are."""
    before = seq(site)
    with pytest.raises(UsageError, match="nothing holds n1"):
        run(site, "release", "n*", *WHY)
    assert seq(site) == before
    assert run(site, "hold", "n1", "n2", *WHY).return_value == 0
    assert run(site, "release", "n[12]", *WHY).return_value == 0
    assert (shown(site, "n1")["hold"], shown(site, "n2")["stage"]) == (None, "cabled")


def test_a_node_that_a_run_works_on_is_not_decided_about(site: Path) -> None:
    """The refusal names the holder, nothing is written about any node, and the others' claims are given back."""
    context = open_site(site)
    other = context.journal.claim([NodeId("id-n2")], "20260101T000000-beef")
    before = seq(site)
    with pytest.raises(ClaimLostError, match="20260101T000000-beef") as caught:
        run(site, "hold", "n1", "n2", *WHY)
    assert caught.value.where == "n2"
    assert seq(site) == before
    context.journal.release(other.granted.values())
    assert run(site, "hold", "n1", "n2", *WHY).return_value == 0


def test_a_dry_run_decides_nothing(site: Path) -> None:
    """It prints what would be done, and checks it as the real order does."""
    before = seq(site)
    result = run(site, "quarantine", "n1", "--reason", "smells", "--dry-run").stdout
    assert "n1: quarantined; a release leads back to burnin; it leaves the gold pool" in result
    assert "Nothing was changed" in result
    assert seq(site) == before
    with pytest.raises(UsageError, match="quarantined already"):
        run(site, "quarantine", "n2", "--reason", "x", "--dry-run")


def test_it_asks_first(site: Path) -> None:
    """A no changes nothing."""
    before = seq(site)
    answer = CliRunner().invoke(
        cli, ["quarantine", "n1", "--reason", "smells", "--site", str(site)], input="n\n", standalone_mode=False
    )
    assert "it leaves the gold pool" in answer.output
    assert (answer.exit_code, seq(site)) == (1, before)


def test_a_persons_quarantine(site: Path) -> None:
    """A gold node leaves the pool; why names the operator and the part, and a release leads back."""
    document = json.loads(run(site, "quarantine", "n1", "--part", "0", "--reason", "dying", "--yes", "--json").stdout)
    assert document["dry_run"] is False
    node = document["nodes"][0]
    assert (node["stage"], node["cause"], node["stopped_at"]) == (
        "quarantined",
        "dying (0, serial DISK-S1)",
        "burnin",
    )
    assert pool(site) == []
    assert f"decided by {node['stopped_by']}" in run(site, "why", "n1").stdout
    assert f"dying (0, serial DISK-S1) ({node['stopped_by']})" in run(site, "report").stdout
    run(site, "release", "n1", *WHY)
    assert shown(site, "n1")["stage"] == "cabled"


def test_a_waiver_is_shown_with_the_finding(site: Path) -> None:
    """The finding keeps its verdict everywhere, with the operator who answers for it and the end."""
    assert "counts as a warning until" in run(site, *WAIVE).stdout
    finding = json.loads(run(site, "why", "n2", "--json").stdout)["nodes"][0]["findings"][0]
    assert (finding["verdict"], finding["waived"].split(" until ")[0][:10]) == ("fail", "waived by ")
    assert "Waived      waived by" in run(site, "why", "n2").stdout
    run(site, "waive", "n2", "--check", "gpu_ecc", "--until", "30d", "--reason", "[ticket] 7\x1b[31m", "--yes")
    assert "[ticket] 7\\x1b[31m" in run(site, "nodes", "n2").stdout.replace("\n", " ")
    assert run(site, *WAIVE).return_value == 0
    assert "2 uncorrectable errors (waived by" in " ".join(run(site, "nodes", "n2").stdout.split())
    (waiver,) = shown(site, "n2")["waivers"]
    assert (waiver["check"], waiver["reason"], waiver["active"]) == ("gpu_ecc", "ticket 7", True)
    run(site, "waive", "n2", "--check", "gpu_ecc", "--revoke", *WHY)
    assert shown(site, "n2")["waivers"] == []


def test_gold_in_spite_of_a_finding_is_shown_with_its_waiver(site: Path) -> None:
    """In the list and in the acceptance report, with the verdict that the finding has."""
    append(site, quarantined("n1", "burnin", HOT)[:1])
    run(site, "waive", "n1", "--check", "gpu_ecc", "--subject", "gpu3", "--until", "30d", *WHY)
    assert "gpu_ecc of gpu 3 waived by" in run(site, "nodes").stdout
    report = run(site, "report").stdout
    assert "gpu_ecc of gpu 3 is fail (2 uncorrectable errors), waived by" in report
    output = json.loads(run(site, "report", "--json").stdout)["nodes"][0]
    assert output["reports"]["burnin"]["findings"][0]["verdict"] == "fail"


def test_a_merge_rests_on_what_discover_has_seen(site: Path) -> None:
    """Seen at the node's BMC: believed; the sheet's other serial is pointed out."""
    with pytest.raises(UsageError, match="S9 was not seen at n2"):
        run(site, "merge", "n2", "--serial", "S9", *WHY)
    append(site, quarantined("n2", "discover", SWAPPED), [PROOF])
    merged = run(site, "merge", "n2", "--serial", "S9", *WHY)
    assert "instead of S2" in merged.stdout
    assert "the sheet has serial S2 for n2: correct it to S9" in merged.stderr
    node = shown(site, "n2")
    assert (node["stage"], node["serial"]) == ("seen", "S9")
    text = run(site, "nodes", "n2").stdout
    assert "MERGED: the machine with serial S9, was S2: ticket 7" in text
    assert "before that the machine with serial S2" in text


def test_a_machine_that_moved_is_one_node_afterwards(site: Path) -> None:
    """The other entry is retired into this one, in one stroke."""
    moved = replace(SWAPPED, check="identity", cause="S1 is n1's", serial="S1")
    append(site, quarantined("n2", "discover", moved), [PROOF])
    with pytest.raises(UsageError, match=r"serial S1 is n1's \(gold\)"):
        run(site, "merge", "n2", "--serial", "S1", *WHY)
    run(site, "merge", "n2", "--serial", "S1", "--from", "n1", *WHY)
    assert (shown(site, "n1")["stage"], shown(site, "n1")["serial"]) == ("retired", None)
    assert shown(site, "n2")["serial"] == "S1"
    assert pool(site) == []


def test_retired_is_final(site: Path) -> None:
    """Listed, in no pool, never selected again, and not released."""
    assert run(site, "retire", "n1", *WHY).return_value == 0
    assert [
        node["name"] for node in json.loads(run(site, "nodes", "-l", "stage=retired", "--json").stdout)["nodes"]
    ] == ["n1"]
    assert pool(site) == []
    assert "nothing: retired by" in run(site, "plan", "--limit", "n1").stdout
    assert "## Retired" in run(site, "report").stdout
    done = run(site, "bootstrap", "--limit", "n1", "--yes", "--json")
    assert json.loads(done.stdout) == {"nodes": [], "left_alone": {}, "fabric": [], "links": None}
    with pytest.raises(UsageError, match="retired for good"):
        run(site, "release", "n1", *WHY)


def test_a_wipe_shows_the_drives_first(site: Path) -> None:
    """Slot, serial, model and size of each; a dry run asks for no serial and touches nothing."""
    before = seq(site)
    result = run(site, "retire", "n1", "--wipe", "--reason", "sold", "--dry-run").stdout
    assert "serial S1" in result
    assert "erase 0, serial DISK-S1, M.2, 480 GB" in result
    plan = json.loads(run(site, "retire", "n1", "--wipe", "--reason", "sold", "--dry-run", "--json").stdout)
    assert [effect["node"] for effect in plan["effects"]] == ["n1"]
    assert "serial DISK-S1" in plan["effects"][0]["text"]
    assert seq(site) == before


PXE = "provisioning:\n  backend: pxe\n  interface: eno2\n  address: 10.20.0.2\n  image: debian-12\n\n"


def test_a_wipe_over_our_own_pxe_needs_the_serial_of_each_drive(site: Path) -> None:
    """The machine compares them with its own before it erases: a drive without one is for the operator."""
    file = site / "site.yml"
    file.write_text(re.sub(r"(?ms)^provisioning:\n.*?\n\n", PXE, file.read_text()))
    wipe = ("retire", "n1", "--wipe", "--reason", "sold", "--dry-run")
    assert "erase 0, serial DISK-S1, M.2, 480 GB" in run(site, *wipe).stdout
    known = inventory("S1")
    nameless = replace(known, drives=(replace((known.drives or ())[0], serial=None),))
    data = {"inventory": inventory_to_data(nameless), "sku": "lab", "root_disk": "D"}
    journal = open_site(site).journal
    journal.append([new_event("node", "id-n1", Kind.NODE_IDENTIFIED, data)])
    journal.close()
    with pytest.raises(UsageError, match="no serial of drive 0"):
        run(site, *wipe)


EXISTING = """provisioning:
  - {backend: existing, nodes: [n1]}
  - {backend: pxe, interface: eno2, address: 10.20.0.2, image: debian-12}

"""


def test_a_wipe_of_a_machine_of_others_is_ordered_by_name(site: Path) -> None:
    """Through our own PXE, and not without --adopted; without PXE in the site there is no way."""
    file = site / "site.yml"
    wipe = ("retire", "n1", "--wipe", "--reason", "sold", "--dry-run")
    file.write_text(re.sub(r"(?ms)^provisioning:\n.*?\n\n", EXISTING, file.read_text()))
    with pytest.raises(UsageError, match="without --adopted"):
        run(site, *wipe)
    result = run(site, *wipe, "--adopted")
    assert "erase 0, serial DISK-S1, M.2, 480 GB" in result.stdout
    assert "did not install this machine" in result.stdout + result.stderr

    file.write_text(file.read_text().replace(EXISTING, PXE))
    with pytest.raises(UsageError, match="was not adopted"):
        run(site, *wipe, "--adopted")


def test_the_order_goes_with_a_wipe(site: Path) -> None:
    """By itself it means nothing."""
    with pytest.raises(UsageError, match="--adopted goes with --wipe"):
        run(site, "retire", "n1", "--adopted", *WHY)


def test_a_wipe_takes_the_right_serial(site: Path) -> None:
    """Typed or given; another one, and none, end it before any peer is asked."""
    before = seq(site)
    with pytest.raises(UsageError, match="S2 is not the serial of n1: nothing was done"):
        run(site, "retire", "n1", "--wipe", "--reason", "sold", typed="S2\n")
    with pytest.raises(UsageError, match="needs the machine's serial"):
        run(site, "retire", "n1", "--wipe", *WHY)
    assert seq(site) == before


def test_a_wipe_without_a_terminal(site: Path) -> None:
    """Wrong usage with the option that answers, and not an interruption; nothing is done."""
    before = seq(site)
    with pytest.raises(UsageError, match="no terminal to ask on") as refused:
        run(site, "retire", "n1", "--wipe", "--reason", "sold")
    assert refused.value.exit_code == 2
    assert (refused.value.where, "pass --serial SERIAL" in refused.value.remedy) == ("--serial", True)
    assert seq(site) == before


def test_a_no_is_no_interruption(site: Path) -> None:
    """Nothing is to be run again."""
    before = seq(site)
    with CliRunner().isolation(input="n\n") as (_, errors, *_):
        code = main.run(["hold", "n1", "--reason", "ticket 7", "--site", str(site)])
        printed = errors.getvalue().decode()
    assert code == 130
    assert printed.splitlines()[-1] == "declined: nothing was changed"
    assert seq(site) == before


WRONG = [
    (["hold", *WHY], "NODE", "no node is named"),
    (["hold", "x*", *WHY], "NODE", "no node matches"),
    (["hold", "n1", "--until", "2020-01-01", *WHY], "--until", "is past"),
    (["hold", "n1", "--until", "soon", *WHY], "--until", "no moment"),
    (["hold", "n1", "--reason", " ", "--yes"], "--reason", "reason is empty"),
    (["waive", "n2", "--check", "gpu_ecc", *WHY], "--until", "needs an end"),
    (["waive", "n2", "--check", "gpu_ecc", "--until", "100d", *WHY], "--until", "more than 90 days"),
    (["waive", "n2", "--check", "identity", "--until", "1d", *WHY], "--check", "never waived"),
    (["waive", "n2", "--check", "gpu_ec", "--until", "1d", *WHY], "--check", "bad ones: gpu_ecc"),
    (["quarantine", "n3", "--step", "burnin", *WHY], "--step", "has not come to burnin"),
    (["merge", "n2", "--serial", "S9", "--from", "n9", *WHY], "n9", "no node 'n9'"),
    (["retire", "n1", "--serial", "S1", *WHY], "--serial", "goes with --wipe"),
    (["retire", "n3", *WHY], "n3", "the journal has no event of n3"),
]


@pytest.mark.parametrize(("words", "where", "message"), WRONG)
def test_wrong_words_change_nothing(site: Path, words: list[str], where: str, message: str) -> None:
    """Each is refused with where and what to do, before anything is written."""
    before = seq(site)
    with pytest.raises(UsageError, match=message) as caught:
        run(site, *words)
    assert caught.value.where == where
    assert caught.value.remedy
    assert seq(site) == before


def part_history(site: Path, serial: str) -> list[str]:
    context = open_site(site)
    try:
        return [str(event.payload) for event in context.journal.history(Stream.PART, serial)]
    finally:
        context.journal.close()


def test_the_serial_of_a_new_part_joins_the_history(site: Path) -> None:
    """Of both parts; without --part the one that keeps the node back is meant. The node goes back to its step."""
    assert run(site, "release", "n2", "--serial", "1999", "--reason", "replaced", "--yes").return_value == 0
    assert shown(site, "n2")["stage"] == "cabled"
    for serial in ("1650", "1999"):
        assert part_history(site, serial)[-1] == "repair reported of n2, gpu 3: replaced; serial 1999 for 1650"
    assert "replaced; serial 1999 for 1650" in run(site, "nodes", "n2", "--part", "1999").stdout
    assert run(site, "rma", "open", "1999", "--case", "1", "--reason", "x", "--yes").return_value == 0


@pytest.mark.parametrize(
    "words",
    [
        ("n2", "--serial", "1650"),
        ("n2", "--serial", "1" * 200),
        ("n1", "n2", "--serial", "1999"),
        ("n1", "--part", "gpu3"),
    ],
)
def test_a_wrong_report_of_a_repair_is_refused(site: Path, words: tuple[str, ...]) -> None:
    """The serial of the old part, one that is too long, one part in two nodes, a node that waits for no repair."""
    before = seq(site)
    with pytest.raises(UsageError):
        run(site, "release", *words, "--reason", "replaced", "--yes")
    assert seq(site) == before
