"""ethernet_pairs: two real iperf3 over the loopback interface, and what the load makes of what they print."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.fleet.finding import Origin
from clusterctl.formats.host.ethernet_pair import parse_ethernet_pair, received_gbps
from clusterctl_burnin.limits.methods import EthernetPairMethod
from clusterctl_burnin.loads.group_load import Lasts
from clusterctl_burnin.loads.model import Participant, Trial, TrialOutcome
from clusterctl_burnin.loads.multi_node.ethernet_pairs import LOAD
from clusterctl_burnin.node.programs import ethernet_pair
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from tests.lab_data import lab_limits

RECORDED = Path(__file__).parent / "data" / "iperf3"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SERVER, CLIENT = (
    Participant(name, f"10.0.0.{n}", (), interface="bond0") for n, name in enumerate(("node1", "node2"), 1)
)
LIMITS = lab_limits()


def run(output: str = "", code: int = 0, error: str = "") -> dict[str, object]:
    return {"code": code, "output": output, "error": error}


def sent(gbps: float) -> dict[str, object]:
    """What a client printed, with another rate."""
    report = json.loads((RECORDED / "client.json").read_text())
    report["end"]["sum_received"]["bits_per_second"] = gbps * 1e9
    return run(json.dumps(report))


def document(*ways: list[dict[str, object]], speed: int | None = 100_000, failed: tuple[object, ...] = ()) -> str:
    return json.dumps({"version": 1, "speed": speed, "ways": ways, "failed": failed})


def answer(name: str, text: str, status: Status = Status.OK) -> Readings:
    result = ProbeResult(LOAD.name, ("ethernet-pair",), status, 0 if status is Status.OK else None, text, "", NOW, 30.0)
    return Readings(name, "b", Origin.REAL, NOW, NOW, {LOAD.name: result})


def trial(client: str, server: str | Readings = "", least: float = 90.0) -> Trial:
    """What the load makes of both ends' answers."""
    limits = replace(LIMITS, limits={**LIMITS.limits, "ethernet_pair_min": _least(least)})
    job = LOAD.job((SERVER, CLIENT), limits, Lasts(), "ops")
    answers = {
        "node1": answer("node1", server or document()) if isinstance(server, str) else server,
        "node2": answer("node2", client),
    }
    (found,) = LOAD.read(job, answers, limits).trials
    return found


def _least(value: float) -> object:
    return replace(LIMITS["ethernet_pair_min"], value=value)


def test_100_gbit_hosts_must_show_90() -> None:
    """The sum of the processes counts, and the slower way; the story has both rates and the link's."""
    good = trial(document([sent(47.0)] * 2, [sent(46.0)] * 2))
    assert (good.outcome, good.value) == (TrialOutcome.PASSED, pytest.approx(92.0))
    slow = trial(document([sent(47.0)] * 2, [sent(44.0)] * 2))
    assert (slow.outcome, slow.value) == (TrialOutcome.SLOW, pytest.approx(88.0))
    assert slow.detail == "94.00 Gb/s to node1 and 88.00 Gb/s back, on a link of 100 Gb/s"


def test_the_slower_link_of_two_counts() -> None:
    """A host with 25 GbE holds no other back: 24 Gb/s are enough with it."""
    assert trial(document([sent(24.0)], [sent(23.5)]), document(speed=25_000)).outcome is TrialOutcome.PASSED


@pytest.mark.parametrize(
    ("client", "server", "outcome", "words"),
    [
        (document([run(code=127)], []), document(), TrialOutcome.UNMEASURED, "iperf3 is not installed"),
        (document([sent(9)], [sent(9)]), document(speed=None), TrialOutcome.UNMEASURED, "no link speed of node1"),
        (document([sent(9)]), document(), TrialOutcome.UNMEASURED, "measured 1 of 2 ways"),
        (document([run("{}")], [sent(9)]), document(), TrialOutcome.UNMEASURED, "sum_received|end"),
        (document([run("no")], [sent(9)]), document(), TrialOutcome.UNMEASURED, "no JSON"),
        (document([run(code=124)], [sent(9)]), document(), TrialOutcome.HUNG, "no further"),
        (
            document([run('{"error": "unable to connect to server: Connection refused"}')], []),
            document(),
            TrialOutcome.UNMEASURED,
            "unable to connect",
        ),
        (
            document([run('{"error": "control socket has closed unexpectedly"}', 1)], []),
            document(),
            TrialOutcome.FAILED,
            "control socket",
        ),
    ],
)
def test_what_proves_nothing_and_what_fails(client: str, server: str, outcome: TrialOutcome, words: str) -> None:
    """A missing tool, an unknown speed, a firewall and half a measurement accuse no node; a broken connection does."""
    found = trial(client, server)
    assert found.outcome is outcome
    assert any(word in found.detail for word in words.split("|"))
    assert found.value is None


def test_an_end_that_did_not_answer() -> None:
    """Its node is asked by the rounds whether it lives; the pair itself proves nothing."""
    found = trial(document([sent(95)], [sent(95)]), answer("node1", "", Status.TIMEOUT))
    assert found.outcome is TrialOutcome.UNMEASURED


def test_a_recorded_report() -> None:
    """Recorded from iperf 3.12 on the loopback interface of a virtual machine."""
    assert received_gbps((RECORDED / "client.json").read_text()) > 0


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs the package iperf3")
def test_two_real_iperf3(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both programs of a pair over the loopback interface: two processes, one way and back, real bytes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr(ethernet_pair, "FIRST_PORT", port)
    method = EthernetPairMethod(processes=1, streams=2, seconds=1, timeout_seconds=60)
    numbers = [str(n) for n in (method.processes, method.streams, method.seconds, method.timeout_seconds)]
    failed: list[object] = []

    def serve() -> None:
        failed.extend(ethernet_pair.serve([port], ethernet_pair.time.monotonic() + method.timeout_seconds))

    server = threading.Thread(target=serve)
    server.start()
    assert ethernet_pair.main(["lo", *numbers, "127.0.0.1"]) == 0
    server.join()
    found = parse_ethernet_pair(capsys.readouterr().out)
    assert failed == []
    assert [len(way) for way in found.ways] == [1, 1]
    assert all(received_gbps(one.output) > 0 for way in found.ways for one in way)
    assert found.speed is None  # the loopback interface has none
