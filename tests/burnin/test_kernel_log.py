"""Every message of a kernel log is judged, known, or told as new; and Xids are judged together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError, UsageError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.quantity import Quantity
from clusterctl.formats.host.kernel_log import Xid, parse_dmesg, read_kernel_log, template, xids
from clusterctl_burnin.kernel_log.known_lines import KnownLines, parse_known_lines, shipped_patterns
from clusterctl_burnin.kernel_log.patterns import PATTERNS
from clusterctl_burnin.kernel_log.xids import gpu_errors
from clusterctl_burnin.probe import ProbeResult
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import Edit, expected, readings, result
from tests.formats.samples import sample

CASES = Path(__file__).parent / "data" / "kernel_log"
STAMP = "[Fri Jan  2 03:04:05 2026] "


def found(log: ProbeResult | Edit, known: KnownLines | None = None) -> tuple[Finding, ...]:
    return CHECKS["kernel_log"].findings(readings(dmesg=log), expected(known_lines=known or KnownLines()))


def append(*lines: str, level: str = "warn") -> Edit:
    return lambda healthy: healthy + "".join(f"kern  :{level:6}: {STAMP}{line}\n" for line in lines)


def test_a_harmless_log_has_no_finding() -> None:
    """What every fleet's kernels say at level warn or above, and notices that nobody has seen before."""
    harmless = (CASES / "harmless.txt").read_text()
    assert [f.verdict for f in found(lambda healthy: healthy + harmless)] == [Verdict.PASS]


def test_a_message_nobody_knows_is_told_once() -> None:
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
        ("{message: a, why: x}\n- {message: a, why: y}", "kernel_log.yml:4 known.1", "stands twice"),
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
    """A line without a stamp belongs to the one before, also where only the whole says what happened."""
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
    assert (bad.verdict, "memory or processor" in bad.cause) == (Verdict.FAIL, True)


def test_the_shipped_tables_are_sound() -> None:
    """Each known line is a regular expression of its own that does not match everything, and names no group."""
    for pattern in shipped_patterns():
        regex = re.compile(pattern)
        assert not regex.search("")
        assert not regex.groups
    assert all(not pattern.regex.search("") for pattern in PATTERNS)


def test_each_pattern_is_found() -> None:
    """One line per pattern, as the kernel prints it; the verdict is the pattern's."""
    lines = (CASES / "patterns.txt").read_text().splitlines()
    hit = {pattern for line in lines for pattern in PATTERNS if pattern.regex.search(line)}
    assert hit == set(PATTERNS)
    for line in lines:
        wanted = [pattern.verdict for pattern in PATTERNS if pattern.regex.search(line)]
        assert [f.verdict for f in found(append(line))] == wanted, line


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
    """The driver's own word outranks the table, 45 is nobody's cause, memory's two lines are one event."""
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
