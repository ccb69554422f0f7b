"""What a BMC may do to one of its resources, and what discover then makes of the machine.

An attack is harmless where the BMC still reports all it reported (links written in another way, members listed twice), else
it takes something away. `violations` compares the verdicts with those of the untouched tree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from clusterctl.edges.redfish.connection import Reply
from clusterctl.fleet.finding import Evidence, Finding, Observed, Origin, Verdict
from clusterctl.fleet.node import Inventory, NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.formats.redfish.evidence import render
from clusterctl.formats.redfish.inventory import read_inventory
from clusterctl.formats.redfish.logs import read_logs
from clusterctl.formats.redfish.tree import ROOT, Answer, Answers, ReadRequest, Unreadable
from clusterctl.ports import BmcAddress, Deadline, LogEntry
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from tests.redfish_trees.load import Tree, load_tree, load_truth, with_links
from tests.redfish_trees.test_redfish_trees import sku_of
from tests.steps.discover.test_discover import NoJournal

NOW = datetime(2026, 5, 1, tzinfo=UTC)
_MAX_ROUNDS = 400
GOOD = (Verdict.PASS, Verdict.NOT_APPLICABLE)

Wire = dict[str, tuple[int, bytes]]
"""Status and body of the answer for each path."""


@dataclass(frozen=True)
class Outcome:
    """The result of discover for the machine; `inventory` is None where the BMC does not identify its machine."""

    findings: tuple[Finding, ...]
    inventory: Inventory | None


class Client:
    """A BMC client that reads from a `Wire` by the code of the real one, without network."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.read: Inventory | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None: ...

    def inventory(self, _deadline: Deadline) -> Observed[Inventory]:
        reading, answers = self._walk(read_inventory)
        self.read = reading.inventory
        return Observed(reading.inventory, (_evidence(answers, reading.problems),))

    def event_log(self, _deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        entries, answers = self._walk(read_logs)
        return Observed(entries, (_evidence(answers),))

    def _walk(self, ask: Callable[[Answers], Any]) -> tuple[Any, Answers]:
        answers: dict[str, Answer] = {ROOT: self._answer(ROOT)}
        for _ in range(_MAX_ROUNDS):
            found = ask(answers)
            if not isinstance(found, ReadRequest):
                return found, answers
            answers |= {path: self._answer(path) for path in found.paths}
        raise AssertionError("the walk does not end")

    def _answer(self, path: str) -> Answer:
        if "?$expand=" in path:
            return Unreadable("HTTP 501")
        status, content = self.wire.get(path, (404, b"{}"))
        return Reply(status, content, {}).answer


def _evidence(answers: Answers, problems: tuple[str, ...] = ()) -> Evidence:
    return Evidence("attack", "bmc", NOW, Origin.REAL, render(answers, problems))


class Machine:
    """One tree, its SKU, and what discover makes of it untouched. `change`: fields that the tree gets first."""

    def __init__(self, name: str, change: Mapping[str, Any] | None = None) -> None:
        self.tree: Tree = load_tree(name)
        for path, fields in (change or {}).items():
            self.tree[f"{ROOT}/{path}"] = changed(self.tree[f"{ROOT}/{path}"], with_links(fields))
        self.truth = load_truth(name)
        self.wire: Wire = {path: encoded(body) for path, body in self.tree.items()}
        self._node = NodeState(NodeId("id1"), "n1", bmc="192.0.2.1")
        self.before = self.discover(self.wire)
        assert self.before.inventory is not None
        self._node = replace(self._node, serial=self.before.inventory.serial)
        self.before = self.discover(self.wire)

    def discover(self, wire: Wire) -> Outcome:
        client = Client(wire)

        class Bmcs:
            @contextmanager
            def open(self, _address: BmcAddress, _deadline: Deadline) -> Iterator[Client]:
                yield client

        services = DiscoverServices(Bmcs(), lambda _: BmcAddress("192.0.2.1", "root", ""), dict)  # type: ignore[arg-type]
        step = Discover(services, DiscoverPlan([sku_of(self.truth)], workers=1, read_only=True))
        (outcome,) = step.run([self._node], IntentLog(NoJournal(), {}), Deadline.after(600))  # type: ignore[arg-type]
        return Outcome(outcome.findings, client.read)

    def paths(self) -> list[str]:
        """Return the first and the last path of those that differ in their numbers only, and that are read."""
        kinds: dict[str, list[str]] = {}
        for path, body in self.tree.items():
            if isinstance(body, Mapping):
                kinds.setdefault(re.sub(r"\d+", "#", path), []).append(path)
        return [path for alike in kinds.values() for path in dict.fromkeys((alike[0], alike[-1]))]


def changed(body: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with the fields, objects merged; null takes a field away."""
    merged = {
        name: changed(old, value)
        if isinstance(old := body.get(name), Mapping) and isinstance(value, Mapping)
        else value
        for name, value in fields.items()
    }
    return {name: value for name, value in {**body, **merged}.items() if value is not None or name not in fields}


def encoded(body: Any) -> tuple[int, bytes]:
    if isinstance(body, Unreadable):
        return int(body.reason.removeprefix("HTTP ").split()[0]), b"{}"
    return 200, json.dumps(body).encode()


Attack = Callable[[Tree, str], Wire | None]
"""Changes the answer of one path; None where there is nothing to change."""


def _status(code: int) -> Attack:
    return lambda _tree, path: {path: (code, b"{}")}


def _content(change: Callable[[bytes], bytes]) -> Attack:
    return lambda tree, path: {path: (200, change(json.dumps(tree[path]).encode()))}


def _fields(change: Callable[[str, Any], Any], kept: Iterable[str] = ("@odata.id", "Members", "Id", "Name")) -> Attack:
    """Change every value that is none of the kept, deeply."""

    def attack(tree: Tree, path: str) -> Wire | None:
        body = _mapped(tree[path], change, frozenset(kept))
        return None if body == tree[path] else {path: encoded(body)}

    return attack


def _mapped(value: Any, change: Callable[[str, Any], Any], kept: frozenset[str], key: str = "") -> Any:
    if key in kept or key.startswith("Members"):
        return value
    if isinstance(value, dict):
        return {name: _mapped(item, change, kept, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change, kept, key) for item in value]
    return change(key, value)


def _top(replacement: Any) -> Attack:
    """Replace each field of the resource by one value, except the fields that identify the resource."""

    def attack(tree: Tree, path: str) -> Wire | None:
        kept = ("@odata.id", "@odata.type", "Id", "Name")
        body = {key: value if key in kept else replacement for key, value in tree[path].items()}
        return {path: encoded(body)}

    return attack


def _links(change: Callable[[str], str]) -> Attack:
    def attack(tree: Tree, path: str) -> Wire | None:
        body = _relinked(tree[path], change, top=True)
        return None if body == tree[path] else {path: encoded(body)}

    return attack


def _relinked(value: Any, change: Callable[[str], str], *, top: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            key: change(item) if not top and key == "@odata.id" and isinstance(item, str) else _relinked(item, change)
            for key, item in value.items()
        }
    return [_relinked(item, change) for item in value] if isinstance(value, list) else value


def _doubled(tree: Tree, path: str) -> Wire | None:
    """List each member twice, with the count of either."""
    members = tree[path].get("Members")
    if not members:
        return None
    return {path: encoded({**tree[path], "Members": [*members, *members]})}


def _paged(tree: Tree, path: str) -> Wire | None:
    """Give one member a page, and count on each page what was listed so far."""
    members = tree[path].get("Members")
    if not members or len(members) < 2:
        return None
    wire: Wire = {}
    for number, member in enumerate(members):
        here = path if number == 0 else f"{path}/page{number}"
        page = {**tree[path], "Members": [member], "Members@odata.count": len(members)}
        if number + 1 < len(members):
            page["Members@odata.nextLink"] = f"{path}/page{number + 1}"
        wire[here] = encoded(page)
    return wire


def _endless(tree: Tree, path: str) -> Wire | None:
    if "Members" not in tree[path]:
        return None
    return {path: encoded({**tree[path], "Members@odata.nextLink": path})}


def _short(tree: Tree, path: str) -> Wire | None:
    """Leave the last member out, but count it."""
    members = tree[path].get("Members")
    if not members:
        return None
    return {path: encoded({**tree[path], "Members": members[:-1], "Members@odata.count": len(members)})}


def _deep(content: bytes) -> bytes:
    return content[:-1] + b', "Deep": ' + b"[" * 30 + b"]" * 30 + b"}"


def _deeper(content: bytes) -> bytes:
    return content[:-1] + b', "Deep": ' + b"[" * 600 + b"]" * 600 + b"}"


def _very_deep(content: bytes) -> bytes:
    return content[:-1] + b', "Deep": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


_WORDS = frozenset({"Health", "HealthRollup", "State", "PowerState", "ProcessorType", "ChassisType", "Severity"})
_TEXT_KEYS = frozenset({"Model", "SerialNumber", "SKU", "Manufacturer", "PartNumber", "Message", "ServiceLabel"})


def _spoiled(text: bytes) -> Attack:
    """Put bytes into the middle of each descriptive text."""

    def change(key: str, value: Any) -> Any:
        middle = len(value) // 2 if isinstance(value, str) else 0
        return f"{value[:middle]}@@@{value[middle + 1 :]}" if key in _TEXT_KEYS and isinstance(value, str) else value

    def attack(tree: Tree, path: str) -> Wire | None:
        found = _fields(change)(tree, path)
        return found and {one: (status, content.replace(b"@@@", text)) for one, (status, content) in found.items()}

    return attack


def _numbers(literal: bytes) -> Attack:
    def change(_key: str, value: Any) -> Any:
        return "@@@" if isinstance(value, int | float) and not isinstance(value, bool) else value

    def attack(tree: Tree, path: str) -> Wire | None:
        found = _fields(change)(tree, path)
        return found and {one: (status, content.replace(b'"@@@"', literal)) for one, (status, content) in found.items()}

    return attack


def _cased(change: Callable[[str], str]) -> Attack:
    return _fields(lambda key, value: change(value) if key in _WORDS and isinstance(value, str) else value)


HARMLESS: Mapping[str, Attack] = {
    "links end in a slash": _links(lambda path: f"{path}/"),
    "links have a fragment": _links(lambda path: f"{path}#/Status"),
    "links have an empty fragment": _links(lambda path: f"{path}#"),
    "links are absolute": _links(lambda path: f"https://192.0.2.1{path}"),
    "links are absolute with a port": _links(lambda path: f"https://bmc.example:443{path}/"),
    "links have two slashes": _links(lambda path: path.replace("/redfish/v1/", "/redfish/v1//")),
    "words in lower case": _cased(str.lower),
    "words in upper case": _cased(str.upper),
    "each member twice": _doubled,
    "a page for each member": _paged,
    "the last page leads to the first": _endless,
    "byte order mark": _content(lambda content: b"\xef\xbb\xbf" + content),
    "white space around": _content(lambda content: b"\r\n \t" + content + b"\r\n\r\n"),
    "UTF-16": _content(lambda content: content.decode().encode("utf-16")),
    "unknown field, deep": _content(_deep),
}

HARMFUL: Mapping[str, Attack] = {
    **{f"HTTP {code}": _status(code) for code in (204, 301, 400, 401, 403, 404, 405, 500, 501, 503)},
    "empty answer": _content(lambda _: b""),
    "HTML": _content(lambda _: b"<html><body>Please log in</body></html>"),
    "a list": _content(lambda content: b"[" + content + b"]"),
    "a number": _content(lambda _: b"7"),
    "an empty object": _content(lambda _: b"{}"),
    "cut off": _content(lambda content: content[: len(content) // 2]),
    "garbage at the end": _content(lambda content: content + b"}\x00\xff<!-- -->"),
    "too deep": _content(_deeper),
    "far too deep": _content(_very_deep),
    "a number of 5000 digits": _content(lambda content: content[:-1] + b', "X": ' + b"9" * 5000 + b"}"),
    "null fields": _top(None),
    "text in each field": _top("x"),
    "numbers in each field": _top(7),
    "lists in each field": _top([]),
    "lists of text in each field": _top(["x"]),
    "objects in each field": _top({}),
    "strange links in each field": _top({"@odata.id": 3}),
    "true in each field": _top(True),
    "null values": _fields(lambda _key, _value: None, kept=("@odata.id", "Id")),
    "numbers for values": _fields(lambda _key, _value: -3, kept=("@odata.id", "Id")),
    "empty texts": _fields(lambda _key, value: "" if isinstance(value, str) else value),
    "relative links": _links(lambda path: path.removeprefix("/redfish/v1/")),
    "links upwards": _links(lambda path: f"{path}/../../../../etc/passwd"),
    "links elsewhere": _links(lambda _: "https://198.51.100.7/login"),
    "links with a line break": _links(lambda path: f"{path}\r\nX-Evil: 1"),
    "links with a backslash": _links(lambda path: path.replace("/", "\\")),
    "links with signs that are no ASCII": _links(lambda path: f"{path}\u202e\u0000"),
    "a member less than counted": _short,
    "bytes that are no UTF-8": _spoiled(b"\xff\xfe"),
    "NUL": _spoiled(b"\\u0000"),
    "half a surrogate": _spoiled(b"\\ud800"),
    "escape sequences": _spoiled(b"\\u001b[2J"),
    "huge numbers": _numbers(b"1" + b"0" * 40),
    "infinite numbers": _numbers(b"1e999"),
    "no numbers": _numbers(b"NaN"),
    "negative numbers": _numbers(b"-1"),
    "field names in lower case": lambda tree, path: {
        path: encoded({key if "@" in key else key.lower(): value for key, value in tree[path].items()})
    },
}

OF_CHECK = {
    "gpu_count": "gpus",
    "gpus": "gpus",
    "hca_count": "hcas",
    "cpu_count": "cpu_count",
    "cpus": "cpus",
    "memory_size": "memory_gib",
    "dimms": "dimms",
    "drive_count": "drives",
    "drives": "drives",
    "root_disk": "drives",
    "psu": "psus",
    "fans": "fans",
    "bmc_health": "health",
}
"""Check → what of the inventory it judges."""
COUNTS = ("gpu_count", "hca_count", "drive_count")


def measured(inventory: Inventory, check: str) -> Any:
    """What the check looks at: a value, how many parts there are, or how each of them is."""
    found = getattr(inventory, OF_CHECK[check])
    if not isinstance(found, tuple) or check in ("root_disk", *COUNTS):
        return len(found) if isinstance(found, tuple) else round(found) if isinstance(found, float) else found
    return sorted(str(getattr(part, "healthy", None)) for part in found)


def violations(machine: Machine, after: Outcome, *, harmless: bool) -> list[str]:
    """Return what must not be: see the module's docstring."""
    before = machine.before
    if harmless:
        found, expected = ({(one.key, one.verdict) for one in each.findings} for each in (after, before))
        return [f"{key} {verdict.name}" for key, verdict in sorted(found ^ expected, key=str)]
    known = {_content(one) for one in before.findings}
    new = [one for one in after.findings if one.verdict not in GOOD and _content(one) not in known]
    failing = {one.check for one in before.findings if one.verdict is Verdict.FAIL}
    wrong = [
        f"new {one.verdict.name} {one.key}: {one.cause}"
        for one in new
        if (
            one.verdict is Verdict.FAIL
            and one.check not in ("bmc", *failing)
            and not _of_another_model(one, machine, after)
        )
        or (one.verdict is Verdict.WARN and one.check not in ("bmc_unread", "event_log"))
    ]
    if after.inventory is None or before.inventory is None:
        return wrong + ([] if new else ["no finding reports that the machine was not read"])
    unread = (*_passed_unread(before.inventory, after), *_silent(before.inventory, after, new))
    return [*wrong, *unread]


def _of_another_model(finding: Finding, machine: Machine, after: Outcome) -> bool:
    """Where the System gives no model, the one of the chassis counts, and the finding names it."""
    models = [one.inventory.model for one in (machine.before, after) if one.inventory is not None]
    return finding.check == "sku_model" and len(set(models)) > 1 and models[-1] in finding.cause


def _content(finding: Finding) -> tuple[object, ...]:
    """Return the text of a finding; how much is unread changes with each attack."""
    return finding.key, finding.verdict, finding.measured if finding.check == "bmc_unread" else None


def _passed_unread(before: Inventory, after: Outcome) -> Iterator[str]:
    assert after.inventory is not None
    verdicts = {one.check: one.verdict for one in after.findings}
    for check in OF_CHECK:
        was, now = measured(before, check), measured(after.inventory, check)
        doubted = check == "drive_count" and verdicts.get("root_disk") is Verdict.INCONCLUSIVE
        if verdicts.get(check) is Verdict.PASS and was != now and not doubted:
            yield f"{check} passes with {now} of {was}"


def _silent(before: Inventory, after: Outcome, new: list[Finding]) -> Iterator[str]:
    assert after.inventory is not None
    if not after.inventory.is_machine(Serial(before.serial)) and not new:
        yield f"another machine: {after.inventory.serial}"
    if new or after.inventory == before:
        return
    lost = [check for check in OF_CHECK if measured(before, check) != measured(after.inventory, check)]
    lost = [check for check in lost if check != "fans" or after.inventory.fans is not None]
    if lost:
        yield f"no finding reports what was not read for {', '.join(lost)}"
