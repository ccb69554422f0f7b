"""A lab of pods, and what its emulators logged: who asked which machine for what, and how much went on at once."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from clusterctl_lab.layout import Layout, Pod
from lab.tests.lab_kit import eventually, running_lab
from tests.e2e.site_kit import Controller, Site
from tests.edges.journal.postgres import USER, running_server

PATIENCE_S = 1200.0
_LINE = r"^(?P<at>\S+ \S+) INFO \S+: "
_REQUEST = r"(?P<what>\S+ \S+) by (?P<by>\S+): (?P<status>\d+)$"
_BMC = re.compile(rf"{_LINE}BMC (?P<bmc>\S+): {_REQUEST}", re.MULTILINE)
_MAAS = re.compile(rf"{_LINE}MAAS (?P<node>\S+): {_REQUEST}", re.MULTILINE)
_RUNS = re.compile(rf"{_LINE}(?P<node>\S+) runs its OS$", re.MULTILINE)
_DEADLINES = "deadlines: {discover: 900, install: 1800, configure: 3600, cable: 900, burnin: 3600}"
"""For a machine that others use, too: a node's time includes its wait for a permit."""
_RESET = "ComputerSystem.Reset"


@dataclass(frozen=True)
class Write:
    """A request that changes something on a machine, as its BMC or MAAS logged it. `by`: the sender's address."""

    at: datetime
    node: str
    what: str
    by: str


@dataclass(frozen=True)
class Machine:
    """A machine of the lab; `pod` is its number."""

    name: str
    pod: int
    bmc: str
    address: str


@dataclass(frozen=True)
class PodLab:
    """A running lab of pods; its site's journal is on a PostgreSQL that controllers reach by the site's network."""

    site: Site
    pods: tuple[Pod, ...]
    machines: tuple[Machine, ...]
    stack: ExitStack = field(default_factory=ExitStack)

    def nodes(self, pod: Pod) -> list[str]:
        return [machine.name for machine in self.machines if machine.pod == pod.number]

    def within(self, pod: Pod) -> tuple[str, ...]:
        """What starts a program on the pod's controller."""
        return ("ip", "netns", "exec", f"{self.site.lab.name}-pod{pod.number}")

    def worker(self, pod: Pod, name: str) -> Controller:
        """Start a worker as `lab up` prints it, and wait until it works."""
        reach = [word for network in pod.networks for word in ("--reach", str(network))]
        argv = ("worker", "--pool", f"pod{pod.number}", "--name", name, *reach)
        started = self.stack.enter_context(self.site.start(*argv, within=self.within(pod)))
        assert eventually(lambda: started.ended or name in self.live(), PATIENCE_S)
        assert not started.ended, started.stderr
        return started

    def live(self) -> dict[str, dict[str, Any]]:
        """The workers that work, by name."""
        return {one["name"]: one for one in self.site.ask("workers")["workers"] if one["alive"]}

    def reached(self, within: Sequence[str]) -> set[str]:
        """The machines with whose BMC a TCP connection comes about from there."""
        code = "import socket, sys; socket.create_connection((sys.argv[1], 443), 2)"
        found = set()
        for machine in self.machines:
            argv = (*within, "python3", "-c", code, machine.bmc)
            if subprocess.run(argv, capture_output=True, check=False, timeout=60).returncode == 0:
                found.add(machine.name)
        return found

    def foreign(self) -> list[Write]:
        """What a machine's BMC or MAAS was asked to change on it by another one than its pod's controller.

        MAAS's own requests come from the BMC's own address.
        """
        own = {
            machine.name: {*pod.controllers, pod.site, machine.bmc}
            for pod in self.pods
            for machine in self.machines
            if machine.pod == pod.number
        }
        return [write for write in self.writes() if write.by not in own[write.node]]

    def writes(self) -> list[Write]:
        """All that BMCs and MAAS were asked to change on a machine, in order."""
        text, named = self._log(), {machine.bmc: machine.name for machine in self.machines}
        found = [Write(_at(match), named[match["bmc"]], match["what"], match["by"]) for match in _BMC.finditer(text)]
        found += [Write(_at(match), match["node"], match["what"], match["by"]) for match in _MAAS.finditer(text)]
        return sorted(found, key=lambda write: write.at)

    def logins(self, pod: Pod, name: str) -> set[str]:
        """The addresses from which a host's sshd has accepted logins since its boot, by the host's journal."""
        (address,) = (machine.address for machine in self.machines if machine.name == name)
        argv = (
            *(*self.within(pod), "ssh", "-F", "none", "-i", str(self.site.folder / "secrets/ssh_ed25519")),
            *("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
            *(f"ops@{address}", "sudo journalctl -u ssh -o cat"),
        )
        text = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=True).stdout
        return set(re.findall(r"^Accepted \S+ for \S+ from (\S+) ", text, re.MULTILINE))

    def most_installs(self) -> int:
        """How many machines were at once between MAAS's order to deploy them and the first start of their OS."""
        runs: dict[str, list[datetime]] = defaultdict(list)
        for match in _RUNS.finditer(self._log()):
            runs[match["node"]].append(_at(match))
        orders = [write for write in self.writes() if "op=deploy" in write.what]
        return most((write.at, min(at for at in runs[write.node] if at > write.at)) for write in orders)

    def most_cycles(self, since: datetime) -> int:
        """How many machines were at once between the first and the last reset that a controller has sent since."""
        controllers = {address for pod in self.pods for address in pod.controllers}
        resets: dict[str, list[datetime]] = defaultdict(list)
        for write in self.writes():
            if _RESET in write.what and write.at > since and write.by in controllers:
                resets[write.node].append(write.at)
        return most((moments[0], moments[-1]) for moments in resets.values())

    def _log(self) -> str:
        return Path(f"/var/lib/clusterctl-lab/{self.site.lab.name}/daemon.log").read_text()


