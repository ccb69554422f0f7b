"""Seams: the places between two things a run does, where its controller can be killed."""

from __future__ import annotations

import enum
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.kills.diary import Diary


class Moment(enum.StrEnum):
    """`BEFORE` it began, `DURING` it (a moment after it began), `AFTER` it returned."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(frozen=True, order=True)
class Seam:
    """`what` is done, and the actor (a step, or the run itself): `install`, `installer.start`."""

    actor: str
    what: str
    moment: Moment

    def __str__(self) -> str:
        return f"{self.moment} {self.actor}: {self.what}"

    @classmethod
    def parse(cls, text: str) -> Self:
        head, _, what = text.partition(": ")
        moment, _, actor = head.partition(" ")
        return cls(actor, what, Moment(moment))


@dataclass(frozen=True)
class Blow:
    """What happens at the `nth` passing of a seam: by default a kill. `late_s`: so long after, for `DURING`."""

    seam: Seam
    nth: int = 1
    late_s: float = 0.0
    fills: str = ""
    """A folder whose disk is filled instead of killing."""

    @classmethod
    def parse(cls, text: str) -> Self:
        nth, late_s, fills, seam = text.split("|")
        return cls(Seam.parse(seam), int(nth), float(late_s), fills)

    def __str__(self) -> str:
        return f"{self.nth}|{self.late_s}|{self.fills}|{self.seam}"


class Seams:
    """Passes seams, writing each into the diary; strikes once, at the first of `blows` that it comes to."""

    def __init__(self, diary: Diary, blows: Sequence[Blow], strike: Callable[[Blow], None]) -> None:
        self.diary = diary
        self._strike = strike
        self._blows = list(blows)
        self._passed: Counter[Seam] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def around(self, what: str, **facts: str) -> Iterator[None]:
        """Something that the run does. `facts` go into the diary as it begins."""
        actor = threading.current_thread().name.partition("_")[0].replace("MainThread", "run")
        self._pass(Seam(actor, what, Moment.BEFORE), **facts)
        self._pass(Seam(actor, what, Moment.DURING))
        yield
        self._pass(Seam(actor, what, Moment.AFTER))

    def _pass(self, seam: Seam, **facts: str) -> None:
        with self._lock:
            self._passed[seam] += 1
            blow = next((blow for blow in self._blows if (blow.seam, blow.nth) == (seam, self._passed[seam])), None)
            if blow is not None:
                self._blows.clear()
            self.diary.write(seam=str(seam), **facts, **({"blow": str(blow)} if blow else {}))
        if blow is not None:
            self._fall(blow)

    def _fall(self, blow: Blow) -> None:
        if blow.seam.moment is Moment.DURING:
            timer = threading.Timer(blow.late_s, self._strike, [blow])
            timer.daemon = True
            timer.start()
        else:
            self._strike(blow)


def kill(_blow: Blow) -> None:
    """As `kill -9` by another user, or the kernel's OOM killer: this process alone, at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def fill(folder: Path) -> None:
    """Write until the disk under `folder` has no byte left."""
    with (folder / "ballast").open("ab", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12, 1):
            while _grown(ballast.fileno(), size):
                pass


def _grown(descriptor: int, size: int) -> bool:
    try:
        return os.write(descriptor, bytes(size)) > 0
    except OSError:  # no space left: that is what was wanted
        return False


def strike(blow: Blow) -> None:
    """Strike as the blow orders."""
    if blow.fills:
        fill(Path(blow.fills))
    else:
        kill(blow)
