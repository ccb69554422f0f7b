"""Every message of a kernel log is judged, known, or reported as new; and Xids are judged together."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError, UsageError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity
from clusterctl.formats.host.kernel_log import Xid, parse_dmesg, read_kernel_log, template, xids
from clusterctl_burnin.kernel_log.known_lines import ANY_LEVEL, KnownLines, shipped_patterns
from clusterctl_burnin.kernel_log.rule_table import shipped_rules
from clusterctl_burnin.kernel_log.rules import compiled
from clusterctl_burnin.kernel_log.site_lines import parse_known_lines
from clusterctl_burnin.kernel_log.slot_power import accepted_slots, odd_in_node, settled
from clusterctl_burnin.kernel_log.xids import gpu_errors
from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.probe import ProbeResult
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kernel_lines import LINES, cases
from tests.burnin.kit import Edit, expected, readings, result
from tests.formats.samples import sample

CASES = Path(__file__).parent / "data" / "kernel_log"
STAMP = "[Fri Jan  2 03:04:05 2026] "


def found(log: ProbeResult | Edit, known: KnownLines | None = None) -> tuple[Finding, ...]:
    return CHECKS["kernel_log"].findings(readings(dmesg=log), expected(known_lines=known or KnownLines()))


def append(*lines: str, level: str = "warn") -> Edit:
    return lambda healthy: healthy + "".join(f"kern  :{level:6}: {STAMP}{line}\n" for line in lines)


def test_a_healthy_log_compiles_no_pattern_that_only_unknown_messages_need() -> None:
    """Hundreds of patterns: compiling all of them would be the dearest part of a check of a few nodes."""
    shipped_rules.cache_clear()
    compiled.cache_clear()
    assert found(lambda healthy: healthy)[0].verdict is Verdict.PASS
    rules = shipped_rules()
    all_patterns = {pattern for rule in rules.rules for pattern in rule.patterns} | {*rules.suspicious, *rules.needed}
    assert compiled.cache_info().currsize * 3 < len(all_patterns)
    absent = next(pieces[-1] for rule in rules.rules for pieces in rule.pieces if "bnxt_en" in pieces[0] and pieces[1:])
    before = compiled.cache_info().misses
    compiled(absent)
    assert compiled.cache_info().misses == before + 1, "no message is of such an adapter"
    assert found(append("mlx5_core 0000:18:00.0: a new kind of error", level="err"))[0].verdict is Verdict.INCONCLUSIVE


def test_a_harmless_log_has_no_finding() -> None:
    """Messages of every fleet's kernels at level warn or above, and unknown notices."""
    harmless = (CASES / "harmless.txt").read_text()
    assert [f.verdict for f in found(lambda healthy: healthy + harmless)] == [Verdict.PASS]


def test_an_unknown_message_is_reported_once() -> None:
    """With what differs taken out, and how often; it keeps no node back."""
    lines = [f"frob 0000:{bus:02x}:00.0: lost {bus} of 64 widgets in nvme{bus}n1" for bus in (3, 17, 200)]
    (new,) = found(append(*lines))
    assert (new.verdict, new.subject, new.measured) == (Verdict.WARN, "node", Quantity(1, "kinds"))
    assert "frob <pci>: lost <n> of <n> widgets in nvme<n>n<n> (3 times)" in new.cause
    assert [f.verdict for f in found(append(*lines, level="info"))] == [Verdict.PASS]


def test_a_site_calls_a_message_known() -> None:
    """As the finding quotes it, or by a regular expression; another message stays new; no Xid becomes known."""
    text = "frob 0000:03:00.0: lost 3 widgets"
    quoted = parse_known_lines(
        f"version: 1\nknown:\n- message: '{template(text)}'\n  why: widgets are spare\n", where="kernel_log.yml"
    )
    by_regex = parse_known_lines("version: 1\nknown:\n- {pattern: '^frob .*widgets', why: spare}\n", where="x")
    for known in (quoted, by_regex):
        assert [f.verdict for f in found(append(text), known)] == [Verdict.PASS]
        assert [f.verdict for f in found(append("frob: on fire"), known)] == [Verdict.WARN]
    everything = parse_known_lines("version: 1\nknown:\n- {pattern: '.', why: x}\n", where="x")
    assert [f.measured for f in found(append("NVRM: Xid (PCI:0000:1b:00): 79, gone"), everything)] == ["Xid 79"]


