"""Claims keep two runs from one node: which run may act, what the other is given, and when a claim is free again."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text

from clusterctl.edges.journal import SqlJournal
from clusterctl.edges.journal.claims import HOSTS_OWN, LATEST, Owner, live, programs
from clusterctl.edges.journal.integrity import JournalDamagedError
from clusterctl.fleet.errors import ClaimLostError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Claim
from clusterctl.ports.journal import LEASE_S, WORKERS, Claims
from tests.edges.journal.claimant import claimant
from tests.edges.journal.conftest import Open
from tests.edges.journal.life import N1, added

NODES = [f"n{number}" for number in range(30)]
N2 = NodeId("n2")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


def pretend(url: str, **values: object) -> None:
    """Change the owner or expiry in the claims' rows."""
    engine = create_engine(url)
    settings = ", ".join(f"{name} = :{name}" for name in values)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE claim SET {settings}"), values)
    engine.dispose()


def test_two_programs_that_claim_at_once_get_every_node_once(book: SqlJournal, url: str) -> None:
    """Each node is granted to one of two processes and refused to the other, with distinct growing tokens."""
    with claimant(url, "a", NODES) as one, claimant(url, "b", NODES[::-1]) as other:
        one.claim()
        other.claim()
        first, second = one.answer(), other.answer()
        assert set(first["granted"]) | set(second["granted"]) == set(NODES)
        assert set(first["granted"]) == set(second["refused"])
        assert set(second["granted"]) == set(first["refused"])
        tokens = [*first["granted"].values(), *second["granted"].values()]
        assert len(set(tokens)) == len(NODES)


def test_a_refusal_has_everything_about_the_owner(book: SqlJournal, url: str) -> None:
    """Command, operator, run, process, machine, and since when."""
    with claimant(url, "a", ["n1"]) as holder:
        holder.claim()
        holder.answer()
        reported = book.claim([N1], "r1").refused[N1]
        where = f"run a, pid {holder.process.pid} on {socket.gethostname()}"
    assert reported.startswith(f"held by clusterctl burnin nightly of bob ({where}, since ")
    assert re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)$", reported)


def test_claims_on_nodes_are_counted_and_no_others(book: SqlJournal, url: str) -> None:
    """Runs, workers and the incidents are claimed as well: they are no nodes that a run acts on, nor are expired ones."""
    book.append([added("n1"), added("n2")])
    claims = book.claim([N1, N2, NodeId("run a"), NodeId("worker w1"), NodeId("incidents")], "r1")
    assert len(claims.granted) == 5
    assert book.health().claims == 2
    book.release([claims.granted[N1]])
    assert book.health().claims == 1
    pretend(url, expires_at=1.0)
    assert book.health().claims == 0


def test_what_was_released_is_free(opened: Open) -> None:
    """A node that a living run holds is refused; once it is released it is granted, and the old token is void."""
    first, second = opened("r1"), opened("r2")
    held = first.claim([N1], "r1").granted[N1]
    assert N1 in second.claim([N1], "r2").refused
    first.release([held])
    newer = second.claim([N1], "r2").granted[N1]
    assert newer.token > held.token
    first.release([held])
    assert N1 in first.claim([N1], "r1").refused, "what is no longer ours was released"


def test_an_old_token_never_writes(opened: Open) -> None:
    """After a takeover every append of the old owner is refused with the new owner's name; the new owner's goes through."""
    first, second = opened("r1", lease_s=2.0), opened("r2", command="bootstrap", actor="alice")
    old = first.claim([N1, N2], "r1").granted
    first.release([old[N1]])
    new = second.claim([N1], "r2").granted[N1]
    for claim in (old[N1], Claim(N1, "r1", 0), Claim(N1, "r1", new.token + 1)):
        with pytest.raises(ClaimLostError, match="held by clusterctl bootstrap of alice"):
            first.append([added()], claim=claim)
    assert not list(first.history(Stream.NODE, N1))
    second.append([added()], claim=new)
    first.append([added("n2")], claim=old[N2])


