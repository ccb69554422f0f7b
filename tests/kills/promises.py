"""What must hold after every kill, and what at the end of all of them: in words, if it does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from clusterctl.fleet.event import Event, Kind, Stream
from lab.tests.lab_kit import eventually
from tests.e2e.promises import broken_promises, unfolded
from tests.e2e.site_kit import Site
from tests.events import data_of
from tests.kills.diary import lines_of
from tests.kills.hosts import sessions

EXPECTED_STATE = {"ansible", "ansible-for-hosts", "host_keys", "journal.db", "journal.db-wal", "journal.db-shm"}
SESSIONS_S = 300.0


def after_each(site: Site, diary: Path) -> Iterator[str]:
    """Nothing that was written is lost; nothing is half-written; nothing was done that was not intended."""
    yield from _lost(site, diary)
    yield from _unintended(diary)
    yield from _repeated(site)
    yield from unfolded(site)


def at_the_end(site: Site, diary: Path, temporary: Path, nodes: int) -> Iterator[str]:
    """All nodes are gold, every OS was written once, and nothing is left on controller or hosts."""
    yield from broken_promises(site, nodes)
    yield from after_each(site, diary)
    yield from _left_files(site, temporary)
    if not eventually(lambda: not list(sessions(site.lab.name)), SESSIONS_S):
        yield f"sessions are left on hosts: {list(sessions(site.lab.name))}"


def _lost(site: Site, diary: Path) -> Iterator[str]:
    """Every append that had returned is in the journal, and is what it was."""
    lines = [line for line in lines_of(diary) if "seq" in line]
    subjects = dict.fromkeys((line["stream"], line["subject"]) for line in lines)
    kept = {event.seq: event for event in _events(site, subjects)}
    for line in lines:
        event = kept.get(line["seq"])
        if event is None or (event.subject, event.kind.value) != (line["subject"], line["kind"]):
            yield f"event {line['seq']} ({line['kind']} of {line['subject']}) was written, then lost: now {event}"


def _events(site: Site, subjects: Iterable[tuple[str, str]]) -> Iterator[Event]:
    """Of each stream and subject."""
    with site.journal() as journal:
        for stream, subject in subjects:
            yield from journal.history(Stream(stream), subject)


def _unintended(diary: Path) -> Iterator[str]:
    """Each act on the world was in the journal as intended before it began, and once for each intent."""
    intended: set[tuple[str, str]] = set()
    for line in lines_of(diary):
        if line.get("act"):
            intended.add((line["act"], line["target"]))
        if line.get("effect"):
            act = (line["effect"], line["target"])
            if act not in intended:
                yield f"{act[0]} was done to {act[1]} without being intended"
            intended.discard(act)


def _repeated(site: Site) -> Iterator[str]:
    """No act that changes a machine for good is intended again before its result has been read."""
    open_acts: set[tuple[str, str]] = set()
    for event in site.events():
        act = (event.subject, str(data_of(event).get("act")))
        if event.kind is Kind.ACT_INTENDED and act[1].startswith("install."):
            if act in open_acts:
                yield f"{act[1]} was intended again for {act[0]} without a look at what came of the last one"
            open_acts.add(act)
        if event.kind is Kind.ACT_OBSERVED:
            open_acts.discard(act)


def _left_files(site: Site, temporary: Path) -> Iterator[str]:
    state = site.folder / "state"
    for path in state.iterdir():
        if path.name not in EXPECTED_STATE:
            yield f"a file was left: {path}"
    names = {node.name for node in site.states()}
    for path in (state / "host_keys").glob("*"):
        if path.name not in names:
            yield f"a file was left: {path}"
    for path in (*site.folder.glob(".*.part"), *site.folder.glob(".gold*"), *temporary.rglob("*")):
        if not path.is_dir():
            yield f"a file was left: {path}"
