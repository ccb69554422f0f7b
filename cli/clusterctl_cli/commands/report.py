"""`clusterctl report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.completion import complete_nodes
from clusterctl_cli.formats import Format, written
from clusterctl_cli.options import duration_seconds, gathered, site_option
from clusterctl_cli.text import echo, markdown

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext

_FILE = click.Path(dir_okay=False, path_type=Path)
FORMS = ("terminal", "markdown", "html", "json", "yaml")
ORDER_FORMS = ("md", "csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options of `report`."""

    name: str | None
    work_orders: bool
    downtime: bool
    since: str | None
    for_nodes: int | None
    repair: float | None
    form: str | None
    html: Path | None
    output: Path | None
    force: bool
    folder: Path
    as_json: bool


@click.command()
@click.argument("name", metavar="[NODE]", required=False, shell_complete=complete_nodes)
@click.option("--work-orders", is_flag=True, help="Print what technicians have to do instead, by rack and unit.")
@click.option("--downtime", is_flag=True, help="Print the downtime of supervised runs, and what follows from it.")
@click.option("--since", metavar="TIME", help="With --downtime: runs since a date, or 30d.  [default: all]")
@click.option(
    "--for-nodes", type=click.IntRange(1), help="With --downtime: plan for so many.  [default: the gold ones]"
)
@click.option("--repair", callback=duration_seconds, metavar="TIME", help="With --downtime: a repair.  [default: 7d]")
@click.option(
    "-o",
    "--format",
    "form",
    type=click.Choice([*FORMS, *ORDER_FORMS]),
    metavar="FORMAT",
    help="Print markdown (md), terminal, html, json or yaml; work orders: md, csv, json, yaml.  [default: markdown]",
)
@click.option("--html", type=_FILE, help="The same as --format html --output FILE.")
@click.option("--output", type=_FILE, help="The file to write.  [default: stdout]")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@site_option
@click.option("--json", "as_json", is_flag=True, help="Short form of -o json.")
@gathered(ReportOptions)
def report(options: ReportOptions) -> None:
    """Print the acceptance report: what is gold and on which evidence, what is not and why, by rack.

    With NODE its sheet alone, fit to be handed to the vendor: serials, what was measured, by which limit and its
    source, commands with their output, and its time line. HTML is one page that needs nothing else.
    """
    from clusterctl_cli.context import open_context

    _require_downtime(options)
    if options.name is not None and options.work_orders:
        raise UsageError("work orders are of all nodes", where=options.name, remedy="leave out NODE or --work-orders")
    form = _form(options)
    context = open_context(options.folder)
    if options.downtime:
        text = _downtime(context, options, form)
    elif options.work_orders:
        text = _work_orders(context, form)
    else:
        text = _fleet(context, form) if options.name is None else _node(context, options.name, form)
    if form == "markdown":
        text = markdown(text)
    if options.html is not None:
        _write(options.html, text, "--html", force=options.force)
    elif options.output is not None:
        _write(options.output, text, "--output", force=options.force)
    else:
        echo(text, nl=not text.endswith("\n"))


def _require_downtime(options: ReportOptions) -> None:
    """Raise `UsageError` where options of the downtime and of other reports are mixed."""
    only = {"--since": options.since, "--for-nodes": options.for_nodes, "--repair": options.repair}
    given = next((name for name, value in only.items() if value is not None), None)
    if given is not None and not options.downtime:
        raise UsageError("it belongs to --downtime", where=given, remedy="add --downtime, or leave it out")
    if options.downtime and (options.name is not None or options.work_orders):
        raise UsageError("the downtime is of all runs", where="--downtime", remedy="leave out NODE and --work-orders")


