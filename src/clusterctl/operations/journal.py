"""Verify, back up, restore and compact the journal of a site.

None of them opens the site's journal for a run: they work on one that is too damaged for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.job_folder import remove_folders
from clusterctl.edges.journal import Holder, backup, open_journal
from clusterctl.edges.journal.backup import require_idle
from clusterctl.edges.journal.database import Database
from clusterctl.edges.journal.retention import Outdated, outdated, remove
from clusterctl.edges.journal.verification import Verification, verify
from clusterctl.edges.site import load_site
from clusterctl.edges.site.load import check_journal_file
from clusterctl.fleet.errors import ConflictError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.payloads.runs import EvidenceRemoved
from clusterctl.operations.context import Invocation, new_run_id
from clusterctl.operations.job_files import outdated as outdated_jobs
from clusterctl.operations.operation import Control, Effect, Event, Outcome, Preview, Result, current_time
from clusterctl.ports.journal import WORKERS

BUSY = "a run has claims: what no event names, the node states and free pages wait for an idle moment"
LOST = "all events after the backup are lost; machines that changed since then need clusterctl revalidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRequest:
    """`folder`: the site. `file`: the backup, where there is one."""

    folder: Path
    file: Path = Path()


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One row or stream that is not what was written."""

    where: str
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalReport:
    """What a journal or backup holds.

    heads    stream → digest of its last event: equal heads are equal journals
    last     the time of the last event; empty where there is none
    damages  what is not what was written; empty: the journal is intact
    """

    events: int
    evidence: int
    nodes: int
    last: str
    heads: Mapping[str, str]
    damages: tuple[Damage, ...]

    @property
    def exit_code(self) -> int:
        return EnvironmentBrokenError.exit_code if self.damages else 0

    def __str__(self) -> str:
        last = f", the last of {self.last}" if self.last else ""
        return f"{self.events} events{last}; {self.nodes} nodes; {self.evidence} pieces of evidence"


def verify_journal(request: JournalRequest) -> JournalReport:
    """Read the whole journal and compare it with its digests, its chains and its states."""
    return _report(verify(_url(request)))


def back_up_journal(request: JournalRequest) -> JournalReport:
    """Write the journal to a new file while runs go on, encrypted where the site has keys. Return what it holds."""
    return _report(backup.back_up(_url(request), request.file, load_site(request.folder).keys))


def preview_restore(request: JournalRequest) -> Preview:
    """Return what the backup holds and what is lost. Raise `EnvironmentBrokenError` where it is damaged."""
    url = _url(request, missing=True)
    with backup.backup_copy(request.file, load_site(request.folder).keys) as (_, found):
        effects = [Effect(node="", text=f"the backup has {_report(found)}")]
    if backup.readable(url):
        effects.append(Effect(node="", text=f"the journal has {_report(verify(url))}"))
    else:
        effects.append(Effect(node="", text="the journal cannot be read: its file is kept under another name"))
    question = f"Replace the journal by {request.file}?"
    return Preview(operation="journal restore", question=question, effects=tuple(effects), warnings=(LOST,))


