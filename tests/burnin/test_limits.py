"""Limits and suites: every figure has its unit and source, and a wrong file is refused with file, line and field."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import replace

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity
from clusterctl_burnin.check import without_figure
from clusterctl_burnin.fleet_metrics import METRICS
from clusterctl_burnin.kernel_log.nvidia_codes import recovery, sxid_table, xid_table
from clusterctl_burnin.limits.limit import VERSION, LimitKey
from clusterctl_burnin.limits.reading import (
    LimitsText,
    hardware_of_shipped,
    limits_behind,
    parse_limits,
    shipped_limits,
)
from clusterctl_burnin.package_data import names_in, text_of
from clusterctl_burnin.registry import CHECKS, GROUP_LOADS, NODE_LOADS, keys_of, limit_keys
from clusterctl_burnin.suites.suite import Changes, parse_suite, shipped_suite
from clusterctl_burnin.sweep import sweep
from tests.lab_data import lab_limits, lab_text

SHIPPED = "h100-sxm-ndr400"
GOOD = lab_text("limits/lab.yml")
WHOLE = text_of("suites/bootstrap.yml") + "checks:\n" + "".join(f"  - {name}\n" for name in CHECKS)
"""A suite that lists its checks, as a site's own does."""
ON_SUSPICION = {"all_reduce_node", "all_reduce_rail", "hang_hunt", "nccl_init", "training"}
"""Loads that are not on the way to gold, but after a repair, or where jobs go wrong."""