def most(spans: Iterable[tuple[datetime, datetime]]) -> int:
    """How many of the spans overlap at most."""
    known = list(spans)
    return max((sum(begin <= at < end for begin, end in known) for at, _ in known), default=0)


@contextmanager
def pod_lab(name: str, subnet: str, folder: Path, *options: str, settings: Mapping[str, str]) -> Iterator[PodLab]:
    """A lab of two pods with PostgreSQL in its site's network. `settings`: lines of site.yml, by their first word."""
    with ExitStack() as stack:
        lab = stack.enter_context(running_lab(name, subnet, folder, "--pods", "2", *options))
        layout = Layout(IPv4Network(subnet))
        url = stack.enter_context(_journal(layout.gateway, subnet, folder / "postgresql.log"))
        file = lab.site / "site.yml"
        changed = {"deadlines": _DEADLINES, **settings}
        lines = [line for line in file.read_text().splitlines() if line.partition(":")[0] not in changed]
        file.write_text("\n".join([*lines, *changed.values(), f"journal: {url}", ""]))
        rows = json.loads(lab("status", "--json"))["machines"]
        machines = tuple(Machine(row["name"], row["pod"], row["bmc"], row["address"]) for row in rows)
        split = Layout(IPv4Network(subnet), 2, sum(machine.pod == 1 for machine in machines))
        found = PodLab(Site(lab, folder / "runs"), split.pods, machines)
        stack.enter_context(found.stack)
        yield found


@contextmanager
def _journal(address: str, clients: str, log: Path) -> Iterator[str]:
    """The URL of a new database that listens at the address. What the server logged is in `log` afterwards."""
    with running_server() as server:
        server.stop()
        with (server.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {clients} trust\n")
        server.listening = f" -c listen_addresses={address}"
        server.start()
        name = server.url().partition("@/")[2].partition("?")[0]
        try:
            yield f"postgresql+psycopg://{USER}@{address}/{name}"
        finally:
            shutil.copy(server.folder / "log", log)


def _at(match: re.Match[str]) -> datetime:
    return datetime.strptime(match["at"], "%Y-%m-%d %H:%M:%S,%f")  # noqa: DTZ007 — all times are of one log