@pytest.mark.parametrize("reaped", [False, True])
def test_a_killed_local_owner_is_taken_over_at_once(book: SqlJournal, url: str, reaped: bool) -> None:
    """Its claim has not expired, but its process is certainly gone, even while its parent has not noticed."""
    with claimant(url, "a", ["n1"]) as holder:
        holder.claim()
        token = holder.answer()["granted"]["n1"]
        holder.process.kill()
        os.waitid(os.P_PID, holder.process.pid, os.WEXITED | (0 if reaped else os.WNOWAIT))
        taken = book.claim([N1], "r1").granted[N1]
    assert taken.token > token
    with pytest.raises(ClaimLostError):
        book.append([added()], claim=Claim(N1, "a", token))


def test_what_a_killed_owner_held_is_freed_by_the_next_claim(book: SqlJournal, url: str) -> None:
    """Also nodes that are no longer asked for, because they have arrived: no claim stays in a dead run's name."""
    with claimant(url, "a", ["n1", "n2"]) as holder:
        holder.claim()
        token = holder.answer()["granted"]["n2"]
        holder.process.kill()
        holder.process.wait()
        book.claim([N1], "r1")
    with pytest.raises(ClaimLostError):
        book.append([added("n2")], claim=Claim(N2, "a", token))
    engine = create_engine(url)
    with engine.connect() as connection:
        held = connection.execute(text("SELECT node, run FROM claim WHERE run <> ''")).all()
    engine.dispose()
    assert held == [("n1", "r1")]


def test_a_run_that_another_worker_goes_on_with_keeps_its_claims(opened: Open) -> None:
    """Its first worker's machine crashed and is back, where it is known to be dead: only what that one had is freed."""
    second = opened("r1", owner=Owner("other", 4, "1", "boot", "machine"))
    held = second.claim([N1], "r1").granted
    opened("r1", owner=replace(Owner.this(), pid=2**22, started="1")).claim([N2], "r1")
    claims = opened("r2").claim([N1, N2], "r2")
    assert (list(claims.refused), list(claims.granted)) == ([N1], [N2])
    assert second.renew(held.values()) == {}


def test_another_machines_owner_is_waited_for(opened: Open, url: str) -> None:
    """Another host cannot know whether the owner lives: only its expiry frees the node. The database's clock decides."""
    first, second = opened("r1"), opened("r2")
    first.claim([N1], "r1")
    pretend(url, host="elsewhere", boot=f"another {HOSTS_OWN}", machine="another", pid=1)
    assert "pid 1 on elsewhere" in second.claim([N1], "r2").refused[N1]
    pretend(url, expires_at=1.5)
    assert N1 in second.claim([N1], "r2").granted


def test_a_reboot_is_distinguished_from_another_machine(opened: Open, url: str) -> None:
    """A claim from before this machine's reboot is free, though a process of the same number may run now; one of a
    machine that merely has the same host name is not.
    """
    first, second = opened("r1"), opened("r2")
    first.claim([N1], "r1")
    pretend(url, boot=f"an earlier boot {HOSTS_OWN}", machine="another machine's id")
    assert N1 in second.claim([N1], "r2").refused
    pretend(url, machine=Owner.this().machine)
    assert (N1 in second.claim([N1], "r2").granted) == bool(Owner.this().machine)


def test_a_later_process_of_the_same_number_is_another_owner() -> None:
    """Alive is who started when the owner did; a number that was given again is not."""
    here = Owner.this()
    assert here.started.isdigit()
    assert not here.dead
    assert Owner(here.host, 2**22 + 1, here.started, here.boot, here.machine).dead, "no process has such a number"
    assert Owner(here.host, here.pid, "1", here.boot, here.machine).dead
    assert not Owner(here.host, here.pid, "1").dead, "an owner without a boot id cannot be judged"
    assert not Owner(here.host, here.pid, "1", "", here.machine or "m").dead, "nor by its machine alone"
    assert not Owner(here.host, here.pid, "", here.boot, here.machine).dead, "nor one without a start"


