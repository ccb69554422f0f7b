"""One rehearsal site from nothing to gold through many blows: run, struck, run again, until a run ends by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.tests.lab_kit import ROOT, eventually
from tests.e2e.site_kit import RUN_S, Site
from tests.kills.diary import lines_of
from tests.kills.promises import after_each, at_the_end
from tests.kills.seams import Blow
from tests.processes import mentioning

ORPHANS_S = 300.0
BROKEN = 3
"""Exit code of a run whose controller lacks something."""


@dataclass(frozen=True)
class Run:
    """One run of the controller, over. `blow` is what it was struck with, if it was."""

    number: int
    code: int
    output: str
    blow: Blow | None

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass
class Life:
    """The site of a lab, what its runs did (`diary`), and which promises they broke.

    `between` is called once a run was struck (to make room on a disk, to start a server again).
    """

    site: Site
    folder: Path
    between: Callable[[], None] = lambda: None
    runs: list[Run] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def diary(self) -> Path:
        return self.folder / "diary"

    @property
    def kills(self) -> int:
        return sum(run.killed for run in self.runs)

    def live(self, blows: Sequence[Blow], nodes: int) -> Iterator[Run]:
        """Run until a run is not struck any more; then all promises must hold. Blows that no run came to are left."""
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        left = list(blows)
        while True:
            run = self._run(left)
            self.runs.append(run)
            if run.blow is not None:
                self.between()
            self.broken += (broken for broken in self._after(run) if broken not in self.broken)
            yield run
            if run.blow is None:
                break
            left.remove(run.blow)
        last = at_the_end(self.site, self.diary, self.folder / "tmp", nodes)
        self.broken += [broken for broken in last if broken not in self.broken]

    def _run(self, blows: Sequence[Blow]) -> Run:
        number = len(self.runs)
        reported = self.folder / f"reported{number}"
        argv = (sys.executable, "-m", "tests.kills.controller", str(self.site.folder), str(self.diary))
        with reported.open("wb") as out:
            code = subprocess.run(
                (*argv, *map(str, blows)),
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(self.folder / "tmp")},
                stdout=out,
                stderr=out,
                timeout=RUN_S,
                check=False,
            ).returncode
        return Run(number, code, reported.read_text(errors="replace"), self._struck(number) if code else None)

    def _struck(self, number: int) -> Blow | None:
        """By the diary: the blow of the run that has just ended (one that arrived was faster than its blow)."""
        found = [Blow.parse(str(line["blow"])) for line in self._lines_of_last() if "blow" in line]
        assert len(found) <= 1, f"run {number} was struck more than once: {found}"
        return found[0] if found else None

    def _lines_of_last(self) -> list[dict[str, object]]:
        lines = list(lines_of(self.diary)) if self.diary.exists() else []
        begun = [index for index, line in enumerate(lines) if "began" in line]
        return lines[begun[-1] :] if begun else []

    def _after(self, run: Run) -> Iterator[str]:
        head = f"run {run.number} ({run.blow or 'not struck'})"
        if run.blow is None and run.code != 0:
            yield f"{head}: exit code {run.code}: {run.output}"
        if run.blow is not None and run.blow.fills and (run.code != BROKEN or run.output.count("error:") != 1):
            yield f"{head}: exit code {run.code} and these words at a full disk: {run.output}"
        if run.blow is not None and not run.blow.fills and not run.killed:
            yield f"{head}: it ended with exit code {run.code} although it was killed: {run.output}"
        if not eventually(lambda: not self._orphans(), ORPHANS_S):
            yield f"{head}: processes live on: {self._orphans()}"
        yield from after_each(self.site, self.diary)

    def _orphans(self) -> list[str]:
        found = [*mentioning(str(self.site.folder)), *mentioning(str(self.folder / "tmp"))]
        return [process.command for process in found]