@pytest.mark.parametrize(
    ("line", "where", "message"),
    [
        ("{why: x}", "kernel_log.yml:3 known.0", "needs one of"),
        ("{message: a, pattern: a, why: x}", "kernel_log.yml:3 known.0", "needs one of"),
        ("{pattern: 'a(', why: x}", "kernel_log.yml:3 known.0.pattern", "no regular expression"),
        ("{pattern: 'a*', why: x}", "kernel_log.yml:3 known.0.pattern", "matches every message"),
        ("{pattern: '(?P<a>b)', why: x}", "kernel_log.yml:3 known.0.pattern", "group that captures"),
        ("{pattern: '(a)b', why: x}", "kernel_log.yml:3 known.0.pattern", "group that captures"),
        ("{pattern: '(?i)ab', why: x}", "kernel_log.yml:3 known.0.pattern", "no regular expression"),
        ("{message: 'lost 3 widgets', why: x}", "kernel_log.yml:3 known.0.message", "lost <n> widgets"),
        ("{message: a}", "kernel_log.yml:3 known.0.why", "required"),
        ("{message: a, why: x}\n- {message: a, why: y}", "kernel_log.yml:4 known.1", "is a duplicate"),
    ],
)
def test_a_mistake_in_a_sites_list_names_its_line(line: str, where: str, message: str) -> None:
    """File, line, field, and what to do."""
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        parse_known_lines(f"version: 1\nknown:\n- {line}\n", where="kernel_log.yml")
    assert caught.value.where == where
    assert caught.value.remedy


def test_a_recorded_log_is_read_without_loss() -> None:
    """Kinds add up to the lines; what is looked at closely is what a reading line by line finds."""
    text = sample("dmesg-with-xid-119.log")
    log = read_kernel_log(text)
    assert sum(log.counts(log.kinds).values()) == len([line for line in text.splitlines() if line])
    assert xids(log.messages(lambda line: "NVRM:" in line)) == xids(parse_dmesg(text))


def test_a_recorded_log_has_its_xid_and_nothing_new() -> None:
    """Stack, registers and history of the GPU's firmware belong to the Xid; an excerpt has no beginning."""
    bad = found(lambda _: sample("dmesg-with-xid-119.log"))
    assert [(f.verdict, f.measured) for f in bad[:1]] == [(Verdict.FAIL, "Xid 119")]
    assert [f.cause for f in bad[1:] if "not known" in f.cause] == []
    assert [f.verdict for f in bad[1:]] == [Verdict.WARN]
    assert "earliest messages" in bad[1].cause


def test_rare_messages_are_found_wherever_they_stand() -> None:
    """A log far longer than what is looked at in one piece: each is counted, and they come in order."""
    lines = [f"kern  :info  : [Fri Jan  2 03:04:05 2026] filler {at}" for at in range(5000)]
    for at in (0, 1700, 3300, 4999):
        lines[at] = f"kern  :warn  : [Fri Jan  2 03:04:05 2026] odd word {at}x"
    log = read_kernel_log("\n".join(lines) + "\n")
    assert [m.text for m in log.messages(lambda text: text.startswith("odd"))] == [
        f"odd word {at}x" for at in (0, 1700, 3300, 4999)
    ]
    by_text = {kind.message.text.split()[0]: 0 for kind in log.kinds}
    for kind, times in log.counts(log.kinds).items():
        by_text[kind.message.text.split()[0]] += times
    assert by_text == {"filler": 4996, "odd": 4}


