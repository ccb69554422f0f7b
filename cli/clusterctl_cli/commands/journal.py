"""`clusterctl journal verify|backup|restore|compact`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import decision_options, site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.journal import JournalReport


@click.group()
def journal() -> None:
    """Check, back up, restore and shrink the journal (docs/how-to/journal.md)."""


@journal.command()
@site_option
@format_option()
def verify(*, folder: Path, as_json: bool) -> int:
    """Compare every row with its digest, the events with their chains, the states with the events.

    Exit code 3: something is damaged; each damage is printed with its remedy.
    """
    from clusterctl.operations import journal as operation

    report = operation.verify_journal(operation.JournalRequest(folder=folder))
    return _print_report(report, as_json=as_json, what="intact")


@journal.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@site_option
@format_option()
def backup(*, file: Path, folder: Path, as_json: bool) -> int:
    """Write the journal to the new FILE, while runs go on. Every kind of database is backed up to a SQLite file,
    which is encrypted where site.yml names site_keys.

    Exit code 3: the journal is damaged; the file has what could be read, with the damage.
    """
    from clusterctl.operations import journal as operation

    report = operation.back_up_journal(operation.JournalRequest(folder=folder, file=file))
    return _print_report(report, as_json=as_json, what=f"written to {file}")


@journal.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@decision_options
def restore(*, file: Path, folder: Path, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Replace the journal by the backup FILE. Refused while a run has claims, and for a damaged backup.

    A SQLite journal that cannot be read is kept under another name in the same folder.
    """
    from clusterctl.operations import journal as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, print_event
    from clusterctl_cli.output import print_result

    request = operation.JournalRequest(folder=folder, file=file)
    preview = operation.preview_restore(request)
    if approve(preview, Flags(yes=yes, dry_run=dry_run, as_json=as_json)):
        print_result(operation.run_restore(request, Control(preview.digest, print_event)), as_json=as_json)
    return 0


@journal.command()
@decision_options
def compact(*, folder: Path, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Remove old outputs of checks that passed, evidence that no event names, and free pages; compute the states again.

    No event is removed. evidence.pass_days of site.yml sets the age; without it all outputs are kept.
    While a run has claims only old outputs are removed; without pass_days it is refused then.
    """
    from clusterctl.operations import journal as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, print_event
    from clusterctl_cli.output import print_result

    request = operation.JournalRequest(folder=folder)
    preview = operation.preview_compact(request)
    if approve(preview, Flags(yes=yes, dry_run=dry_run, as_json=as_json)):
        print_result(operation.run_compact(request, Control(preview.digest, print_event)), as_json=as_json)
    return 0


def _print_report(report: JournalReport, *, as_json: bool, what: str) -> int:
    from clusterctl.operations.serial import to_data

    if as_json:
        print_document(to_data(report))
        return report.exit_code
    for damage in report.damages:
        echo(f"damaged: {damage.where}: {damage.cause} — {damage.remedy}")
    echo(f"{'damaged' if report.damages else what}: {report}")
    for stream, digest in report.heads.items():
        echo(f"  {stream:9} {digest}")
    return report.exit_code
