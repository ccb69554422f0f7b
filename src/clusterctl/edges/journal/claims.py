"""Claims: the owner of each node's changes. Rows, not events; expiry by the database's clock; with fencing tokens."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    column,
    delete,
    extract,
    func,
    insert,
    select,
    text,
    tuple_,
    update,
    values,
)

from clusterctl.edges.journal.integrity import RESTORE, JournalDamagedError
from clusterctl.edges.journal.tables import claim as table
from clusterctl.edges.journal.tables import node_state
from clusterctl.fleet.errors import ClaimLostError
from clusterctl.fleet.node import NodeId
from clusterctl.ports.journal import LEASE_S, WORKERS, Claim, ClaimOwner, Claims

HOSTS_OWN = "pid:[4026531836]"
"""The machine's first pid namespace (PROC_PID_INIT_INO in the kernel): what runs in it ends with the machine's boot."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process.

    started  when it started, in clock ticks since boot (proc(5), stat field 22): with `pid` and `boot` it is unique
    boot     the kernel's boot id and the pid namespace, in which `pid` means this process and no other
    machine  the machine's id (machine-id(5)), where the process would not outlive a reboot; empty in a container

    Without `started` or `boot`, as where no file could be opened, nothing is known of the process.
    """

    host: str
    pid: int
    started: str
    boot: str = ""
    machine: str = ""

    @classmethod
    def this(cls) -> Owner:
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _started(pid), _boot(), _machine())

    @property
    def is_here(self) -> bool:
        """True where `pid` means a process of this very boot and of this process's pid namespace."""
        return bool(self.boot) and self.boot == Owner.this().boot

    @property
    def dead(self) -> bool:
        """True only where it is certain: a process of this very boot that is gone, or one from before the reboot."""
        here = Owner.this()
        if not (self.started and self.boot and here.boot):
            return False
        if self.boot == here.boot:
            return _has_ended(self.pid, self.started)
        return bool(self.machine) and (self.host, self.machine) == (here.host, here.machine)


def _started(pid: int) -> str:
    """Return the start of a process, "-" of a zombie; empty where it cannot be read."""
    state, *fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split() or ("",)
    return "-" if state in ("Z", "X") else fields[18] if fields else ""


def _has_ended(pid: int, started: str) -> bool:
    """Return whether the process is certainly gone. One that cannot be seen is not: /proc may hide those of other users
    (hidepid, proc(5)), and there may be no descriptor to read it with.
    """
    found = _started(pid)
    if found:
        return found != started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _boot() -> str:
    boot_id = _text("/proc/sys/kernel/random/boot_id")
    namespace = _namespace()
    return f"{boot_id} {namespace}" if boot_id and namespace else ""


def _machine() -> str:
    return _text("/etc/machine-id") if _namespace() == HOSTS_OWN else ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _text(path: str) -> str:
    """Return the content of a small file of the system; empty where it is absent."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


_TEXTS = ("node", "run", "host", "pid_started", "boot", "machine", "actor", "command")
_OWNER = (table.c.run, table.c.host, table.c.pid, table.c.pid_started, table.c.boot, table.c.machine)
"""The columns of a claim's owner."""
FORGOTTEN_S = 86400.0
"""A free row is deleted so long after its last claim. The row with the newest token stays: tokens only grow."""
LATEST = 253402300800
"""The year 10000 in seconds since the epoch."""
_SQLITE_NOW = text("SELECT (julianday('now') - 2440587.5) * 86400.0")


@dataclass(frozen=True, slots=True)
class Holder:
    """The owner of claims: a run and its process.

    actor    the user, and
    command  the command (`bootstrap`), named to other runs that want the node
    lease_s  how long a claim lasts without renewal
    under    the claim on the run itself, where a worker carries it out: who has lost it claims, renews and appends
             nothing more
    """

    run: str = ""
    actor: str = "clusterctl"
    command: str = ""
    owner: Owner = field(default_factory=Owner.this)
    lease_s: float = LEASE_S
    under: Claim | None = None


def take(connection: Connection, nodes: Iterable[NodeId], holder: Holder) -> Claims:
    """Claim what is free, expired, ours, or held by a process that is certainly dead; what the dead hold is freed."""
    if holder.under is not None:
        check(connection, holder.under)
    asked = tuple(dict.fromkeys(nodes))
    now = _now(connection)
    _bury(connection)
    rows = {row["node"]: row for row in _rows(connection, table.c.node.in_(_named(asked)))} if asked else {}
    token = _last_token(connection)
    granted: dict[NodeId, Claim] = {}
    refused: dict[NodeId, str] = {}
    for node in asked:
        row = rows.get(node)
        if row is not None and row["run"] != holder.run and row["expires_at"] > now:
            refused[node] = in_words(row)
            continue
        token += 1
        granted[node] = Claim(node, holder.run, token)
    if granted:
        common = _values(holder, now)
        connection.execute(delete(table).where(table.c.node.in_(_named(tuple(granted)))))
        connection.execute(
            insert(table), [{"node": claim.node, "token": claim.token, **common} for claim in granted.values()]
        )
        old = (table.c.run == "", table.c.since < now - FORGOTTEN_S, table.c.token < token)
        connection.execute(delete(table).where(*old))
    return Claims(granted, refused)