def test_a_process_without_a_descriptor_left_judges_no_owner_dead() -> None:
    """It cannot read of the owner whether it lives: the claim stays until it expires."""
    ask = """
import os, resource, sys
from clusterctl.edges.journal.claims import Owner
owner = Owner.this()
resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), 4096))
opened = []
try:
    while True:
        opened.append(os.dup(0))
except OSError:
    print(owner.dead, Owner.this().dead)
"""
    assert (
        subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
        == "False False\n"
    )


@needs_root
def test_a_process_that_proc_hides_is_not_dead() -> None:
    """With `hidepid` a user does not see the processes of others (proc(5)); one that is gone is seen to be."""
    ask = """
import os, pathlib, subprocess, sys
from clusterctl.edges.journal.claims import Owner
subprocess.run(["mount", "-t", "proc", "-o", "hidepid=invisible", "proc", "/proc"], check=True)
here = Owner.this()
parent = Owner(here.host, os.getppid(), here.started, here.boot)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(pathlib.Path(f"/proc/{parent.pid}/stat").exists(), parent.dead, Owner(here.host, 2**22 + 1, "1", here.boot).dead)
"""
    command = ["unshare", "--mount", sys.executable, "-c", ask]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False False True\n"


def test_renewal_reports_what_was_lost(opened: Open, url: str) -> None:
    """Ours are prolonged, even when they had expired and no run wanted them; for the others the owner is given."""
    first, second = opened("r1", lease_s=3600.0), opened("r2", command="bootstrap", actor="alice")
    claims = first.claim([N1, N2], "r1").granted
    pretend(url, expires_at=1.5)
    stolen = second.claim([N2], "r2").granted[N2]
    lost = first.renew(claims.values())
    assert list(lost) == [N2]
    assert lost[N2].startswith("held by clusterctl bootstrap of alice (run r2,")
    assert N1 in second.claim([N1], "r2").refused
    first.append([added()], claim=claims[N1])
    second.release([stolen])
    assert first.renew([claims[N2]]) == {N2: "held by another run since"}


def test_each_claim_is_renewed_by_its_own_token(opened: Open) -> None:
    """Many at once, one of them with another node's token: that one is lost, the others are not; none asks nothing."""
    book = opened("r1")
    claims = book.claim([NodeId(name) for name in NODES], "r1").granted
    assert book.renew([]) == {}
    assert book.renew(claims.values()) == {}
    mixed = Claim(N1, "r1", claims[N2].token)
    assert list(book.renew([mixed, *(claim for node, claim in claims.items() if node != N1)])) == [N1]
    book.release([mixed])
    assert book.renew(claims.values()) == {}, "what was another's token released a claim"


def test_claims_last_as_long_as_the_site_has_it(opened: Open, url: str) -> None:
    """The expiry lies `lease_s` after the database's now, to parts of a second."""
    book = opened("r1", lease_s=2.5)
    book.claim([N1], "r1")
    engine = create_engine(url)
    with engine.connect() as connection:
        since, expires_at = connection.execute(text("SELECT since, expires_at FROM claim")).one()
    engine.dispose()
    assert expires_at - since == pytest.approx(2.5, abs=0.01)


def test_rows_of_old_claims_go_and_tokens_grow_all_the_same(opened: Open, url: str) -> None:
    """A row that has been free for a day is deleted with the next claim; what was held under it writes nothing."""
    mine = opened("r1")
    old = mine.claim([NodeId("run r0"), NodeId("n1")], "r1").granted
    mine.release(old.values())
    mine.claim([NodeId("n3")], "r1")
    assert claimed_rows(url) == {"run r0", "n1", "n3"}
    mine.release(mine.claim([NodeId("n3")], "r1").granted.values())
    pretend(url, since=1000.0)
    newest = mine.claim([NodeId("n2")], "r1").granted[NodeId("n2")]
    assert claimed_rows(url) == {"n2"}
    again = mine.claim([NodeId("run r0"), NodeId("n1")], "r2").granted
    assert min(claim.token for claim in again.values()) > newest.token > max(claim.token for claim in old.values())
    assert set(mine.renew(old.values())) == set(old)