@pytest.mark.parametrize("name", names_in("limits", suffix=".yml"))
def test_shipped_limits_are_whole(name: str) -> None:
    """Every limit has a unit and a source; and the file has the name that it contains."""
    limits = shipped_limits(name)
    assert limits.name == name
    keys = {key.name: key for key in limit_keys().values() if key.unit != VERSION}
    assert limits.limits.keys() == keys.keys()
    assert all(limits[key].unit == key.unit and limits[key].source for key in keys.values())


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_a_check_declares_the_limits_that_its_code_reads(check: str) -> None:
    """No more and no fewer, so that a report can name each with unit and source."""
    module = sys.modules[CHECKS[check].judge.__module__]
    tree = ast.parse(inspect.getsource(module))
    code = [one for one in tree.body if not (isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "CHECK")]
    names = {
        node.id
        for one in code
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    watch = CHECKS[check].watch
    declared = {*keys_of(check), *(watch.limits if watch else ())}
    assert {key for name in names if isinstance(key := vars(module).get(name), LimitKey)} == declared


def test_a_default_has_a_source() -> None:
    """A figure without a source is rejected, wherever it is written."""
    assert all(key.source for key in limit_keys().values() if key.default is not None)


def test_a_file_may_change_a_default_and_must_name_the_rest() -> None:
    """What depends on no hardware is right without being written; a site may still write it, in its unit."""
    assert lab_limits()["memory_corrected_max"].value == limit_keys()["memory_corrected_max"].default
    more = "limits:\n  memory_corrected_max: {value: 7, unit: per 24 hours, source: ours}\n"
    changed = parse_limits(GOOD.replace("limits:\n", more, 1), where="x.yml")
    assert changed["memory_corrected_max"].value == 7
    assert changed.digest != lab_limits().digest


def test_causes_are_checks_and_come_first() -> None:
    """In the order of every suite; a cause that is no check would explain nothing."""
    order = list(CHECKS)
    for check in CHECKS.values():
        assert all(order.index(cause.check) < order.index(check.name) for cause in check.causes)


def test_required_suites_are_shipped() -> None:
    """A check in a suite that does not exist would never run."""
    assert {suite for check in CHECKS.values() for suite in check.suites} <= set(names_in("suites", suffix=".yml"))
    assert all(keys_of(load) == load_.limits for load, load_ in {**NODE_LOADS, **GROUP_LOADS}.items())


def test_the_lab_limits_state_that_they_are_no_figures_of_hardware() -> None:
    """Each is complete, and a limit that only proves that bytes move is marked as such."""
    for name in ("lab", "lab-metal"):
        limits = lab_limits(name)
        assert (limits.name, limits.limits.keys()) == (name, shipped_limits(SHIPPED).limits.keys())
    for name in ("ib_write_bw_min", "all_reduce_busbw_min"):
        assert "plumbing" in lab_limits()[name].source


def test_a_file_that_extends_another_holds_only_the_differences() -> None:
    """Figures with their sources are taken over or replaced whole, methods field by field; the rest stays."""
    own = (
        "version: 1\nname: site\nhardware: ours\nextends: h100-sxm-ndr400\n"
        "limits:\n  nvlink_count: {value: 12, unit: links, source: our own}\n"
        "methods:\n  all_reduce: {group_nodes: 4}\n"
    )
    base, limits = shipped_limits(SHIPPED), parse_limits(own, where="site/l.yml")
    assert limits["nvlink_count"].value == 12
    assert {key for key in base.limits if limits[key] != base[key]} == {"nvlink_count"}
    assert (limits.methods.all_reduce.group_nodes, limits.methods.all_reduce.ranks_per_node) == (
        4,
        base.methods.all_reduce.ranks_per_node,
    )
    assert limits.methods.ib_write_bw == base.methods.ib_write_bw
    assert limits.digest != base.digest


def test_limits_of_the_site_may_extend_each_other() -> None:
    """`extends` means the site's own limits before shipped ones, and a file that extends its own name the shipped one."""
    head = "version: 1\nhardware: ours\n"
    one = f"{head}name: one\nextends: {SHIPPED}\nlimits:\n  nvlink_count: {{value: 12, unit: links, source: our own}}\n"
    two = f"{head}name: two\nextends: one\n"
    others = {"one": LimitsText(one, "site/one.yml")}
    assert parse_limits(two, where="site/two.yml", others=others)["nvlink_count"].value == 12
    itself = LimitsText(one.replace("name: one", f"name: {SHIPPED}"), f"site/{SHIPPED}.yml")
    extended = parse_limits(f"{head}name: two\nextends: {SHIPPED}\n", where="site/two.yml", others={SHIPPED: itself})
    assert extended["nvlink_count"].value == 12


def test_limits_that_extend_each_other_in_a_circle_are_refused() -> None:
    """The circle ends where a name would be used twice."""
    head = "version: 1\nhardware: ours\n"
    others = {"one": LimitsText(f"{head}name: one\nextends: two\n", "site/one.yml")}
    with pytest.raises(UsageError, match="no limits are called 'two'"):
        parse_limits(f"{head}name: two\nextends: one\n", where="site/two.yml", others=others)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("extends: none-such", r"site/l.yml:4 extends: no limits are called 'none-such'"),
        (
            "extends: h100-sxm-ndr400\nlimits:\n  nvlink_count: {value: 12, unit: links}",
            r"nvlink_count.source: this field is required",
        ),
        ("extends: h100-sxm-ndr400\nlimits: [1]", r"site/l.yml:5 limits"),
        ("extends: h100-sxm-ndr400\nmethods:\n  all_reduce: 3", r"site/l.yml:6 methods.all_reduce"),
        ("extends: h100-sxm-ndr400\nmethods: [1]", r"site/l.yml:5 methods"),
        ("extends: 7", r"site/l.yml:4 extends"),
    ],
)
def test_a_wrong_field_is_refused_with_its_line(more: str, words: str) -> None:
    """Another file's figures do not hide a mistake in this one."""
    with pytest.raises(UsageError) as caught:
        parse_limits(f"version: 1\nname: site\nhardware: ours\n{more}\n", where="site/l.yml")
    assert re.search(words, f"{caught.value.where}: {caught.value.message}")


def test_patience_stretches_the_probes_and_no_verdict() -> None:
    """Every probe gets its time-out so many times over; the digest, which distinguishes verdicts, stays."""
    patient = parse_limits(f"{GOOD}patience: 4\n", where="x.yml")
    assert (patient.patience, lab_limits().patience) == (4, 1)
    assert patient.digest == lab_limits().digest
    checks = tuple(CHECKS.values())
    assert sweep(checks, patient.patience).timeout > 2 * sweep(checks).timeout
    longest = max(probe.timeout for check in checks for probe in check.probes)
    assert f'\\"timeout\\": {4 * longest}' in sweep(checks, 4).stdin.decode()


