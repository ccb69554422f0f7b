"""Faults × what was found: what is expected (`data/faults.yml`), what a rehearsal showed, and both as a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pydantic
import yaml

from tests.paths import ROOT

FILE = Path(__file__).with_name("data") / "faults.yml"


class Expectation(pydantic.BaseModel, frozen=True, extra="forbid"):
    """One fault and where it must be found.

    target   the part, as `lab inject` takes it; `@FAULT` is the node that has that fault
    when     `delivered`: before the first power-on; `running`: into a host that is configured and cabled; `configure`:
             while the roles are applied to it
    subject  exactly, or a regular expression between slashes
    look     where the look of the broken part comes from: recording, specification, manual
    seen_offline  each run of the tests finds it, too, without a lab, through the same tools, checks and roots
                  (lab/tests: test_tool_faults.py, test_gpu_load_faults.py)
    suite         the burn-in that finds it
    fabric        of the lab that it is played in
    serial        of the broken part of the first machine, where lab/tests finds the fault
    """

    fault: str
    target: str = ""
    when: Literal["delivered", "running", "configure"]
    step: str
    check: str
    subject: str
    stage: Literal["quarantined", "held"] = "quarantined"
    remedy: str
    look: str
    seen_offline: bool = False
    suite: Literal["bootstrap", "every_load"] = "bootstrap"
    fabric: Literal["infiniband", "roce"] = "infiniband"
    serial: str = ""

    def at(self, node: str, others: Mapping[str, str]) -> str:
        """The target as `lab inject` takes it; `others` are nodes by their fault."""
        part = others[self.target[1:]] if self.target.startswith("@") else self.target
        return f"{node}:{part}" if part else node


@dataclass(frozen=True)
class Row:
    """A fault's line of the table: `answer` is the output of `clusterctl why NODE --json`."""

    expected: Expectation
    node: str
    answer: dict[str, Any]

    @property
    def found(self) -> dict[str, Any]:
        """The first root finding; empty where there is none."""
        return dict(next(iter(self.answer["findings"]), {}))

    def wrong(self) -> Iterator[str]:
        """In what the finding differs from the expectation."""
        held = self.answer["stopped_at"] is not None and self.answer["stage"] not in ("quarantined", "gold")
        stage = "held" if held else self.answer["stage"]
        wanted, found = self.expected, self.found
        if (stage, self.answer["stopped_at"]) != (wanted.stage, wanted.step):
            yield f"{stage} at {self.answer['stopped_at']}, expected {wanted.stage} at {wanted.step}"
        if found.get("check") != wanted.check:
            yield f"found by {found.get('check')}, expected {wanted.check}"
        if not is_subject(wanted.subject, found.get("subject", "")):
            yield f"found on {found.get('subject')!r}, expected {wanted.subject!r}"
        if wanted.remedy not in found.get("remedy", ""):
            yield f"the remedy {found.get('remedy')!r} does not contain {wanted.remedy!r}"
        others = [f"{one['check']} on {one['subject']} ({one['cause']})" for one in self.answer["findings"][1:]]
        if others:
            yield f"further roots: {', '.join(others)}"

    def cells(self) -> tuple[str, ...]:
        found = self.found
        where = f"`{found.get('check')}` on {found.get('subject')}"
        words = (found.get("cause", ""), found.get("remedy", ""))
        return (
            f"`{self.expected.fault}`",
            _part(self.expected),
            _BROKEN[self.expected.when],
            self.expected.step,
            where,
            *words,
            self.expected.look,
        )


_BROKEN = {"delivered": "as delivered", "configure": "during configure", "running": "while running"}
HEAD = ("fault", "part", "broken", "found at", "check and part", "cause", "remedy", "source of the output")


def expectations() -> tuple[Expectation, ...]:
    """The whole table's."""
    return tuple(Expectation(**entry) for entry in yaml.safe_load(FILE.read_text()))


PAGE = ROOT / "docs/reference/faults.md"
PREFACE = """# Faults, and what is found of them

The faults of one lab and what `clusterctl bootstrap` finds of them; `make fault-table` writes this page. Each line is the
literal output of a run, and tests/e2e/test_faults.py checks it. `part` is what follows `NODE:` in `clusterctl lab inject
FAULT NODE:PART`. Machines were broken as delivered, during configure, or while they ran, in batches; each batch was
repaired before the next. The last batch ran the loads that the suite bootstrap omits (tests/e2e/data/every_load.yml), on a
site that defines the hosts' network. Faults of RoCE were played in a lab of their own (`lab up --fabric roce`).

Each check and each load finds a fault here, except `training` (in the suite `hunt-training` alone:
tests/burnin/test_training_on_lab_hosts.py).
The hosts of a lab have a stand-in for ZFS; a disk pulled from a real pool is found on virtual metal
(tests/metal/test_roles_on_metal.py), and so is an MTU that changes while it runs (tests/metal/test_pxe_install.py; networkd's
own output: tests/formats/host/test_networkd.py).

"""


def page(rows: Iterable[Row], former: str = "") -> str:
    """The whole of `docs/reference/faults.md`: of what was not played this time, the lines of the `former` page stay."""
    known = {(f"`{each.fault}`", _part(each), _BROKEN[each.when]) for each in expectations()}
    kept = {line[:3]: line for line in _lines(former) if line[:3] in known}
    played = {row.cells()[:3]: _escaped(row.cells()) for row in rows}
    lines = [HEAD, ("---",) * len(HEAD), *(line for _, line in sorted({**kept, **played}.items()))]
    return PREFACE + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _lines(text: str) -> Iterator[tuple[str, ...]]:
    rows = (line for line in text.splitlines() if line.startswith("| `"))
    return (tuple(line.removeprefix("| ").removesuffix(" |").split(" | ")) for line in rows)


def _escaped(cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(cell.replace("|", "\\|").split()) for cell in cells)


def _part(expected: Expectation) -> str:
    return "another node" if expected.target.startswith("@") else expected.target or "machine"


def is_subject(wanted: str, found: str) -> bool:
    """Return whether the subject is the wanted one, or matches it where it is a regular expression between slashes."""
    if wanted.startswith("/") and wanted.endswith("/"):
        return re.fullmatch(wanted[1:-1], found) is not None
    return wanted == found
