"""A site of four machines that stand before their install, their world, and controllers to run on them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, claims, open_journal
from clusterctl.edges.site.load import journal_connected, load_site
from clusterctl.fleet.node import Stage
from lab.tests.lab_kit import eventually
from tests.edges.site.ready import write_ready_site
from tests.paths import ROOT
from tests.steps.fakes import FixedClock, identified
from tests.two.world import World

NAMES = ("n1", "n2", "n3", "n4")
LEASE_S = 3600
"""Longer than a controller is left without a processor."""
SHORT_LEASE_S = 15
"""For the claims of a controller that has stopped."""
PATIENCE_S = 600.0
SHEET = "name,bmc_address\n" + "".join(f"{name},192.0.2.{number}\n" for number, name in enumerate(NAMES, start=1))


@dataclass
class Controller:
    """One `tests.two.controller` process; its output is read at its end."""

    process: subprocess.Popen[str]
    out: str = ""
    err: str = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait(self) -> int:
        """Its exit code."""
        self.out, self.err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode

    def until_stopped(self) -> None:
        """Until it has stopped itself, before it did what it had intended."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@dataclass
class Scene:
    """`site` and its `world`."""

    site: Path
    world: World
    url: str
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self, *argv: str, module: str = "tests.two.controller", within: Sequence[str] = ()) -> Controller:
        """Start a controller; `within` starts it elsewhere, such as in another network namespace."""
        command = (*within, sys.executable, "-m", module, str(self.site), str(self.world.folder), *argv)
        pipe = subprocess.PIPE
        controller = Controller(subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True))
        self.stack.callback(controller.end)
        return controller

    def run(self, *argv: str) -> Controller:
        controller = self.start(*argv)
        controller.wait()
        return controller

    def journal(self) -> SqlJournal:
        book = open_journal(self.url, FixedClock(), Holder("test"))
        self.stack.callback(book.close)
        return book

    def stages(self) -> Mapping[str, Stage]:
        return {state.name: state.stage for state in self.journal().states()}

    def until_installing(self, *names: str) -> None:
        assert eventually(lambda: set(names) <= set(self.world.starts()), PATIENCE_S)

    def until_expired(self) -> None:
        """Until no claim holds any more."""
        database = self.journal()._database
        assert eventually(lambda: not database.read(claims.count), PATIENCE_S)

    def set_lease(self, seconds: int) -> None:
        """For the claims of controllers that start from now on."""
        file = self.site / "site.yml"
        file.write_text(file.read_text().replace(f"lease_s: {SHORT_LEASE_S}}}", f"lease_s: {seconds}}}"))


@pytest.fixture
def lease_s() -> int:
    return LEASE_S


@pytest.fixture
def scene(tmp_path: Path, url: str, lease_s: int) -> Iterator[Scene]:
    site = write_ready_site(tmp_path / "site")
    (site / "bmcs.csv").write_text(SHEET)
    with (site / "site.yml").open("a") as settings:
        settings.write(
            f"\nsimulated: true\nclaims: {{lease_s: {lease_s}}}\njournal: {url}\ntiming: {{install_poll_s: 0.2}}\n"
        )
    (tmp_path / "world").mkdir()
    scene = Scene(site, World(tmp_path / "world"), url)
    book = scene.journal()
    journal_connected(load_site(site))  # this process has it open: closing the file elsewhere would end SQLite's locks
    for name in NAMES:
        identified(book, name, f"SN-{name}")
    with scene.stack:
        yield scene