PARTS = {"hca": "MT_0000000838", "gpu_vbios": "NVIDIA H100 80GB HBM3", "transceiver": "MMA4Z00-NS"}
"""A kind of each part that `firmware` lists."""


BARE = re.sub(r"^firmware:\n(?:[ #].*\n)+", "", GOOD, flags=re.MULTILINE)
"""Limits that list no firmware."""


def with_firmware(part: str, version: str = "1.2") -> str:
    entry = f"{{versions: ['{version}'], otherwise: fail, source: ours}}"
    return f"{BARE}firmware:\n  {part}:\n    others: warn\n    wanted:\n      {PARTS[part]}: {entry}\n"


@pytest.mark.parametrize("part", PARTS)
def test_the_digest_follows_the_firmware_of_each_part(part: str) -> None:
    """Reports by other versions are distinguished; a file without a list has the digest that it always had."""
    limits = parse_limits(with_firmware(part), where="x.yml")
    assert limits.firmware
    assert (
        len({lab_limits().digest, limits.digest, parse_limits(with_firmware(part, "1.3"), where="x.yml").digest}) == 3
    )
    wanted = getattr(limits.firmware, part)
    assert (wanted.stranger, wanted.wanted[PARTS[part]].verdict) == (Verdict.WARN, Verdict.FAIL)


def test_a_file_that_extends_another_differs_by_its_figures_alone() -> None:
    """`extends` is no figure: the file that it names, written out, is the same limits."""
    text = f"version: 1\nname: {SHIPPED}\nhardware: {hardware_of_shipped()[SHIPPED]!r}\nextends: {SHIPPED}\n"
    assert parse_limits(text, where="x.yml").digest == shipped_limits(SHIPPED).digest


def test_the_digest_follows_neither_extends_nor_patience_where_firmware_is_listed() -> None:
    """The same holds for a file with a list of firmware."""
    base = re.sub(r"^name: .*$", "name: one", with_firmware("hca"), flags=re.MULTILINE)
    hardware = re.search(r"^hardware: .*$", base, flags=re.MULTILINE)
    assert hardware
    text = f"version: 1\nname: one\n{hardware[0]}\nextends: one\npatience: 4\n"
    others = {"one": LimitsText(base, "site/one.yml")}
    assert parse_limits(text, where="x.yml", others=others).digest == parse_limits(base, where="y.yml").digest


def test_the_digest_follows_neither_patience_nor_the_order_of_the_figures() -> None:
    """Also of a file that lists no firmware."""
    digest = parse_limits(BARE, where="x.yml").digest
    assert parse_limits(f"{BARE}patience: 4\n", where="x.yml").digest == digest
    moved = re.search(r"^  nvlink_count:\n(?:    .*\n)+", BARE, flags=re.MULTILINE)
    assert moved
    last = BARE.replace(moved[0], "", 1).replace("\nversions:\n", f"\n{moved[0]}versions:\n", 1)
    assert last != BARE
    assert parse_limits(last, where="x.yml").digest == digest


@pytest.mark.parametrize("name", ["nvlink_rate_min", "gpu_idle_memory_max"])
def test_an_open_figure_is_one_that_every_measurement_meets(name: str) -> None:
    """Nothing is less than a lower one, and nothing more than an upper one; its unit is reported."""
    key = limit_keys()[name]
    more = f"limits:\n  {name}: {{value: null, unit: {key.unit}, source: unknown}}\n"
    limits = parse_limits(f"version: 1\nname: x\nhardware: y\nextends: {SHIPPED}\n{more}", where="x.yml")
    assert limits.open == {name}
    assert limits[name].value == (0 if name.endswith("_min") else sys.float_info.max)
    check = next(check for check in CHECKS if key in keys_of(check))
    (behind,) = (one for one in limits_behind(check, limits) if one.name == name)
    assert (behind.value, behind.unit) == ("open", key.unit)


def test_a_metric_that_is_compared_twice_is_refused() -> None:
    name = next(iter(METRICS))
    text = re.sub(r"^compared:.*(\n[ #].*)*$", f"compared: [{name}, {name}]", GOOD, flags=re.MULTILINE)
    with pytest.raises(UsageError, match="each metric once"):
        parse_limits(text, where="x.yml")