def run_restore(request: JournalRequest, control: Control) -> Result:
    """Replace the journal by the backup. Raise `ConflictError` where a run has claims."""
    control.require(preview_restore(request))
    found, moved = backup.restore(_url(request, missing=True), request.file, load_site(request.folder).keys)
    if moved is not None:
        control.on_event(Event(text=f"the damaged journal is kept as {moved}"))
    return Result(operation="journal restore", outcomes=(Outcome(node="", text=f"restored: {_report(found)}"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Surplus:
    """What a compaction removes.

    before    outputs of `outdated`, and evidence, from before then; None: the site keeps all outputs
    unnamed   evidence that no event names; None while a run has claims, of which it may be
    jobs      folders with what was collected of jobs
    """

    before: datetime | None
    outdated: Outdated
    unnamed: backup.Surplus | None
    jobs: tuple[Path, ...]


def preview_compact(request: JournalRequest) -> Preview:
    """Return what would be removed. Raise `ConflictError` where a run has claims and the site keeps all outputs."""
    with backup.opened(_url(request)) as database:
        return _compact_preview(request, _surplus(request, database))


def _surplus(request: JournalRequest, database: Database) -> _Surplus:
    site = load_site(request.folder)
    days = site.settings.evidence.pass_days
    before = None if days is None else _midnight() - timedelta(days=days)
    found = Outdated() if before is None else database.snapshot(lambda connection: outdated(connection, before))
    unnamed = None
    try:
        database.write(lambda connection: require_idle(connection, WORKERS))
        unnamed = database.snapshot(backup.surplus)
    except ConflictError:
        if before is None:
            raise
    return _Surplus(before=before, outdated=found, unnamed=unnamed, jobs=tuple(outdated_jobs(site)))


def _midnight() -> datetime:
    """Return the start of this day: a preview is the same until its end."""
    return current_time().replace(hour=0, minute=0, second=0, microsecond=0)


def _compact_preview(request: JournalRequest, found: _Surplus) -> Preview:
    settings = load_site(request.folder).settings
    effects: list[str] = []
    if found.before is not None:
        many = f"{len(found.outdated.digests)} pieces of passing evidence ({_size(found.outdated.bytes)})"
        age = f"older than {settings.evidence.pass_days} days"
        effects.append(f"remove the raw output of {many}, {age}; the digests stay")
    if found.unnamed is not None:
        many = f"{len(found.unnamed.digests)} pieces of evidence ({_size(found.unnamed.bytes)})"
        effects.append(f"remove {many} that no event names; compute all node states again")
    if found.jobs:
        days = settings.jobs.keep_days
        effects.append(f"remove {len(found.jobs)} collections of jobs, older than {days} days")
    return Preview(
        operation="journal compact",
        question="Compact the journal?",
        effects=tuple(Effect(node="", text=text) for text in effects),
        warnings=() if found.unnamed is not None else (BUSY,),
    )


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"


def run_compact(request: JournalRequest, control: Control) -> Result:
    """Remove old passing outputs. While no run has claims, also remove what no event names, compute the states again,
    and shrink the file. Raise `ConflictError` where a run has claims and the site keeps all outputs.
    """
    url, texts = _url(request), []
    with backup.opened(url) as database:
        found = _surplus(request, database)
        control.require(_compact_preview(request, found))
        if found.before is not None:
            count = _remove_outputs(url, database, found.before, found.outdated)
            texts.append(f"removed the raw output of {count} pieces of passing evidence")
    if found.unnamed is not None:
        removed = backup.compact(url)
        texts.append(f"removed {len(removed.digests)} pieces of evidence; all node states are computed again")
    if jobs := remove_folders(found.jobs):
        texts.append(f"removed {jobs} collections of jobs")
    return Result(operation="journal compact", outcomes=(Outcome(node="", text="; ".join(texts)),))


def _remove_outputs(url: str, database: Database, before: datetime, found: Outdated) -> int:
    """Remove outputs after the journal has an event of it: without one, `journal verify` calls a lost output damage."""
    if not found.digests:
        return 0
    invocation = Invocation(command="journal compact", run=new_run_id())
    with closing(open_journal(url, CLOCK, Holder(invocation.run, invocation.actor, invocation.command))) as journal:
        journal.append(
            [NewEvent(Stream.RUN, invocation.run, EvidenceRemoved(before=before, pieces=len(found.digests)))]
        )
    return remove(database, found)


def _url(request: JournalRequest, *, missing: bool = False) -> str:
    """Return the journal's URL. Raise `UsageError` where its file is not there, unless it may be `missing`."""
    site = load_site(request.folder)
    check_journal_file(site)
    url = site.journal_url()
    file = Path(url.removeprefix(backup.SQLITE))
    if url.startswith(backup.SQLITE) and not missing and not file.exists():
        raise UsageError("there is no journal yet", where=str(file), remedy="the first command that runs creates it")
    return url


def _report(found: Verification) -> JournalReport:
    damages = tuple(Damage(where=one.where, cause=one.cause, remedy=one.remedy) for one in found.damages)
    return JournalReport(
        events=found.events,
        evidence=found.evidence,
        nodes=found.nodes,
        last=found.last,
        heads=found.heads,
        damages=damages,
    )
