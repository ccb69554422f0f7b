"""Verify, back up, restore and compact the journal of a site.

None of them opens the site's journal for a run: they work on one that is too damaged for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.job_folder import remove_folders
from clusterctl.edges.journal import backup
from clusterctl.edges.journal.verification import Verification, verify
from clusterctl.edges.site import load_site
from clusterctl.edges.site.load import check_journal_file
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.operations.job_files import outdated
from clusterctl.operations.operation import Control, Effect, Event, Outcome, Preview, Result

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


def preview_compact(request: JournalRequest) -> Preview:
    """Return what would be removed."""
    with backup.opened(_url(request)) as database:
        found = database.snapshot(backup.surplus)
    size = f"{found.bytes / 2**20:.1f} MiB"
    text = f"remove {len(found.digests)} pieces of evidence ({size}) that no event names; compute all node states again"
    effects = [Effect(node="", text=text)]
    site = load_site(request.folder)
    if jobs := outdated(site):
        days = site.settings.jobs.keep_days
        effects.append(Effect(node="", text=f"remove {len(jobs)} collections of jobs, older than {days} days"))
    return Preview(operation="journal compact", question="Compact the journal?", effects=tuple(effects))


def run_compact(request: JournalRequest, control: Control) -> Result:
    """Remove what no event names, compute the states again, shrink the file. Raise `ConflictError` where a run has
    claims.
    """
    control.require(preview_compact(request))
    removed = backup.compact(_url(request))
    jobs = remove_folders(outdated(load_site(request.folder)))
    text = f"removed {len(removed.digests)} pieces of evidence; all node states are computed again"
    if jobs:
        text += f"; removed {jobs} collections of jobs"
    return Result(operation="journal compact", outcomes=(Outcome(node="", text=text),))


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