def test_what_an_extended_file_compares_is_taken_over() -> None:
    """Every field that a file does not write is the other file's, not the default."""
    name = next(iter(METRICS))
    base = re.sub(r"^compared:.*(\n[ #].*)*$", f"compared: [{name}]", GOOD, flags=re.MULTILINE)
    others = {"one": LimitsText(re.sub(r"^name: .*$", "name: one", base, flags=re.MULTILINE), "site/one.yml")}
    text = "version: 1\nname: two\nhardware: ours\nextends: one\n"
    assert parse_limits(text, where="site/two.yml", others=others).compared == {name}


@pytest.mark.parametrize("more", ["colour: blue", "patience: 0.5", "patience: 101"])
def test_an_unknown_field_and_patience_out_of_bounds_are_refused(more: str) -> None:
    with pytest.raises(UsageError, match=f"x.yml:[0-9]+ {more.split(':', maxsplit=1)[0]}"):
        parse_limits(f"{GOOD}{more}\n", where="x.yml")


@pytest.mark.parametrize("patience", [1, 100])
def test_patience_at_its_bounds(patience: int) -> None:
    assert parse_limits(f"{GOOD}patience: {patience}\n", where="x.yml").patience == patience


def test_an_open_version_is_met_by_every_one_and_reported_as_open() -> None:
    limits = parse_limits(re.sub(r"value: 28\.39\.1002", "value: null", GOOD, count=1), where="x.yml")
    assert limits.open == {"hca_firmware_min"}
    assert limits.versions["hca_firmware_min"].value == "0.0"
    assert lab_limits().versions["hca_firmware_min"].value == "28.39.1002"
    (behind,) = (one for one in limits_behind("hca_firmware", limits) if one.name == "hca_firmware_min")
    assert (behind.value, behind.unit) == ("open", "")
    (named,) = (one for one in limits_behind("hca_firmware", lab_limits()) if one.name == "hca_firmware_min")
    assert named.value == "28.39.1002"


def test_the_digest_follows_the_figures_not_the_comments() -> None:
    """Another comment is the same limits; another figure is not."""
    digest = parse_limits(GOOD, where="x.yml").digest
    assert parse_limits("# a word\n" + GOOD, where="y.yml").digest == digest
    assert parse_limits(GOOD.replace("value: 18", "value: 17"), where="x.yml").digest != digest


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("value: 18", "value: many", r"site/l.yml:\d+ limits.nvlink_count.value: .*found 'many'"),
        ("unit: links", "unit: feet", r"site/l.yml:\d+ limits.nvlink_count.unit: 'feet' is not its unit"),
        (
            "    source: the lab's model of an XE9680, as the real one\n",
            "",
            r"limits\.\w+\.source: this field is required",
        ),
        ("  nvlink_count:", "  nvlink_number:", r"site/l.yml:\d+ limits: the limit nvlink_count is missing"),
        ("limits:\n", "limits:\n  made_up: {value: 1, unit: s, source: x}\n", r"limits.made_up: no such limit"),
        ("  hca_firmware_min:", "  hca_firmware:", r"versions: the version hca_firmware_min is missing"),
        ("versions:\n", "versions:\n  hca_firmware: {value: 1.2, source: x}\n", r"versions.hca_firmware"),
        (
            "versions:\n",
            "versions:\n  hca_firmware: {value: '1.2', source: x}\n",
            r"versions.hca_firmware: no such version",
        ),
        ("versions:\n", "versions: {}\nolder:\n", r"older"),
        ("value: 28.39.1002", "value: latest", r"versions.hca_firmware_min.value: .*'latest'"),
        ("value: 28.39.1002", "value: 28.39", r"versions.hca_firmware_min.value"),
        ("group_nodes: 8", "group_nodes: 0", r"methods.all_reduce.group_nodes"),
        ("version: 1", "version: 2", r"site/l.yml:3 version"),
        ("version: 1", "version: 1\nversion: 1", r"site/l.yml:4 version: is written twice"),
        ("version: 1", "version: [1", r"site/l.yml:\d+: is not valid YAML"),
        ("compared:", "compared: [wind]\nothers:", r"compared: .*no metric is called 'wind'"),
        (GOOD, "", r"site/l.yml:1"),
        (GOOD, "- a list\n", r"site/l.yml:1"),
    ],
)
def test_a_wrong_limits_file_is_refused_with_its_line(old: str, new: str, words: str) -> None:
    """The error names file, line and field, and what to do."""
    assert old in GOOD
    with pytest.raises(UsageError, match=words) as caught:
        parse_limits(GOOD.replace(old, new, 1), where="site/l.yml")
    assert caught.value.remedy