def claimed_rows(url: str) -> set[str]:
    engine = create_engine(url)
    with engine.begin() as connection:
        rows = set(connection.execute(text("SELECT node FROM claim")).scalars())
    engine.dispose()
    return rows


def test_an_empty_request_claims_and_releases_none(opened: Open) -> None:
    book = opened("r1")
    held = book.claim([N1], "r1").granted
    assert book.claim([], "r1") == Claims({}, {})
    book.release([])
    assert book.renew(held.values()) == {}


@pytest.mark.parametrize(("damage", "where"), [({"token": "x"}, "claims"), ({"pid": "x"}, "node n1")])
def test_a_number_that_is_none_is_damage(book: SqlJournal, url: str, damage: dict[str, str], where: str) -> None:
    """SQLite keeps any text in a column of numbers; PostgreSQL refuses it."""
    if not url.startswith("sqlite"):
        pytest.skip("PostgreSQL refuses a text in a column of numbers")
    book.claim([N1], "r1")
    pretend(url, **damage)
    with pytest.raises(JournalDamagedError) as refused:
        book.owners("") if "pid" in damage else book.claim([N2], "r1")
    assert (refused.value.where, bool(refused.value.remedy)) == (where, True)


def test_the_owners_of_claims_by_what_they_begin_with(opened: Open, url: str) -> None:
    """In the order of their subjects, expired ones and dead ones as no longer live, released ones not at all."""
    subjects = [NodeId(name) for name in ("run-9", "run-1", "run-5", "run_7", "n1")]
    book = opened("r1", actor="alice")
    claims = book.claim(subjects, "r1").granted
    book.release([claims[NodeId("run-5")]])
    found = book.owners("run-")
    assert [(owner.subject, owner.run, owner.pid, owner.live) for owner in found] == [
        ("run-1", "r1", os.getpid(), True),
        ("run-9", "r1", os.getpid(), True),
    ]
    assert [owner.subject for owner in book.owners("run_")] == ["run_7"], "a character of patterns stood for another"
    assert (found[0].expires - found[0].since).total_seconds() == pytest.approx(LEASE_S, abs=0.01)
    pretend(url, pid_started="1")
    assert [owner.live for owner in book.owners("run-")] == [False, False], "the process is gone"
    pretend(url, pid_started=Owner.this().started, expires_at=1.5)
    assert [owner.live for owner in book.owners("run-")] == [False, False], "the claims have expired"


def test_live_owners_are_named_once(opened: Open, url: str) -> None:
    """As restore asks before it replaces the journal: neither expired owners nor dead ones, whose claims end with it."""
    book = opened("r1", actor="alice", command="bootstrap")
    book.release([book.claim([N1, N2, NodeId("n3")], "r1").granted[NodeId("n3")]])
    (alive,) = living(url)
    assert alive.startswith(f"held by clusterctl bootstrap of alice (run r1, pid {os.getpid()} on ")
    pretend(url, expires_at=1.5)
    assert living(url) == ()
    book.claim([N1], "r1")
    pretend(url, pid_started="1")
    assert living(url) == ()
    assert book.owners("n") == (), "the claims of a process that is gone were kept"


def test_a_rest_keeps_a_node_from_every_run_and_has_no_owner(opened: Open, url: str) -> None:
    """As a run that could not be carried out is tried again later; a release without a rest frees at once."""
    book = opened("r1")
    granted = book.claim([N1, N2], "r1").granted
    book.release([granted[N1]], rest_s=30.0)
    book.release([granted[N2]])
    claims = opened("r2").claim([N1, N2], "r2")
    assert (set(claims.granted), claims.refused) == ({N2}, {N1: "free, but only after a rest"})
    pretend(url, expires_at=1.5)
    assert N1 in opened("r3").claim([N1], "r3").granted


