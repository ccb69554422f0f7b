"""Machines in a folder, which several controllers install at once: what is done to them is done once and written down."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.finding import Observed
from clusterctl.ports import (
    BmcAddress,
    BmcClient,
    Deadline,
    HostAddress,
    InstallState,
    InstallStatus,
    InstallTarget,
    Pool,
    Ran,
)
from tests.steps.fakes import disks, seen


@dataclass(frozen=True)
class World:
    """`NAME.state` is where a machine stands; `NAME.hold` keeps it installing; `acts` is all that was done to any."""

    folder: Path

    def state(self, name: str) -> InstallState:
        file = self.folder / f"{name}.state"
        return InstallState(file.read_text()) if file.exists() else InstallState.READY

    def move(self, name: str, state: InstallState) -> None:
        written = self.folder / f"{name}.state-of-{os.getpid()}-{threading.get_ident()}"
        written.write_text(state.value)
        written.rename(self.folder / f"{name}.state")  # never half written

    def hold(self, name: str) -> None:
        (self.folder / f"{name}.hold").touch()

    def let_go(self, name: str) -> None:
        (self.folder / f"{name}.hold").unlink()

    def held(self, name: str) -> bool:
        return (self.folder / f"{name}.hold").exists()

    def note(self, act: str, name: str) -> None:
        with (self.folder / "acts").open("a") as acts:
            acts.write(f"{act} {name} {os.getpid()}\n")

    def starts(self) -> Counter[str]:
        """How often the OS of each machine was written."""
        return Counter(name for name, _ in self.started_by())

    def started_by(self) -> list[tuple[str, int]]:
        """Machine, and process id of the controller, oldest first."""
        file = self.folder / "acts"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [(name, int(pid)) for act, name, pid in lines if act == "start"]

    @contextmanager
    def alone(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@dataclass(frozen=True)
class WorldInstaller:
    """An installer that does every order, as often as it is ordered: only its callers can keep it from doing it
    twice. Before it begins with `stops_at`, the controller is stopped, as by `kill -STOP`, while `quiet` is held.
    """

    world: World
    quiet: threading.Lock
    stops_at: str = ""
    acting: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        raise AssertionError("every machine of this world is ready")

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        with self.acting:  # no other act of this process is half done when the process is stopped
            if target.name == self.stops_at:
                with self.quiet:
                    signal.pthread_kill(
                        threading.get_ident(), signal.SIGSTOP
                    )  # this thread goes no further, nor the others
            with self.world.alone():
                deadline.check(f"starting {target.name}")
                self.world.note("start", target.name)
                self.world.move(target.name, InstallState.INSTALLING)
        return self._status(target.name)

    def power_login(self, target: InstallTarget, deadline: Deadline) -> BmcAddress | None:
        return None

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        raise AssertionError("no install of this world fails")

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        with self.acting, self.world.alone():  # nor does it hold the world then
            for target in targets:
                if self.world.state(target.name) is InstallState.INSTALLING and not self.world.held(target.name):
                    self.world.move(target.name, InstallState.INSTALLED)
            return {target.name: self._status(target.name) for target in targets}

    def _status(self, name: str) -> Observed[InstallStatus]:
        state = self.world.state(name)
        addresses = ("192.0.2.100",) if state is InstallState.INSTALLED else ()
        return Observed(InstallStatus(state, "", name, addresses), seen(state.value))


class GreetingShell:
    """Every host answers with its own name, and runs from the disk that it was to be installed on."""

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        reported = {"cat": f"boot-id\n{host.name}\n", **disks(f"DISK-SN-{host.name}")}
        return Observed(Ran(0, reported[argv[0]], "", 0.1), seen())


class NoBmcs:
    """No BMC answers."""

    def open(self, address: BmcAddress, deadline: Deadline) -> BmcClient:
        raise UnreachableError("no route", where=address.host)


class NoPlaybooks:
    """No run of these tests comes so far."""

    def run(self, *_: object) -> Iterator[Observed[object]]:
        raise AssertionError("no playbook may run")


class NoFabric:
    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        raise AssertionError("no fabric may be read")


@dataclass(frozen=True)
class WorldOutside:
    """Meets `Adapters` as far as an install needs it; the pool is the real one."""

    installer: WorldInstaller
    pool: Pool
    bmcs: NoBmcs
    shell: GreetingShell
    playbooks: NoPlaybooks
    fabric: NoFabric

    @property
    def accounts(self) -> NoReturn:
        raise AssertionError("no account may be changed")

    @property
    def services(self) -> NoReturn:
        raise AssertionError("no BMC may be set")

    @property
    def eraser(self) -> NoReturn:
        raise AssertionError("no drive may be erased")

    @property
    def certificates(self) -> NoReturn:
        raise AssertionError("no BMC gets a certificate")

    @property
    def power_logins(self) -> NoReturn:
        raise AssertionError("no login may be reported")

    def close(self) -> None:
        """Nothing is open."""
