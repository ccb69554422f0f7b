"""The built-in probe `port-counters`: what it asks, and what it makes of the answers."""

from __future__ import annotations

import pytest

from clusterctl.formats.infiniband.port_counters import parse_port_counters
from clusterctl_burnin.node.bundle import BUILT_IN
from clusterctl_burnin.node.programs import port_counters
from clusterctl_burnin.probe import Probe, programs, script

PLAIN = "# Port counters: Lid 1 port 1 (CapMask: 0x1600)\n"
EXTENDED = "# Port extended counters: Lid 1 port 1 (CapMask: 0x5A00 CapMask2: 0x0000002)\n"
ERRORS = (
    "SymbolErrorCounter:..............1\nLinkErrorRecoveryCounter:........2\n"
    "LinkDownedCounter:...............3\nPortRcvErrors:...................4\n"
)


class Host:
    """A host with adapters that give these answers: extended, plain only, or not at all."""

    def __init__(self, **adapters: str) -> None:
        self.adapters = adapters

    def ask(self, *argv: str) -> tuple[int, str]:
        if argv == ("ibstat", "-l"):
            return 0, "".join(f"{name}\n" for name in self.adapters)
        kind = self.adapters[argv[argv.index("-C") + 1]]
        if kind == "silent":
            return 1, "perfquery: can't open UMAD port\n"
        if "-x" not in argv:
            return 0, PLAIN + ERRORS
        return 0, EXTENDED + (ERRORS if kind == "extended" else "PortXmitData:....................0\n")


def test_each_adapter_is_read_twice_as_exactly_as_it_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    """Extended counters where there are some of errors, plain ones else; an adapter that cannot be read has the reason."""
    assert port_counters.main(0.05, Host(mlx5_0="extended", mlx5_1="plain", mlx5_2="silent").ask) == 0
    ports = parse_port_counters(capsys.readouterr().out).ports
    assert ports["mlx5_2"].error_output == "perfquery: can't open UMAD port"
    for name, extended in (("mlx5_0", True), ("mlx5_1", False)):
        first, last = ports[name].first, ports[name].last
        assert first is not None
        assert last is not None
        assert (first.extended, first.counters["PortRcvErrors"]) == (extended, 4)
        assert round(last.at - first.at, 3) >= 0.049  # both times are rounded to a millisecond


def test_without_ibstat_it_fails_in_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    """No adapter is called healthy because none could be listed."""
    assert port_counters.main(0.0, lambda *_: (127, "ibstat: No such file or directory\n")) == 127
    assert capsys.readouterr() == ("", "ibstat: No such file or directory\n")


def test_a_tool_that_is_missing_or_hangs_is_reported() -> None:
    """Exit codes as a shell gives them."""
    assert port_counters.run("/nonexistent/tool") == (127, "/nonexistent/tool: No such file or directory\n")
    assert port_counters.run("sh", "-c", "echo out; echo err >&2; exit 3") == (3, "out\nerr\n")


def test_programs_travel_with_the_script() -> None:
    """The node needs nothing but Python: what a probe names is sent, together with what is built in."""
    assert not programs().keys() & BUILT_IN.keys()
    words = b"the error counters of all its InfiniBand ports"
    assert words in script([Probe("ports", ("port-counters", "5"))])
    assert words not in script([Probe("uptime", ("uptime",))])
