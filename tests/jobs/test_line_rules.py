"""The table of lines: complete, safe for hostile logs, and wrong tables are refused."""

from __future__ import annotations

import pytest

from clusterctl.fleet.blame import Layer, Role
from clusterctl.fleet.errors import UsageError
from clusterctl.jobs.kernel_lines import kernel_meaning
from clusterctl.jobs.line_rules import LineRule, parse_lines, shipped_lines
from clusterctl_burnin.kernel_log.nvidia_codes import xid_table
from tests.jobs.labels import labelled
from tests.peers import regexes

LINEAR_S = 0.05
RULES = shipped_lines().rules
ONE = """
version: 1
rules:
  - {name: a, words: [x], patterns: [x], failure: crash, layer: data, certainty: likely, role: cause,
     persistence: unknown, meaning: m, remedy: r, source: s}
"""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_hostile_line_takes_linear_time(rule: LineRule) -> None:
    """Any user writes the lines of jobs: each expression takes them in linear time."""
    for pattern in rule.patterns:
        slow = (text for text in regexes.attacks(pattern) if regexes.seconds(pattern, "search", text) > LINEAR_S)
        twice = next((text for text in slow if regexes.seconds(pattern, "search", text) > LINEAR_S), None)
        assert twice is None, f"{pattern.pattern} takes long for {twice[:80]!r}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_worded_for_operators(rule: LineRule) -> None:
    """Meaning and remedy are one clause each; the source is named."""
    assert not rule.meaning.endswith(".")
    assert not rule.remedy.endswith(".")
    assert rule.meaning[0].islower() or rule.meaning.startswith(("Slurm", "NCCL", "CUDA", "PCIe"))


def test_a_consequence_blames_no_layer_for_sure() -> None:
    """The first error wins: a rank that reports the end of a peer is never the proven cause."""
    for rule in RULES:
        if rule.role is Role.CONSEQUENCE:
            assert rule.certainty.value == "unknown", rule.name


def test_most_rules_have_a_real_line() -> None:
    """Rules without a line of a public thread are few, and known by name."""
    without = {rule.name for rule in RULES}
    for case in labelled():
        found = shipped_lines().meaning(case.line)
        without -= {found.rule} if found else set()
    assert without == {
        "slurm_preempted",
        "ib_flush",
        "ib_remote_access",
        "ib_peer_stalled",
        "watchdog_stuck",
        "nccl_system",
        "cuda_illegal_access",
        "forward_order",
        "rerun_persistent",
        "no_program",
        "segfault",
        "python_exception",
    }


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "cuda_out_of_memory"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "cuda_illegal_access"),
        ("OSError: [Errno 28] No space left on device: '/checkpoints/iter_100'", "disk_full"),
        ("7: KeyError: 'tokens'", "python_exception"),
        ("[1,7]<stdout>:ValueError: bad shape", "python_exception"),
        ("NET/IB : Got completion from peer 10.0.0.1<1> with status=5 opcode=0 len=0 vendor err 244", "ib_flush"),
        ("Got completion from peer 10.0.0.1<1> with status=13 opcode=0 len=0 vendor err 135", "ib_peer_stalled"),
        ("/var/spool/slurmd/job123/slurm_script: line 12: torchrun: command not found", "no_program"),
        ("bash: line 1: python: command not found", "no_program"),
        ("/usr/bin/python3: No module named torch", "no_program"),
        ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "peer_ended"),
        ("RuntimeError: Forward order differs across ranks: rank 0 is all-gathering 3 parameters", "forward_order"),
    ],
)
def test_lines_of_the_formats(line: str, rule: str) -> None:
    """Lines after the format strings of their sources, for rules without a thread."""
    found = shipped_lines().meaning(line)
    assert found is not None
    assert found.rule == rule


def test_parts_of_a_line_are_named() -> None:
    """The status, the peer and the rank that a line names are data, not text."""
    found = shipped_lines().meaning(
        "[rank2]:[E901 05:20:03.1 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank 7]  failure detected by "
        "watchdog at work sequence id: 9 PG status: last enqueued work: 11, last started work: -1, last completed work: 8"
    )
    assert found is not None
    assert found.parts == {"group": "0", "rank": "7", "enqueued": "11", "completed": "8"}


def test_every_xid_of_the_table_blames_a_layer() -> None:
    """No code of the burn-in's table lacks its blame; an unknown code blames nothing."""
    for code in xid_table():
        found = kernel_meaning(f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=1, name=python3, text")
        assert found is not None
        assert code == 45 or found.blame.layer is not Layer.UNKNOWN, code
    unknown = kernel_meaning("NVRM: Xid (PCI:0000:3b:00): 999, text")
    assert unknown is not None
    assert unknown.blame.layer is Layer.UNKNOWN


def test_the_driver_outranks_the_table() -> None:
    """Xid 154 asks for a reset: hardware; it asks for nothing: context."""
    text = "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x{}"
    asks = kernel_meaning(text.format("1 (GPU Reset Required)"))
    assert asks is not None
    assert (asks.blame.layer, asks.blame.role) == (Layer.HARDWARE, Role.CAUSE)
    nothing = kernel_meaning(text.format("0 (None)"))
    assert nothing is not None
    assert nothing.blame.role is Role.CONTEXT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name: a", "name: ''"), "name"),
        (("patterns: [x]", "patterns: ['(']"), "no regular expression"),
        (("layer: data", "layer: moon"), "layer"),
        (("words: [x], ", ""), "words"),
    ],
)
def test_a_wrong_table_names_the_field(change: tuple[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=r"lines\.yml") as caught:
        parse_lines(ONE.replace(*change), where="lines.yml")
    assert message in str(caught.value)


def test_two_rules_of_one_name_are_refused() -> None:
    twice = ONE + ONE.partition("rules:")[2]
    with pytest.raises(UsageError, match="stands twice"):
        parse_lines(twice, where="lines.yml")