def test_programs_that_run_are_named_and_others_are_not(opened: Open, url: str) -> None:
    """Workers by their names, runs by theirs: before the journal is brought up to a newer schema."""
    opened("w", command="worker").claim([NodeId(f"{WORKERS}w1")], "w")
    opened("r1").claim([N1, N2], "r1")
    here = f"(pid {os.getpid()} on {socket.gethostname()})"
    assert asked(url, programs) == (f"run r1 {here}", f"{WORKERS}w1 {here}")
    assert len(asked(url, live)) == 2
    (other,) = asked(url, partial(live, but=WORKERS))
    assert "(run r1," in other
    pretend(url, expires_at=1.5)
    assert asked(url, programs) == ()


def test_the_machines_id_counts_in_its_first_namespace_alone() -> None:
    """A container may have the id of another machine, and its processes outlive no reboot."""
    first = Path("/proc/self/ns/pid").readlink() == Path(HOSTS_OWN)
    assert bool(Owner.this().machine) == (first and bool(Path("/etc/machine-id").read_text().strip()))


def living(url: str) -> tuple[str, ...]:
    return asked(url, live)


def asked(url: str, question: Callable[[Connection], tuple[str, ...]]) -> tuple[str, ...]:
    engine = create_engine(url)
    with engine.begin() as connection:
        found = question(connection)
    engine.dispose()
    return found


def test_a_worker_that_lost_its_run_claims_and_renews_nothing(opened: Open) -> None:
    """What it claims for the run stands under its claim on the run itself, and lasts no longer."""
    first, run = opened("r1"), NodeId("run r1")
    under = first.claim([run], "r1").granted[run]
    worker = opened("r1", under=under)
    held = worker.claim([N1], "r1").granted[N1]
    assert worker.renew([held]) == {}
    first.release([under])
    assert worker.renew([held]) == {N1: "held by another run since"}
    with pytest.raises(ClaimLostError):
        worker.claim([N2], "r1")
    assert N2 in opened("r2").claim([N2], "r2").granted


def test_renewal_prolongs_the_run_with_its_nodes(opened: Open, url: str) -> None:
    first, run = opened("r1"), NodeId("run r1")
    worker = opened("r1", under=first.claim([run], "r1").granted[run])
    held = worker.claim([N1], "r1").granted[N1]
    pretend(url, expires_at=1.5)
    assert worker.renew([held]) == {}
    assert [(owner.subject, owner.live) for owner in first.owners("")] == [("n1", True), ("run r1", True)]


def test_a_process_is_here_by_its_boot_and_its_namespace() -> None:
    """A process id of another machine, or of another container, means nothing here."""
    here = Owner.this()
    assert here.is_here
    assert not Owner(here.host, here.pid, here.started, f"another {HOSTS_OWN}", here.machine).is_here
    assert not Owner(here.host, here.pid, here.started).is_here


def test_a_refused_node_refuses_no_other(opened: Open) -> None:
    """What follows it in the same request is granted."""
    first, second = opened("r1"), opened("r2")
    first.claim([N1], "r1")
    claims = second.claim([N1, N2], "r2")
    assert (list(claims.refused), list(claims.granted)) == ([N1], [N2])


@pytest.mark.parametrize("damage", [{"since": -1.0}, {"expires_at": LATEST}])
def test_a_claim_that_nothing_can_have_written(book: SqlJournal, url: str, damage: dict[str, float]) -> None:
    """It is damage, with a remedy: neither an owner nor a free node."""
    book.claim([N1], "r1")
    pretend(url, **damage)
    with pytest.raises(JournalDamagedError) as refused:
        book.owners("")
    assert (refused.value.where, bool(refused.value.remedy)) == ("node n1", True)
    with pytest.raises(JournalDamagedError):
        book.claim([N1], "r1")