def _bury(connection: Connection) -> None:
    """Release the claims of dead processes, also on nodes that no run asks for any more (gold ones).

    A run's living process keeps its own: a run that another worker goes on with has had several.
    """
    held = connection.execute(select(*_OWNER).where(table.c.run != "").distinct()).mappings().all()
    dead = {(row["run"], owner) for row in held if _is_whole(row) and (owner := _owner(row)).dead}
    if dead:
        rows = _rows(connection, table.c.run.in_({run for run, _ in dead}))
        rows = [row for row in rows if (row["run"], _owner(row)) in dead]
        release(connection, [Claim(row["node"], row["run"], row["token"]) for row in rows])


def check(connection: Connection, claim: Claim) -> None:
    """Raise `ClaimLostError` unless the claim is still the newest on its node."""
    for error in lost(connection, [claim]).values():
        raise error


def lost(connection: Connection, claims: Iterable[Claim]) -> Mapping[Claim, ClaimLostError]:
    """Return those of the claims that are not the newest on their nodes any more, each with its error."""
    asked = tuple(dict.fromkeys(claims))
    if not asked:
        return {}
    nodes = tuple({claim.node for claim in asked})
    rows = {row["node"]: row for row in _rows(connection, table.c.node.in_(_named(nodes)))}
    found = {}
    for claim in asked:
        row = rows.get(claim.node)
        if row is None or row["token"] != claim.token:
            remedy = "let that run finish, then run again"
            found[claim] = ClaimLostError(_taken(row), where=claim.node, remedy=remedy)
    return found


def renew_under(connection: Connection, claims: Iterable[Claim], holder: Holder) -> Mapping[NodeId, str]:
    """Renew the claims and, with them, the claim on the run that they are taken under: where that is lost, so are all.

    Both in one transaction: no claim lasts longer than the claim on the run.
    """
    asked = tuple(claims)
    if holder.under is None:
        return renew(connection, asked, holder.lease_s)
    lost = renew(connection, [holder.under], holder.lease_s)
    if lost:
        return dict.fromkeys((claim.node for claim in asked), lost[holder.under.node])
    return renew(connection, asked, holder.lease_s)


def renew(connection: Connection, claims: Iterable[Claim], lease_s: float) -> Mapping[NodeId, str]:
    """Push the expiry of those that are still ours, expired ones too; return the reasons for the others, as text."""
    asked = tuple(claims)
    if not asked:
        return {}
    expires = _now(connection) + lease_s
    statement = update(table).where(_ours(asked)).values(expires_at=expires).returning(table.c.node)
    kept = set(connection.execute(statement).scalars())
    lost = [claim.node for claim in asked if claim.node not in kept]
    if not lost:
        return {}
    rows = {row["node"]: row for row in _rows(connection)}
    return {node: _taken(rows.get(node)) for node in lost}


def release(connection: Connection, claims: Iterable[Claim], rest_s: float = 0.0) -> None:
    """Free the rows, each with a newer token: tokens only grow, and what is released no longer writes.

    `rest_s`: seconds for which a row has no owner and no run gets it; a row of no rest is free at once.
    """
    held = tuple(claims)
    if not held:
        return
    expires = _now(connection) + rest_s if rest_s > 0 else 0
    freed = {"run": "", "token": table.c.token + 1, "expires_at": expires}
    connection.execute(update(table).where(_ours(held)).values(freed))


def _ours(claims: Sequence[Claim]) -> ColumnElement[bool]:
    """Return the rows on which these claims are still the newest: one statement for all, up to 16,000 (both engines
    bind two values for each). A table of their own, since PostgreSQL would compare each row with a long list's every
    item.
    """
    columns = (column("node", table.c.node.type), column("token", table.c.token.type))
    asked = values(*columns, name="asked").data([(claim.node, claim.token) for claim in claims]).cte()
    return tuple_(table.c.node, table.c.token).in_(select(asked))


def _named(nodes: Sequence[NodeId]) -> Select[tuple[str]]:
    """Return the names as a query of one column: one statement for all, up to 32,000."""
    asked = values(column("node", table.c.node.type), name="named").data([(node,) for node in nodes]).cte()
    return select(asked.c.node)


