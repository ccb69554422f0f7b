"""One bootstrap under observation: every secret known, everything that could hold one kept for the search."""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path

from clusterctl_lab.faults.machine import OTHER_PASSWORD as ANOTHER
from lab.tests.lab_kit import ROOT, RunningLab
from tests.e2e.leaks import KEY_LINE, Watch
from tests.e2e.sampling import Sampler
from tests.processes import command_of, descendants
from tests.secrets.capture import Capture

NETWORK = IPv4Network("10.158.0.0/16")
WRONG_PASSWORD = 'Wr"ong & pässword+of/a%machine'
DOOR_CODE = 'open sesame, 42 & "more"'
RUN_S = 2400.0
PERIOD_S = 0.05
CORE_LIMIT_S = 120.0
NO_CORE = "0" if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 else "1"  # 1: neither in a file nor in a pipe


def prepare(site: Path) -> dict[str, str]:
    """Give the site one secret of each kind, all distinct; what it is → the secret. Returns the controller's variables.

    The site's BMC password comes from the environment; node002 has a factory password in the sheet, node004 a wrong
    one; a role's variable is secret.
    """
    password = (site / "secrets/bmc-password").read_text().strip()
    (site / "secrets/bmc-password").unlink()
    _private(site / "secrets/door-code", DOOR_CODE)
    text = (site / "site.yml").read_text()
    changes = {
        "{file: secrets/bmc-password}": "{env: CLUSTERCTL_BMC_PASSWORD}",
        "  variables:\n": "  secrets: {door_code: {file: secrets/door-code}}\n  transport: ssh\n  variables:\n",
    }
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (site / "site.yml").write_text(text)
    _sheet(site / "bmcs.csv")
    return {"CLUSTERCTL_BMC_PASSWORD": password}


def _sheet(file: Path) -> None:
    rows = list(csv.DictReader(file.read_text().splitlines()))
    for row in rows:
        row["bmc_password"] = {"node002": ANOTHER, "node004": WRONG_PASSWORD}.get(row["name"], "")
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    file.chmod(0o600)


def _private(file: Path, text: str) -> None:
    file.touch(0o600)
    file.write_text(text)


def secrets_in_use(site: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What it is → the secret, when the run is over: passwords, MAAS's key in parts, each line of each private key but
    the first, which is the same in all (PROTOCOL.key of OpenSSH: magic, no cipher, key type).
    """
    found = {
        "BMC password": environment["CLUSTERCTL_BMC_PASSWORD"],
        "factory password of node002": ANOTHER,
        "wrong password of node004": WRONG_PASSWORD,
        "door code": DOOR_CODE,
    }
    parts = (site / "secrets/maas-api-key").read_text().strip().split(":")
    found |= {f"MAAS key, part {number}": part for number, part in enumerate(parts, start=1)}
    for file in (site / "secrets/ssh_ed25519", *sorted((site / "state/host_keys").iterdir())):
        lines = [line for line in file.read_text().splitlines() if KEY_LINE.match(line)][1:]
        found |= {f"private key {file.name}, line {number}": line for number, line in enumerate(lines, start=2)}
    return found


class Environments(Sampler):
    """Notes, while it is entered, the environment of every program that the controller has started.

    Between fork and exec a child is still the controller, with its arguments and its environment.
    """

    def __init__(self, controller: int) -> None:
        super().__init__(PERIOD_S)
        self.seen: dict[str, set[bytes]] = {}
        self._controller = controller
        self._own_command = command_of(controller)

    def look(self) -> None:
        for process in descendants(self._controller):
            if process.command == self._own_command:
                continue
            try:
                environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            except (FileNotFoundError, ProcessLookupError, PermissionError):  # it ended, or is not ours
                continue
            self.seen.setdefault(process.command.split(" ")[0], set()).add(environment)


@dataclass
class Observed:
    """A finished run, and all that was seen of it. `outputs`: command → stdout and stderr."""

    lab: RunningLab
    environment: Mapping[str, str]
    temporary: Path
    code: int = -1
    cores: str = ""
    outputs: dict[str, bytes] = field(default_factory=dict)
    watches: tuple[Watch, ...] = ()
    environments: dict[str, set[bytes]] = field(default_factory=dict)
    capture: Capture = field(default_factory=lambda: Capture(NETWORK))

    @property
    def site(self) -> Path:
        return self.lab.site

    def command(self, *words: str) -> int:
        """Run another command of the site, with its output kept."""
        return self._finish(words, self._start(words))

    def bootstrap(self) -> None:
        """In the most talkative way, with no umask to help, everything watched."""
        words = ("bootstrap", "--yes", "-vv")
        state, temporary = Watch(self.site / "state"), Watch(self.temporary)
        with self.capture, state, temporary:
            process = self._start(words)
            with Environments(process.pid) as environments:
                self.cores = _core_limit(process.pid)
                self.code = self._finish(words, process)
        self.watches = (state, temporary)
        self.environments = environments.seen

    def _start(self, words: tuple[str, ...]) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "clusterctl_cli.main", *words, "--site", str(self.site)]
        environment = {**os.environ, **self.environment, "TMPDIR": str(self.temporary)}
        kind = subprocess.PIPE
        return subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=kind, stderr=kind, umask=0)

    def _finish(self, words: tuple[str, ...], process: subprocess.Popen[bytes]) -> int:
        stdout, stderr = process.communicate(timeout=RUN_S)
        name = " ".join(words)
        self.outputs |= {f"stdout of {name}": stdout, f"stderr of {name}": stderr}
        return process.returncode


def _core_limit(pid: int) -> str:
    """The process's own soft limit, as soon as it is the one that forbids cores, or the last one seen."""
    until = time.monotonic() + CORE_LIMIT_S
    while (limit := _soft_core_limit(pid)) != NO_CORE and time.monotonic() < until:
        threading.Event().wait(0.05)
    return limit


def _soft_core_limit(pid: int) -> str:
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line.split()[4] for line in limits if line.startswith("Max core file size"))


@contextmanager
def observed(lab: RunningLab, temporary: Path) -> Iterator[Observed]:
    temporary.mkdir()
    run = Observed(lab, prepare(lab.site), temporary)
    run.bootstrap()
    for words in (["report"], ["report", "--json"], ["nodes", "--json"], ["plan", "--json"], ["nodes", "node001"]):
        run.command(*words)
    for name in ("node002", "node003", "node004"):
        run.command("why", name, "--json")
    yield run
