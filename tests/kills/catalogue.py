"""All that a fault-free bootstrap of three nodes does, as recorded: the seams that there are, in their order."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kills.seams import Blow, Moment, Seam

FILE = Path(__file__).parent / "data/seams.tsv"
HEAD = "times\tseconds\tactor: what\n"


@dataclass(frozen=True)
class Entry:
    """Something that the run does so many `times`, and how long the longest of them took."""

    actor: str
    what: str
    times: int
    seconds: float

    def seam(self, moment: Moment) -> Seam:
        return Seam(self.actor, self.what, moment)

    def blow(self, rng: random.Random, moment: Moment, most_s: float = math.inf) -> Blow:
        """At any of its passings; during it, after any part of its time (of its first `most_s`)."""
        late_s = round(rng.uniform(0.0, min(self.seconds, most_s)), 3) if moment is Moment.DURING else 0.0
        return Blow(self.seam(moment), rng.randint(1, self.times), late_s)


def shipped() -> tuple[Entry, ...]:
    """The recording that lies next to this file."""
    lines = FILE.read_text(encoding="utf-8").splitlines()[1:]
    return tuple(_entry(*line.split("\t")) for line in lines)


def _entry(times: str, seconds: str, name: str) -> Entry:
    actor, _, what = name.partition(": ")
    return Entry(actor, what, int(times), float(seconds))


def recorded(diary: Iterable[Mapping[str, Any]]) -> tuple[Entry, ...]:
    """Return the content of a diary, in the order in which each entry began."""
    begun: dict[Seam, list[float]] = {}
    longest: dict[Seam, float] = {}
    times: dict[Seam, int] = {}
    for line in diary:
        if "seam" not in line:
            continue
        seam = Seam.parse(line["seam"])
        one = Seam(seam.actor, seam.what, Moment.BEFORE)
        if seam.moment is Moment.BEFORE:
            begun.setdefault(one, []).append(line["at"])
            times[one] = times.get(one, 0) + 1
        elif seam.moment is Moment.AFTER:
            longest[one] = max(longest.get(one, 0.0), line["at"] - begun[one].pop(0))
    return tuple(Entry(one.actor, one.what, times[one], longest.get(one, 0.0)) for one in times)


def text_of(entries: Iterable[Entry]) -> str:
    return HEAD + "".join(f"{entry.times}\t{entry.seconds:.3f}\t{entry.actor}: {entry.what}\n" for entry in entries)


def blows(entries: Sequence[Entry], rng: random.Random, count: int) -> list[Blow]:
    """So many different seams of all, in the order in which a run comes to them."""
    all_seams = [(index, moment) for index in range(len(entries)) for moment in Moment]
    return [entries[index].blow(rng, moment) for index, moment in in_order(rng.sample(all_seams, count))]


def in_order(chosen: Iterable[tuple[int, Moment]]) -> Iterator[tuple[int, Moment]]:
    moments = list(Moment)
    return iter(sorted(chosen, key=lambda one: (one[0], moments.index(one[1]))))
