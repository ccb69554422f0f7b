"""docs/how-to/first-day.md: its commands, run as they stand there, and all that BMCs of four vendors received."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from click.testing import Result

from clusterctl_lab.vendor import Vendor
from tests.cli.first_day.kit import ASLEEP, NETWORK, Asked, Rack, rack
from tests.paths import ROOT

DOCS = ROOT / "docs"
PAGE = DOCS / "how-to/first-day.md"
FABRIC = ROOT / "tests" / "formats" / "infiniband" / "data" / "two_hosts.ibnetdiscover"
MARK = "`?$expand`.\n\n"
"""After this the page's table begins, and nothing follows it."""
SESSIONS = re.compile(r"/redfish/v1/SessionService/Sessions")
COLLECTIONS = frozenset(
    (
        *(
            "Systems",
            "Chassis",
            "Managers",
            "Processors",
            "Memory",
            "Storage",
            "Drives",
            "NetworkAdapters",
            "LogServices",
        ),
        *("NetworkDeviceFunctions", "PCIeDevices", "PCIeFunctions", "EthernetInterfaces", "PowerSupplies"),
        *("FirmwareInventory", "Sessions", "Entries"),
    )
)
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installed wheel has no docs")


@dataclass(frozen=True)
class Step:
    """One command of the page, its exit code, and the requests that the BMCs received meanwhile."""

    command: str
    done: Result
    requests: tuple[Asked, ...]

    @property
    def name(self) -> str:
        """As the table's columns call it: the command and the options that make it another."""
        words = shlex.split(self.command)
        options = [word for word in words if word in ("--sweep", "--no-login", "--read-only")]
        return " ".join([*words[: 2 if words[0] in ("power", "cable") else 1], *options])


@dataclass(frozen=True)
class Day:
    """The page's commands in its order."""

    rack: Rack
    steps: tuple[Step, ...]
    power: dict[str, bool]
    sel: dict[str, int]

    def requests(self) -> Iterator[Asked]:
        for step in self.steps:
            yield from step.requests


def commands() -> list[str]:
    """The page's, without their `clusterctl`."""
    return re.findall(r"^ +clusterctl (.+)$", PAGE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    folder = tmp_path_factory.mktemp("first-day")
    with rack(folder) as there:
        steps = []
        for command in commands():
            there.requests.clear()
            place = folder / "new" if command.startswith("init ") else there.site
            text = command.replace("rack1", str(place)).replace("10.20.4.0/22", NETWORK)
            done = there.run(*shlex.split(text.replace("fabric.txt", str(FABRIC))))
            steps.append(Step(command, done, tuple(there.requests)))
        states = there.world.states
        power = {name: state.power for name, state in states.items()}
        yield Day(there, tuple(steps), power, {name: len(state.sel) for name, state in states.items()})


def test_nothing_but_reads_and_sessions(day: Day) -> None:
    """Of each vendor; and every session that was opened was closed."""
    sent = {(asked.method, bool(SESSIONS.match(asked.path))) for asked in day.requests()}
    assert {method for method, session in sent if not session} <= {"GET", "HEAD"}
    assert {method for method, session in sent if session} <= {"POST", "DELETE"}
    assert {asked.node for asked in day.requests() if asked.method == "POST"} == day.rack.world.machines.keys()
    assert len({machine.bmc.vendor for machine in day.rack.world.machines.values()}) == len(Vendor)
    opened = [(asked.node) for asked in day.requests() if asked.method == "POST"]
    closed = [(asked.node) for asked in day.requests() if asked.method == "DELETE"]
    assert sorted(opened) == sorted(closed)


def test_the_machines_are_as_they_were(day: Day) -> None:
    """All are off, and nothing new is in their event logs: no machine has booted."""
    assert not any(day.power.values())
    assert not any(day.sel.values())


def test_a_machine_that_was_never_seen_running_stays_so(day: Day) -> None:
    """It is held as inconclusive, which names the option; the others are discovered."""
    nodes, _one_node = (step.done.stdout for step in day.steps if step.name == "nodes")
    assert nodes.count(" discovered ") == len(Vendor)
    line = next(line for line in nodes.splitlines() if line.startswith(ASLEEP))
    assert "seen (held)" in line
    assert "nothing was powered on (--read-only)" in line


def test_the_commands_do_their_work(day: Day) -> None:
    """None fails for another reason than what it found: `init` and the checks of files end well, the sweep finds all."""
    ends = {step.command: step.done.return_value for step in day.steps}
    assert not [command for command, code in ends.items() if code == 3 and not command.startswith("doctor")]
    assert all(ends[command] in (None, 0) for command in ends if command.startswith(("init", "plan", "report", "why")))
    (written,) = (step.done.stdout for step in day.steps if "--write" in step.command)
    assert written.count("identified") == len(day.rack.world.machines) + 1


def test_the_recorder_hears_a_change(day: Day) -> None:
    """Were one of them to switch a machine on, these tests would see it."""
    day.rack.requests.clear()
    day.rack.run("power", "on", "node001", "--reason", "a change to record", "--yes", "--site", str(day.rack.site))
    changes = {(asked.method, asked.node) for asked in day.rack.requests if not SESSIONS.match(asked.path)}
    assert ("POST", "node001") in changes


def test_the_requests_of_the_page_are_the_requests_that_are_sent(day: Day) -> None:
    """Each method and path, by command, no more and no less; written where CLUSTERCTL_WRITE_PAGES is set."""
    head, _, reported = PAGE.read_text().partition(MARK)
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        PAGE.write_text(head + MARK + table(day))
        return
    assert reported == table(day), "make first-day-page writes it"


def table(day: Day) -> str:
    """Method and path × the commands that ask anything of a BMC."""
    asking = {step.name: {kind(asked) for asked in step.requests} for step in day.steps if step.requests}
    silent = sorted({step.name for step in day.steps if not step.requests} - asking.keys())
    columns = list(asking)
    rows = "".join(
        f"| `{line}` | {' | '.join('✓' if line in asking[name] else '' for name in columns)} |\n"
        for line in sorted(set().union(*asking.values()), key=lambda line: (line.startswith("GET"), line))
    )
    names = " | ".join(f"`{name}`" for name in columns)
    silent_commands = ", ".join(f"`{name}`" for name in silent)
    return f"| | {names} |\n|---{'|---' * len(columns)}|\n{rows}\nNo BMC receives a request from {silent_commands}.\n"


def kind(asked: Asked) -> str:
    """The request without names: `GET /redfish/v1/Systems/*/Processors/*`."""
    parts = asked.path.partition("?")[0].strip("/").split("/")
    named = [part if before not in COLLECTIONS else "*" for before, part in zip(["", *parts], parts, strict=False)]
    return f"{asked.method} /{'/'.join(named)}"