def test_unknown_shipped_limits_name_the_known_ones() -> None:
    """A typing error in a SKU is refused with the list of known fields."""
    with pytest.raises(UsageError, match="h100-sxm-ndr400"):
        shipped_limits("h1000")


@pytest.mark.parametrize("name", names_in("suites", suffix=".yml"))
def test_a_shipped_suite_has_the_name_of_its_file_and_leaves_no_check_out(name: str) -> None:
    """In the same order, causes before consequences; who hunts between nodes leaves out the loads of one."""
    suite = shipped_suite(name)
    assert suite.name == name
    assert suite.checks == shipped_suite().checks
    assert set(suite.loads) - ON_SUSPICION == (set() if name == "hunt-training" else set(shipped_suite().loads))
    assert {load.name for load in suite.solo} - ON_SUSPICION <= {load.name for load in shipped_suite().solo}


def test_what_a_site_changes_is_changed_and_nothing_else() -> None:
    """The rest is as the suite has it; how long its loads take at least follows."""
    suite = shipped_suite("revalidate")
    changed = suite.changed(Changes(pair_rounds=3, group_iterations=7))
    assert (changed.pair_rounds, changed.group_iterations, changed.pair_seconds) == (3, 7, suite.pair_seconds)
    assert suite.changed(Changes()) == suite
    alone = sum(suite.node_seconds.values())
    assert (suite.least_seconds - alone, changed.least_seconds - alone) == (3600, 2160)
    assert shipped_suite().least_seconds == 900 + sum(shipped_suite().node_seconds.values())


def test_the_bootstrap_suite_asks_for_every_check() -> None:
    """All checks, and all loads but those for nodes under suspicion or of a site alone; its names are what a complete report must have."""
    suite = shipped_suite()
    assert (suite.pair_seconds, suite.group_iterations, suite.known_bad) == (180, 8, False)
    assert {check.name for check in suite.checks} == set(CHECKS)
    assert suite.required == frozenset(CHECKS) | (set(NODE_LOADS) - ON_SUSPICION - {"storage_read"}) | {
        "ib_write_bw",
        "all_reduce",
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("- gpu_ecc", "- gpu_echo", r"s.yml:\d+ checks.\d+: no check is called 'gpu_echo'"),
        ("- gpu_ecc", "- gpu_count", "stands twice"),
        ("- all_reduce", "- all_reduction", r"s.yml:\d+ loads.\d+: no load is called 'all_reduction'"),
        ("- nvme_read", "- stress_ng", r"s.yml:\d+ loads.\d+: 'stress_ng' stands twice"),
        ("dcgm_diag: 120", "dcgm_diag: 0", r"s.yml:\d+ node_seconds.dcgm_diag"),
        (
            "dcgm_diag: 120",
            "all_reduce: 9",
            r"s.yml:\d+ node_seconds.all_reduce: .*no load",
        ),
        ("pair_rounds: 5", "pair_rounds: 0", r"s.yml:\d+ pair_rounds"),
        ("pair_seconds: 180", "pair_seconds: 1.5", r"s.yml:\d+ pair_seconds"),
        ("group_rounds: 6", "group_rounds: 100", r"s.yml:\d+ group_rounds"),
        ("pair_rounds: 5", "pair_rounds: 5\nknown_bad: 1", r"s.yml:\d+ known_bad"),
        ("pair_rounds: 5", "pair_rounds: 5\nall_night: true", r"s.yml:\d+ all_night"),
    ],
)
def test_a_wrong_suite_is_refused_with_its_line(old: str, new: str, words: str) -> None:
    """Likewise."""
    with pytest.raises(UsageError, match=words):
        parse_suite(WHOLE.replace(old, new), where="s.yml")


