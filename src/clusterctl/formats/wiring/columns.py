"""Headings of a wiring plan's spreadsheet → the role of each column, by the usual names of columns.

A heading names an end (`Source`, `A-side`, `From`, `Quelle`) and a thing (`Device`, `Port`, `Rack`). Where it names no
end, the order decides: `Switch, Port, Server, HCA`. Headings may stand on two lines, the upper one naming the ends.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clusterctl.formats.wiring.cages import next_to_port

A, B = "source", "destination"
NEEDED = ("source_device", "source_port", "destination_device", "destination_port")
_ENDS = {
    A: "source src from start local near quelle quell von ausgang origin aside aend sidea enda seitea sourceside "
    "fromside nearend upstream upper parent head left initiator origin origen origem sorgente bron",
    B: "destination dest dst to target tgt remote far peer ziel nach zu neighbor neighbour bside bend sideb endb "
    "seiteb zside zend sidez endz farend toside downstream lower child tail right destino destinazione doel",
}
_END_OF = {word: end for end, words in _ENDS.items() for word in words.split()}
_LETTER_END = {"a": A, "b": B, "z": B, "1": A, "2": B}
_THINGS = {
    "device": "device name node host hostname system switch equipment geraet knoten server rechner machine element "
    "nodename devicename switchname servername hostnames asset leaf spine core compute leafswitch spineswitch dev "
    "equipement dispositivo equipo apparaat",
    "port": "port interface intf if hca hcaport adapter nic anschluss schnittstelle buchse portname portnumber portno "
    "ifname iface portid portnr termination switchport mlxdevice rdmadevice ibdevice hcadevice hcaname "
    "puerto porta poort",
    "cage": "cage cages osfp qsfp osfpcage qsfpcage portcage kaefig",
    "rack": "rack cabinet schrank rackname racknumber rackno devicelocation",
    "unit": "u ru unit uheight rackunit he hoeheneinheit position ruposition upos uposition rackposition rackpos",
    "type": "type typ role devicetype nodetype rolle",
    "mac": "mac macaddress",
}
_THING_OF = {word: thing for thing, words in _THINGS.items() for word in words.split()}
_CABLE = {
    "cable_serial": "cableserial serial serialnumber sn cablesn cableserialnumber seriennummer kabelseriennummer",
    "length_m": "length lengthm cablelength cablelengthm laenge laengem kabellaenge lengthinm "
    "lengthmeters lengthmetres len",
    "rail": "rail",
    "rate": "rate speed bandwidth datarate linkspeed geschwindigkeit gbps speedg speedgbps speedgb linkspeedgbps "
    "configuredspeedgbps bandwidthgbps rategbps",
    "cable_type": "cabletype media mediatype medium kabeltyp type cable cablepn partnumber pn cablepartnumber typ",
}
_CABLE_OF = {word: thing for thing, words in _CABLE.items() for word in words.split()}
_HOST_WORDS = frozenset(("server", "host", "hca", "nic", "adapter", "compute", "rechner", "hcaport", "gpu"))
_FILLERS = frozenset(
    ("ib", "infiniband", "no", "nr", "number", "id", "label", "physical", "slot", "transceiver", "twin")
)
_SIDES = frozenset(("side", "end", "seite", "endpoint", "point"))
"""Words that come with the name of an end, and name nothing themselves."""
_BEFORE_LETTER = _SIDES | {"termination"}
_TERMINATION = re.compile("termination", re.IGNORECASE)
"""A port (NetBox), or an end where another column is the port."""
_NUMBERED = re.compile(r"([a-z]+)([12])")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FOLD = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
HEAD_ROWS = 30
"""Rows in which a header is looked for."""


@dataclass(frozen=True, slots=True)
class Columns:
    """`place` of each role in a row, e.g. `source_port`; `heading` as written; `host_ends`: ends that are hosts by
    their headings; `ignored`: headings without a role; `first`: place of the first row of data; `cage_ports`: ports
    whose column is called a cage of two.
    """

    place: dict[str, int]
    heading: dict[str, str]
    host_ends: frozenset[str]
    ignored: tuple[str, ...]
    first: int
    cage_ports: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Finder:
    place: dict[str, int] = field(default_factory=dict)
    heading: dict[str, str] = field(default_factory=dict)
    host_ends: set[str] = field(default_factory=set)
    ignored: list[str] = field(default_factory=list)
    cage_ports: set[str] = field(default_factory=set)
    end: str = ""

    def take(self, number: int, heading: str) -> None:
        """Give the column a role."""
        end, thing, words = _meaning(heading)
        if thing == "cage" and not end and all(name in self.place for name in NEEDED):
            role = thing
        else:
            if thing in _THINGS:
                end = self.end = end or self._end_by_order(thing)
            role = self._role(end, thing, words)
        if role and role not in self.place:
            self.place[role], self.heading[role] = number, heading
            if end and words & _HOST_WORDS:
                self.host_ends.add(end)
        elif heading:
            self.ignored.append(heading)

    def settle_cages(self) -> None:
        """Take a cage for the port where its end has no other (`Switch OSFP`); leave out one that is not next to it."""
        for end in (A, B):
            cage, port = f"{end}_cage", f"{end}_port"
            if cage in self.place and port not in self.place:
                self.place[port], self.heading[port] = self.place.pop(cage), self.heading.pop(cage)
                self.cage_ports |= {port} if "qsfp" not in self.heading[port].casefold() else set()
            elif cage in self.place and not next_to_port(self.place, end, cage):
                self.ignored.append(self.heading.pop(cage))
                del self.place[cage]

    def _role(self, end: str, thing: str, words: frozenset[str]) -> str:
        """Return the role of a column; empty where its heading has no meaning."""
        if thing not in _THINGS:
            return thing
        if f"{end}_{thing}" in self.place and "name" in words and f"{end}_port" not in self.place:
            return f"{end}_port"  # NetBox: `side_a_device`, `side_a_name`
        return f"{end}_{thing}"

    def _end_by_order(self, thing: str) -> str:
        """Return the end of a heading that names none: the one before, until that has such a column or its port."""
        end = self.end or A
        if thing == "cage":
            return end
        done = f"{end}_{thing}" in self.place or (thing != "port" and f"{end}_port" in self.place)
        return B if done else end


def find_columns(rows: Sequence[tuple[int, tuple[str, ...]]]) -> Columns | None:
    """Return the columns by the first rows that name all four needed ones; None where none do."""
    for number in range(min(len(rows), HEAD_ROWS)):
        cells = rows[number][1]
        upper = rows[number - 1][1] if number else ()
        for headings in (cells, _joined(upper, cells)):
            found = _columns(headings, number + 1)
            if found is not None and (headings is cells or not _columns(rows[number - 1][1], number)):
                return found
    return None


def nearest(rows: Sequence[tuple[int, tuple[str, ...]]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the headings that name most needed columns, and those that they lack."""
    best: tuple[str, ...] = ()
    missing: tuple[str, ...] = NEEDED
    for _, cells in rows[:HEAD_ROWS]:
        place = _places(cells).place
        lacks = tuple(name for name in NEEDED if name not in place)
        if len(lacks) < len(missing) or not best:
            best, missing = cells, lacks
    return best, missing