def test_a_message_of_several_lines_is_one() -> None:
    """A line without a stamp belongs to the one before, also where only the whole has the meaning."""
    text = f"{STAMP}NVRM: The NVIDIA GPU 0000:1b:00.0\nNVRM: has\nNVRM: fallen off the bus\n{STAMP}x 1\n{STAMP}x 2\n"
    log = read_kernel_log(text)
    assert sorted(log.counts(log.kinds).values()) == [1, 2]
    assert [(x.pci, x.code) for x in xids(log.messages(lambda line: "NVRM:" in line))] == [("0000:1b:00.0", 79)]


def test_a_log_that_was_cut_off_is_not_judged() -> None:
    """The newest messages would be missing: unmeasured."""
    line = f"kern  :info  : {STAMP}Linux version 6.1\n"
    (finding,) = found(result("dmesg", line * (16 * 1024 * 1024 // len(line) + 1)))
    assert finding.verdict is Verdict.INCONCLUSIVE


def test_no_message_is_no_log() -> None:
    """Empty output proves nothing."""
    with pytest.raises(ParseError):
        read_kernel_log("\n")


def test_digits_never_hide_a_pattern() -> None:
    """`0 UE` and `1 UE` are of one kind; the second is found behind the first."""
    (bad,) = found(append("EDAC MC0: 0 UE on A1", "EDAC MC0: 1 UE on A1"))
    assert (bad.verdict, bad.subject, "uncorrectable" in bad.cause) == (Verdict.FAIL, "memory A1", True)


def test_the_shipped_tables_are_sound() -> None:
    """Each known line is a regular expression of its own that does not match everything, and names no group.

    A rule's pattern does not match everything either; a rule that is not `pass` has a remedy.
    """
    rows = [line.split("\t") for line in text_of("data/kernel_lines.tsv").splitlines() if not line.startswith("#")]
    assert all(row[1] and row[2:] in ([], [ANY_LEVEL]) for row in rows)
    for pattern in shipped_patterns():
        regex = re.compile(pattern)
        assert not regex.search("")
        assert not regex.groups
    for rule in shipped_rules().rules:
        assert all(not re.search(pattern, "") for pattern in rule.patterns), rule.cause
        assert rule.remedy or rule.verdict is Verdict.PASS, rule.cause


def test_only_a_marked_row_hides_a_severe_message() -> None:
    """The same text is known at level warn, and must be looked at from level crit on; a site's own entry counts for both."""
    text = "systemd[1]: Freezing execution."
    assert [f.verdict for f in found(append(text))] == [Verdict.PASS]
    for level in ("crit", "alert", "emerg"):
        assert [f.verdict for f in found(append(text, level=level))] == [Verdict.INCONCLUSIVE]
    assert set(shipped_patterns(severe=True)) < set(shipped_patterns())


def test_each_pattern_has_a_labelled_line() -> None:
    """A line of `data/kernel_log/lines` for which this pattern decides, or would decide if it were the only one."""
    texts = [text for file in LINES.glob("*.txt") for case in cases(file) for text in case.messages]
    missing = [
        pattern
        for rule in shipped_rules().rules
        for pattern in rule.patterns
        if not any(re.search(pattern, text) and any(word in text for word in rule.words) for text in texts)
    ]
    assert missing == []


def test_a_rule_names_its_words() -> None:
    """Each labelled line that a pattern of a rule fits holds one of the rule's words: no line is lost to the search."""
    texts = {text for file in LINES.glob("*.txt") for case in cases(file) for text in case.messages}
    for rule in shipped_rules().rules:
        for text in texts:
            if any(re.search(pattern, text) for pattern in rule.patterns):
                assert any(word in text for word in rule.words), (rule.cause, text)


def test_the_pieces_of_a_pattern_fit_where_the_pattern_does() -> None:
    """The same labelled lines, with the same part; a piece that no message has reached is not compiled."""
    texts = {text for file in LINES.glob("*.txt") for case in cases(file) for text in case.messages}
    for rule in shipped_rules().rules:
        for pattern, pieces in zip(rule.patterns, rule.pieces, strict=True):
            if pieces == (pattern,):
                continue
            whole, one = re.compile(pattern), replace(rule, words=("",), patterns=(pattern,), pieces=(pieces,))
            for text in texts:
                fits = whole.search(text)
                assert one.part(text) == (fits and (fits.groupdict().get("part") or "")), (pattern, text)


@pytest.mark.parametrize("filler", ["a", " ", "0", "nvme0n1", "(", "sda ", "0000:00:00.0 ", "error, ", "A"])
def test_a_hostile_message_is_judged_in_time(filler: str) -> None:
    """A message of 16 KiB that repeats what patterns look for does not hold up the check."""
    rules = shipped_rules()
    words = sorted({word for rule in rules.rules for word in rule.words})
    text = " ".join(words) + " " + filler * (16 * 1024 // len(filler))
    began = time.process_time()
    found(append(text))
    rules.suspects(text[:2048])
    assert time.process_time() - began < 1


def gpu(code: int, text: str = "", bus: str = "1b") -> Xid:
    return Xid(f"0000:{bus}:00.0", code, text, "now")


ASKED = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
BACK = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
CLUSTER = "pid={}, name=python3, Graphics SM Warp Exception on (GPC {}, TPC 1, SM 0): Out Of Range Address"


@pytest.mark.parametrize(
    ("seen", "verdicts", "words"),
    [
        ([gpu(48)], {48: "fail"}, "double-bit"),
        ([gpu(48), gpu(63)], {48: "fail"}, "next reset"),
        ([gpu(48), gpu(64)], {48: "fail", 64: "fail"}, "could not be replaced"),
        ([gpu(63)], {63: "warn"}, ""),
        ([gpu(79), gpu(45)], {79: "fail", 45: "warn"}, ""),
        ([gpu(119), gpu(154, ASKED)], {119: "fail"}, "Xid 154: GPU Reset Required"),
        ([gpu(119), gpu(154, ASKED), gpu(154, BACK)], {119: "warn"}, "Xid 154: None"),
        ([gpu(119), gpu(154, ASKED, "43")], {119: "fail", 154: "fail"}, ""),
        ([gpu(119), gpu(154, "of another driver")], {119: "fail", 154: "inconclusive"}, ""),
        ([gpu(13, CLUSTER.format(1, 2)), gpu(13, CLUSTER.format(1, 2))], {13: "warn"}, ""),
        ([gpu(13, CLUSTER.format(1, 2)), gpu(13, CLUSTER.format(7, 3))], {13: "warn"}, ""),
        ([gpu(13, CLUSTER.format(1, 2)), gpu(13, CLUSTER.format(7, 2))], {13: "fail"}, "GPC 2, TPC 1"),
        ([gpu(31, "pid=1, x"), gpu(31, "pid=2, x")], {31: "fail"}, "not a program"),
        ([gpu(31, "pid=1, x"), gpu(31, "pid=2, x"), gpu(31, "pid=3, x", "43")], {31: "warn"}, ""),
    ],
)
def test_xids_are_judged_together(seen: list[Xid], verdicts: dict[int, str], words: str) -> None:
    """The driver's own text outranks the table, 45 is no cause, memory's two lines are one event."""
    errors = gpu_errors(seen)
    assert {error.first.code: error.verdict for error in errors} == {c: Verdict(v) for c, v in verdicts.items()}
    assert any(words in error.meaning for error in errors)
    assert all(error.remedy for error in errors)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("eth0: 1a:2b:3c:4d:5e:6f is up", "eth<n>: <mac> is up"),
        ("GPU-509665ad-b600-ac93-3616-d754b23d636d", "GPU-<uuid>"),
        ("at 0xffff9a3c (deadbeef01) of 10.1.2.3", "at <hex> (<hex>) of <ip>"),
        ("sda1 and sdab: facade added", "sd<disk><n> and sd<disk>: facade added"),
        ("[10de:2330] 3.5 s\nmore", "[<id>] <n> s"),
    ],
)
def test_templates(text: str, wanted: str) -> None:
    """Words stay words; a template is its own template."""
    assert template(text) == wanted
    assert template(wanted) == wanted


def corrected(device: str, minutes: int, each: int) -> Edit:
    """Log corrected PCIe errors of a device, so many a minute."""
    lines = [
        f"kern  :warn  : [Fri Jan  2 03:{minute:02d}:{second:02d} 2026] {text}\n"
        for minute in range(minutes)
        for second in range(each)
        for text in (
            f"pcieport 0000:15:01.0: AER: Corrected error received: {device}",
            f"mlx5_core {device}: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        )
    ]
    return lambda healthy: healthy + "".join(lines)


def test_frequent_corrected_pcie_errors_fail() -> None:
    """More than 10 a minute in 3 minutes: the link repeats so often that it is slow. Fewer are normal."""
    (bad,) = found(corrected("0000:18:00.0", minutes=3, each=11))
    assert (bad.verdict, bad.subject) == (Verdict.FAIL, "pci 0000:18:00.0")
    assert "33 errors" in bad.cause
    assert [f.verdict for f in found(corrected("0000:18:00.0", minutes=3, each=10))] == [Verdict.PASS]
    assert [f.verdict for f in found(corrected("0000:18:00.0", minutes=2, each=59))] == [Verdict.PASS]


def test_frequent_corrected_errors_by_the_ports_word_alone() -> None:
    """Where the kernel suppresses the device's own line; seconds since boot for a time."""
    lines = [
        f"[{60 * minute + second}.5] pcieport 0000:15:01.0: AER: Correctable error message received from 0000:18:00.0\n"
        for minute in range(5)
        for second in range(20)
    ]
    (bad,) = found(lambda healthy: healthy + "".join(lines))
    assert (bad.verdict, bad.subject) == (Verdict.FAIL, "pci 0000:18:00.0")


def test_slot_power_of_one_adapter_fails_and_of_all_warns() -> None:
    """The healthy node has two adapters of one kind."""
    low = "mlx5_core 0000:{}:00.0: mlx5_pcie_event:299:(pid 1): Detected insufficient power on the PCIe slot (27W)."
    (odd,) = found(append(low.format("18")))
    assert (odd.verdict, odd.subject) == (Verdict.FAIL, "hca 0000:18:00.0")
    both = found(append(low.format("18"), low.format("40")))
    assert [(f.verdict, f.subject) for f in both] == [
        (Verdict.WARN, "hca 0000:18:00.0"),
        (Verdict.WARN, "hca 0000:40:00.0"),
    ]


LOW = "mlx5_core 0000:{}:00.0: mlx5_pcie_event:299:(pid 1): Detected insufficient power on the PCIe slot (27W)."


def test_each_adapter_of_the_log_is_a_figure_for_the_fleet() -> None:
    """1 where it reports too little power, else 0."""
    log = readings(dmesg=append(LOW.format("40")))
    figures = CHECKS["kernel_log"].samples("n1", "lab", log)
    assert {one.subject: one.value for one in figures} == {"hca 0000:18:00.0": 0, "hca 0000:40:00.0": 1}


def test_a_slot_that_other_nodes_have_alike_is_a_warning() -> None:
    """The odd adapter of a node fails only where the same slot of the fleet is silent, or the fleet is unknown."""
    odd = found(append(LOW.format("18")))
    assert odd_in_node(odd)
    assert settled(odd, ()) == list(odd)
    (shared,) = settled(odd, {"hca 0000:18:00.0"})
    assert (shared.code, shared.verdict) == (Code.SLOT_POWER_LOW, Verdict.WARN)
    assert accepted_slots([shared]) == {"hca 0000:18:00.0"}
    assert accepted_slots(odd) == frozenset()


def test_a_slot_that_reports_again_under_a_load_is_no_odd_one() -> None:
    """Where all adapters of the node reported before: the second message of one of them is not new."""
    before = readings(dmesg=append(LOW.format("18"), LOW.format("40")))
    after = readings(dmesg=append(LOW.format("18"), LOW.format("40"), LOW.format("18")))
    watch = CHECKS["kernel_log"].watch
    assert watch is not None
    seen = list(watch.judge(before, after, expected(known_lines=KnownLines())))
    assert {one.verdict for one in seen if one.code is Code.SLOT_POWER_LOW} == {Verdict.WARN}


def test_severe_unknown_messages_are_inconclusive_and_quoted_first() -> None:
    """By severity, not by count; the warnings have a finding of their own."""
    many = "".join(f"kern  :warn  : {STAMP}noise {name}\n" for name in ["a"] * 50 + ["x", "y"])
    severe = f"kern  :crit  : {STAMP}frob: reactor hot\nkern  :emerg : {STAMP}frob: reactor open\n"
    log = lambda healthy: healthy + many + severe  # noqa: E731
    unclear, warned = found(log)
    assert (unclear.verdict, warned.verdict) == (Verdict.INCONCLUSIVE, Verdict.WARN)
    assert unclear.cause.index("emerg frob: reactor open") < unclear.cause.index("crit frob: reactor hot")
    assert "noise a (50 times)" in warned.cause


def test_an_error_of_a_driver_that_no_table_names_is_inconclusive_with_its_device() -> None:
    """Unless training does not use what the driver serves; a feature that is not supported is a warning."""
    (unclear,) = found(append("frobnic 0000:5e:00.0: reactor 3 is out of order", level="err"))
    assert (unclear.verdict, "at 0000:5e:00.0" in unclear.cause) == (Verdict.INCONCLUSIVE, True)
    for other in ("xhci_hcd 0000:5e:00.0: reactor 3 is out of order", "frobnic 0000:5e:00.0: reactors not supported"):
        assert [f.verdict for f in found(append(other, level="err"))][:1] in ([Verdict.WARN], [Verdict.PASS]), other


def test_an_accelerator_of_another_vendor_that_fails_is_named() -> None:
    """By its address, in each form of the driver's messages; what serves a screen keeps no node back."""
    (bad,) = found(append("amdgpu 0000:c5:00.0: amdgpu: GPU reset(2) failed", level="err"))
    assert (bad.verdict, bad.subject) == (Verdict.FAIL, "gpu 0000:c5:00.0")
    (bad,) = found(append("[drm:psp_hw_start [amdgpu]] *ERROR* PSP create ring failed!", level="err"))
    assert bad.verdict is Verdict.FAIL
    (screen,) = found(append("[drm:dc_dmub_srv_wait [amdgpu]] *ERROR* Error waiting for DMUB idle", level="err"))
    assert screen.verdict is Verdict.WARN


def test_a_record_of_the_firmware_is_one_finding() -> None:
    """Its section, its severity and its part; two records of one part are one finding."""
    record = (
        "{{{0}}}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4",
        "{{{0}}}[Hardware Error]: event severity: recoverable",
        "{{{0}}}[Hardware Error]:  Error 0, type: recoverable",
        "{{{0}}}[Hardware Error]:  fru_text: B1",
        "{{{0}}}[Hardware Error]:   section_type: memory error",
    )
    (bad,) = found(append(*(line.format(number) for number in (1, 2) for line in record), level="emerg"))
    assert (bad.verdict, bad.subject) == (Verdict.FAIL, "memory B1")
    assert "memory error, severity recoverable" in bad.cause
    assert "2 times" in bad.cause


def test_a_mig_instance_is_named() -> None:
    """The GPU is found by its address; the cause names the instance."""
    (bad,) = found(append("NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 95, pid=7194, Uncontained: LTC TAG (0x2,0x0)."))
    assert (bad.verdict, bad.subject, "in GPU-I:05" in bad.cause) == (Verdict.FAIL, "gpu 0", True)


def test_an_address_that_cannot_be_read_stops_no_other_judgement() -> None:
    """The Xid counts without its GPU."""
    bad = found(append("NVRM: Xid (PCI:1:1): 79, GPU has fallen off the bus.", "NVRM: Xid (PCI:0000:1b:00): 48, DBE"))
    assert {(f.verdict, f.measured) for f in bad} == {(Verdict.FAIL, "Xid 79"), (Verdict.FAIL, "Xid 48")}