def _downtime(context: SiteContext, options: ReportOptions, form: str) -> str:
    from clusterctl.fleet.durations import parse_past
    from clusterctl.operations.downtime import DowntimeRequest, report_json, report_markdown
    from clusterctl.operations.downtime import report as downtime_report
    from clusterctl.operations.operation import current_time

    if form == "html":
        raise UsageError("the downtime has no format html", where="--format", remedy="give md, json or yaml")
    since = parse_past(options.since, current_time(), where="--since") if options.since is not None else None
    days = options.repair / 86_400 if options.repair else 7.0
    request = DowntimeRequest(since=since, nodes=options.for_nodes, repair_days=days)
    found = downtime_report(context, request)
    if form in ("json", "yaml"):
        return written(report_json(found), Format(form))
    return report_markdown(found, context.site.settings.name)


def _write(file: Path, text: str, option: str, *, force: bool) -> None:
    from clusterctl.operations.documents import write_document

    write_document(file, text, option=option, force=force)
    echo(f"written: {file}", err=True)


def _form(options: ReportOptions) -> str:
    """Return the format of the report. Raises `UsageError` for options that contradict each other."""
    form = _only_form(options)
    if form in ("json", "yaml"):
        return form
    if options.work_orders and form not in ("markdown", "csv"):
        raise UsageError(f"work orders have no format {form}", where="--format", remedy="give md, csv, json or yaml")
    if form == "csv" and not options.work_orders:
        remedy = "add --work-orders"
        raise UsageError("the acceptance report has no format csv", where="--format", remedy=remedy)
    return form


def _only_form(options: ReportOptions) -> str:
    """Return the format that --html, --json or --format names; markdown where none does."""
    if options.html is not None:
        if options.form is not None or options.output is not None or options.as_json:
            raise UsageError("it names format and file already", where="--html", remedy="leave the others out")
        return "html"
    if options.as_json:
        if options.form not in (None, "json"):
            raise UsageError("--json has no other format", where="--format", remedy="give one of them")
        return "json"
    return "markdown" if options.form in (None, "md") else options.form


def _fleet(context: SiteContext, form: str) -> str:
    from clusterctl.operations.collector import collector_paused
    from clusterctl.operations.reports import fleet_report
    from clusterctl_cli.acceptance import acceptance_json, acceptance_text
    from clusterctl_cli.fleet_report import documents
    from clusterctl_cli.fleet_report import plain_text as words
    from clusterctl_cli.fleet_report.pairs import pairs

    with collector_paused():
        sheet = fleet_report(context, whole=form in ("json", "yaml"))
        if form == "html":
            from clusterctl_cli.fleet_report.page import fleet_page

            return fleet_page(sheet)
        if form == "terminal":
            return words.fleet_text(sheet)
        if form in ("json", "yaml"):
            more = {"figures": documents.figures_json(sheet.figures), "pairs": documents.pairs_json(pairs(sheet.pairs))}
            return written(acceptance_json(sheet.nodes, sheet.overview) | more, Format(form))
        return words.fleet_markdown(acceptance_text(sheet.nodes, sheet.overview), sheet)


def _node(context: SiteContext, name: str, form: str) -> str:
    from clusterctl.operations.json_documents import node_json
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.reports import node_case
    from clusterctl_cli.fleet_report import documents
    from clusterctl_cli.fleet_report import plain_text as words

    node, now, settings = context.node(name), current_time(), context.site.settings
    case = node_case(context, node)
    if form == "html":
        from clusterctl_cli.fleet_report.page import case_page

        return case_page(case, settings.name, now, simulated=settings.simulated)
    if form in ("json", "yaml"):
        return written(documents.case_json(case, node_json(node, now)), Format(form))
    return words.case_markdown(case, settings.name, now, simulated=settings.simulated)


def _work_orders(context: SiteContext, form: str) -> str:
    from clusterctl.operations.json_documents import work_orders_json
    from clusterctl.operations.reports import site_work_orders
    from clusterctl_cli import work_order_forms as forms

    sheet = site_work_orders(context)
    if form in ("json", "yaml"):
        return written(work_orders_json(sheet), Format(form))
    if form != "csv":
        return forms.work_orders_text(sheet)
    if nothing := forms.nothing_to_do(sheet):
        echo(nothing, err=True)
    return forms.work_orders_csv(sheet)