def _columns(headings: Sequence[str], first: int) -> Columns | None:
    for spelling in (headings, [_TERMINATION.sub("endpoint", heading) for heading in headings]):
        finder = _places(spelling)
        if all(name in finder.place for name in NEEDED):
            host_ends, cage_ports = frozenset(finder.host_ends), frozenset(finder.cage_ports)
            return Columns(finder.place, finder.heading, host_ends, tuple(finder.ignored), first, cage_ports)
    return None


def _places(headings: Sequence[str]) -> _Finder:
    finder = _Finder()
    for number, heading in enumerate(headings):
        finder.take(number, heading)
    finder.settle_cages()
    return finder


def _joined(upper: Sequence[str], lower: Sequence[str]) -> tuple[str, ...]:
    """Return two lines of headings as one: an upper heading also stands above the empty cells to its right."""
    above = ""
    joined = []
    for number, heading in enumerate(lower):
        above = (upper[number] if number < len(upper) else "") or above
        joined.append(f"{above} {heading}".strip() if heading else "")
    return tuple(joined)


def _meaning(heading: str) -> tuple[str, str, frozenset[str]]:
    """Return end, thing and words of a heading; empty strings where it names none."""
    words = _words(heading)
    every = frozenset(words)
    whole = "".join(words)
    end, left = _end_and_rest(words)
    if not end and whole in _CABLE_OF:
        return "", _CABLE_OF[whole], every
    if not left:
        return (end, "device", every) if end else ("", "", every)
    return end, _thing(left, end), every


def _end_and_rest(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the end that the first of the words names, empty where none does, and the words that may name a thing."""
    end = ""
    left: list[str] = []
    for number, word in enumerate(words):
        letter = _LETTER_END.get(word, "") if _is_side(words, number) else ""
        if not end and (found := _END_OF.get(word, "") or letter):
            end = found
        elif word not in (*_SIDES, "fields", "the"):
            left.append(word)
    if not end and words[:1] == ["end"]:
        end = B
    return end, left


def _is_side(words: Sequence[str], number: int) -> bool:
    """Return whether a single letter or digit names an end: `A device`, `side B`, `Port 2`."""
    return len(words) > 1 and (number in (0, len(words) - 1) or words[number - 1] in _BEFORE_LETTER)


def _thing(words: list[str], end: str) -> str:
    """Return the thing that words name: all together, else their last word (`Switch Port`, `Node Name`)."""
    whole = "".join(words)
    found = _THING_OF.get(whole, "") or ("" if end else _CABLE_OF.get(whole, ""))
    if found:
        return found
    last = [word for word in words if word in _THING_OF]
    return _THING_OF[last[-1]] if last and _only_known(words) else ""


def _only_known(words: Iterable[str]) -> bool:
    return all(word in _THING_OF or word in _HOST_WORDS or word in _FILLERS for word in words)


def _words(heading: str) -> list[str]:
    """Return the words without accents; `Port1` is two of them."""
    spaced = _CAMEL.sub(" ", unicodedata.normalize("NFKC", heading)).casefold().translate(_FOLD)
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", spaced) if not unicodedata.combining(sign))
    words: list[str] = []
    for word in re.findall(r"[a-z0-9]+", plain):
        found = _NUMBERED.fullmatch(word)
        words += found.groups() if found and found[1] in _THING_OF else [word]
    return words
