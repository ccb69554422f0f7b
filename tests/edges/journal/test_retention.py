"""Old output of what passed is removed; what is bad, in use or new stays, and damage is never taken for retention."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sqlalchemy import update

from clusterctl.edges.journal import SqlJournal
from clusterctl.edges.journal.retention import Outdated, outdated, remove
from clusterctl.edges.journal.tables import evidence
from clusterctl.edges.journal.verification import verify
from clusterctl.fleet.codec import report_to_data
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Evidence, Finding, Origin, Report, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.payloads.hardware import FabricCountersRead
from clusterctl.fleet.payloads.runs import EvidenceRemoved
from tests.edges.journal.conftest import Open
from tests.edges.journal.life import AT, added
from tests.events import new_event

LATER = AT + timedelta(days=2)


def piece(name: str, days: int = 0) -> Evidence:
    """Evidence that was read `days` days after `AT`."""
    return Evidence(name, "n1", AT + timedelta(days=days), Origin.REAL, name.encode() * 100)


def reported(good: tuple[Evidence, ...], bad: tuple[Evidence, ...] = (), step: str = "burnin") -> NewEvent:
    """A report of n1 with a finding that passed, and one that did not."""
    findings = [replace(passed("x", "fine"), evidence=tuple(one.digest for one in good))]
    if bad:
        named = tuple(one.digest for one in bad)
        warned = Finding(
            check="y", verdict=Verdict.WARN, code=Code.GPU_ECC_UNCORRECTABLE, cause="seen", remedy="repair"
        )
        findings.append(replace(warned, evidence=named))
    report = report_to_data(Report(step, "", tuple(findings), frozenset({Origin.REAL})))
    return new_event("node", "n1", Kind.REPORT_RECORDED, {"report": report}, tuple(one.digest for one in (*good, *bad)))


def read(fabric: Evidence, counters: Evidence) -> NewEvent:
    payload = FabricCountersRead(at=fabric.at, fabric=fabric.digest, counters=counters.digest, ports=4)
    return NewEvent(Stream.FABRIC, "counters", payload)


def found_in(book: SqlJournal) -> Outdated:
    return book._database.snapshot(lambda connection: outdated(connection, LATER))


def test_what_is_removed(opened: Open, url: str) -> None:
    """Only old output that all reports call passing, of reports that are superseded, and of readings but the last."""
    book = opened()
    old, shared, bad, used, new = piece("old"), piece("shared"), piece("bad"), piece("used"), piece("new", 3)
    before, last, unnamed, fault = piece("before"), piece("last"), piece("unnamed"), piece("fault")
    book.store([old, shared, bad, used, new, before, last, unnamed, fault])
    book.append([added("n1")])
    book.append([reported((old, shared, new), (bad,)), reported((old, fault)), reported((used,), (shared,))])
    book.append([read(fault, before), read(last, last)])
    book.append([new_event("part", "GPU1", Kind.ACT_OBSERVED, {"act": "log.clear", "result": "done"}, (fault.digest,))])
    found = found_in(book)
    assert set(found.digests) == {old.digest, before.digest}
    book.append([NewEvent(Stream.RUN, "r9", EvidenceRemoved(before=LATER, pieces=2))])
    assert remove(book._database, found) == 2
    assert book.evidence(old.digest) is None
    kept = (shared, bad, used, new, last, unnamed, fault)
    everything = [one.digest for one in (old, before, *kept)]
    assert tuple(book.evidences(everything).values()) == kept
    assert verify(url).damages == ()
    assert found_in(book).digests == ()


def test_what_a_run_names_meanwhile_is_kept(opened: Open) -> None:
    """A report that judges old output again, between the look and the removal, keeps it."""
    book = opened()
    book.store([piece("old"), piece("older")])
    book.append([added("n1"), reported((piece("old"), piece("older"))), reported(())])
    found = found_in(book)
    book.append([reported((), (piece("old"),), step="cable")])
    assert remove(book._database, found) == 1
    assert book.evidence(piece("old").digest) == piece("old")


def test_a_lost_output_is_damage(opened: Open, url: str) -> None:
    """Without an event of a removal, newer than it, or of a bad finding: `verify` reports each."""
    book = opened()
    good, new, bad = piece("good"), piece("new", 3), piece("bad")
    book.store([good, new, bad])
    book.append([added("n1"), reported((good, new), (bad,))])
    book._database.write(lambda connection: connection.execute(update(evidence).values(content=b"")))
    assert len(verify(url).damages) == 3
    book.append([NewEvent(Stream.RUN, "r9", EvidenceRemoved(before=LATER, pieces=1))])
    damaged = {damage.where for damage in verify(url).damages}
    assert damaged == {f"evidence {new.digest}", f"evidence {bad.digest}"}