def live(connection: Connection, but: str = "") -> tuple[str, ...]:
    """Return the claim owners with unexpired claims, as text, and release the claims of dead processes.

    but: claims on subjects that begin so do not count
    """
    now = _now(connection)
    _bury(connection)
    rows = _rows(connection, table.c.run != "")
    counted = [row for row in rows if not but or not row["node"].startswith(but)]
    return tuple(sorted({in_words(row) for row in counted if row["expires_at"] > now}))


def owners(connection: Connection, prefix: str) -> tuple[ClaimOwner, ...]:
    """Return the owners of claims on subjects that begin so, by subject."""
    now = _now(connection)
    rows = _rows(connection, table.c.node.startswith(prefix, autoescape=True), table.c.run != "")
    found = (_claim_owner(row, row["expires_at"] > now and not _owner(row).dead) for row in rows)
    return tuple(sorted(found, key=lambda owner: owner.subject))


def _claim_owner(row: RowMapping, live: bool) -> ClaimOwner:
    return ClaimOwner(
        subject=row["node"],
        run=row["run"],
        host=row["host"],
        pid=row["pid"],
        since=datetime.fromtimestamp(row["since"], UTC),
        expires=datetime.fromtimestamp(row["expires_at"], UTC),
        live=live,
    )


def programs(connection: Connection) -> tuple[str, ...]:
    """Return the programs with an unexpired claim, workers by their names; reads only."""
    found = set()
    for owner in owners(connection, ""):
        if owner.live:
            worker = owner.subject.startswith(WORKERS)
            found.add(f"{owner.subject if worker else f'run {owner.run}'} (pid {owner.pid} on {owner.host})")
    return tuple(sorted(found))


def count(connection: Connection) -> int:
    """Return the number of nodes with an unexpired claim; claims on runs, workers and the site as a whole are none."""
    held = (
        select(func.count())
        .select_from(table.join(node_state, table.c.node == node_state.c.node))
        .where(table.c.run != "", table.c.expires_at > _now(connection))
    )
    return int(connection.execute(held).scalar_one())


def in_words(row: RowMapping) -> str:
    """Return the claim owner, so that an operator knows what to wait for."""
    if not row["run"]:
        return "free, but only after a rest"
    what = f"clusterctl {row['command']}" if row["command"] else "another clusterctl"
    actor = f" of {row['actor']}" if row["actor"] else ""
    since = f", since {datetime.fromtimestamp(row['since'], UTC):%Y-%m-%d %H:%M:%S} UTC" if row["since"] else ""
    return f"held by {what}{actor} (run {row['run']}, pid {row['pid']} on {row['host']}{since})"


def _taken(row: RowMapping | None) -> str:
    """Return why a claim is not ours any more."""
    return in_words(row) if row is not None and row["run"] else "held by another run since"


def _rows(connection: Connection, *conditions: ColumnElement[bool]) -> Sequence[RowMapping]:
    """Return the claims that meet the conditions. Raise `JournalDamagedError` for one that cannot have been written."""
    rows = connection.execute(select(table).where(*conditions)).mappings().all()
    for row in rows:
        times = all(isinstance(row[name], int | float) and 0 <= row[name] < LATEST for name in ("since", "expires_at"))
        if not (times and _is_whole(row)):
            raise JournalDamagedError("the claim cannot be read", where=f"node {row['node']}", remedy=RESTORE)
    return rows


def _is_whole(row: RowMapping) -> bool:
    """Return whether the texts and numbers of the row are such."""
    texts = all(isinstance(row[name], str) for name in _TEXTS if name in row)
    return texts and all(isinstance(row[name], int) for name in ("pid", "token") if name in row)


def _last_token(connection: Connection) -> int:
    """Return the newest token of all; 0 where there is none."""
    token = connection.execute(select(func.coalesce(func.max(table.c.token), 0))).scalar_one()
    if not isinstance(token, int):
        raise JournalDamagedError("the newest claim cannot be read", where="claims", remedy=RESTORE)
    return token


def _owner(row: RowMapping) -> Owner:
    return Owner(row["host"], row["pid"], row["pid_started"], row["boot"], row["machine"])


def _values(holder: Holder, now: float) -> dict[str, object]:
    owner = asdict(holder.owner)
    owner["pid_started"] = owner.pop("started")
    expiry = {"since": now, "expires_at": now + holder.lease_s}
    return {**owner, **expiry, "run": holder.run, "actor": holder.actor, "command": holder.command}


def _now(connection: Connection) -> float:
    """Return seconds since the epoch by the database's clock."""
    if connection.dialect.name == "sqlite":
        return float(connection.execute(_SQLITE_NOW).scalar_one())
    return float(connection.execute(select(extract("epoch", func.clock_timestamp()))).scalar_one())