def test_the_error_tables_are_readable_and_sane() -> None:
    """Codes that every operator knows have the action that he expects."""
    xids = xid_table()
    assert {code: xids[code].action.verdict for code in (79, 48, 95, 119, 13, 43, 45)} == {
        **dict.fromkeys((79, 48, 95, 119), Verdict.FAIL),
        **dict.fromkeys((13, 43, 45), Verdict.WARN),
    }
    assert all(row.meaning and row.action.remedy for row in xids.values())
    assert sxid_table()[20034].fatal
    assert all(row.meaning for row in sxid_table().values())


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", Verdict.FAIL),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", Verdict.WARN),
    ],
)
def test_the_drivers_own_verdict_is_read_from_its_last_words(text: str, verdict: Verdict) -> None:
    """Xid 154: what it changed to counts."""
    found = recovery(text)
    assert found is not None
    assert found[0] is verdict
    assert recovery("something new") is None


def test_loads_of_one_node_last_as_the_suite_or_the_site_has_it() -> None:
    """The site's word goes before the suite's, load by load; what neither names is left to the limits file."""
    nightly = shipped_suite("nightly")
    alone = ("dcgm_diag", "gpu_load", "stress_ng", "nvme_read", "all_at_once")
    assert nightly.all_loads == (*alone, "ib_write_bw", "all_reduce")
    changed = nightly.changed(Changes(node_seconds={"stress_ng": 7}))
    assert changed.node_seconds == {**nightly.node_seconds, "stress_ng": 7}
    assert changed.least_seconds == nightly.least_seconds - nightly.node_seconds["stress_ng"] + 7
    assert "stress_ng" not in shipped_suite("bootstrap").node_seconds
    assert shipped_suite("hunt").solo == ()


def test_a_figure_without_a_source_is_open_and_its_check_never_passes() -> None:
    """A measurement that no figure judges is INCONCLUSIVE; what fails by another figure stays failed."""
    text = GOOD.replace("extends", "# extends", 1)
    line = re.search(r"  gpu_idle_memory_max: *\{[^}]*\}|  gpu_idle_memory_max:\n(?:    .*\n)+", text)
    assert line
    open_one = "  gpu_idle_memory_max: {value: null, unit: MiB, source: not calibrated}\n"
    limits = parse_limits(text.replace(line[0], open_one, 1), where="x.yml")
    assert limits.open == {"gpu_idle_memory_max"}
    assert limits["gpu_idle_memory_max"].value == sys.float_info.max, "every measurement meets it"
    assert limits.digest != lab_limits().digest
    keys = keys_of("gpu_idle")
    good = passed("gpu_idle", "idle", measured=Quantity(4, "MiB"))
    bad = replace(good, verdict=Verdict.FAIL, code=Code.GPU_TOO_HOT, remedy="check the fans")
    far = replace(good, verdict=Verdict.NOT_APPLICABLE, code=Code.NOT_APPLICABLE)
    (open_finding,) = without_figure("gpu_idle", keys, limits, [good])
    assert (open_finding.verdict, open_finding.code) == (Verdict.INCONCLUSIVE, Code.NO_LIMIT)
    assert open_finding.measured == Quantity(4, "MiB")
    assert [one.verdict for one in without_figure("gpu_idle", keys, limits, [good, bad])] == [
        Verdict.FAIL,
        Verdict.INCONCLUSIVE,
    ]
    assert without_figure("gpu_idle", keys, limits, [far]) == (far,)
    assert without_figure("gpu_idle", keys, lab_limits(), [good]) == (good,)
    assert "open" in [behind.value for behind in limits_behind("gpu_idle", limits)]


def test_a_number_of_parts_cannot_be_open() -> None:
    with pytest.raises(UsageError, match="cannot be left open"):
        parse_limits(
            f"version: 1\nname: x\nhardware: y\nextends: {SHIPPED}\nlimits:\n"
            "  nvlink_count: {value: null, unit: links, source: unknown}\nversions: {}\nmethods: {}\n",
            where="x.yml",
        )
