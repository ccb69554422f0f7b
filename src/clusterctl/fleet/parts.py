"""A node's parts by the names that people use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from clusterctl.fleet.finding import Finding
from clusterctl.fleet.node import Cpu, Dimm, Drive, Gpu, Hca, Psu
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waiver import same_part

MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Part:
    """`slot` is what its BMC calls it; that and `serial` are empty where nothing has told them yet."""

    subject: str
    serial: str
    slot: str = ""

    def __str__(self) -> str:
        return f"{self.subject}, serial {self.serial}" if self.serial else f"{self.subject}, serial unknown"


def part_named(node: NodeState, name: str) -> Part:
    """The part that the person means: by slot or serial as its BMC tells them, or by a name that reports have used.

    One that nothing has named so far is believed, without a serial.
    """
    known = (part for part in _known(node) if same_part(part.subject, name) or part.serial == name.strip())
    return next(known, Part(" ".join(name.split()), ""))


def serials_in(node: NodeState) -> frozenset[str]:
    """Of the parts that its BMC and its reports tell of."""
    return frozenset(part.serial for part in _known(node) if part.serial)


def part_of(node: NodeState, finding: Finding) -> Part:
    """The part that a finding of the node is about: the machine itself where it names none."""
    if finding.subject == "node":
        return Part(MACHINE, node.serial or "")
    for part in _fitted(node):
        if (finding.serial and part.serial == finding.serial) or same_part(part.slot, finding.subject):
            return Part(finding.subject, finding.serial or part.serial, part.slot)
    return Part(finding.subject, finding.serial)


def _known(node: NodeState) -> Iterator[Part]:
    yield from _fitted(node)
    for report in node.reports.values():
        yield from (Part(finding.subject, finding.serial) for finding in report.findings if finding.serial)


def _fitted(node: NodeState) -> Iterator[Part]:
    """What its BMC says is in it."""
    found = node.inventory
    if found is None:
        return
    parts: Iterable[Gpu | Hca | Drive | Psu | Dimm | Cpu] = chain(
        found.gpus or (), found.hcas or (), found.drives or (), found.psus or (), found.dimms or (), found.cpus or ()
    )
    yield from (Part(part.slot, part.serial or "", part.slot) for part in parts)
    yield from (Part(fan.slot, "", fan.slot) for fan in found.fans or ())
