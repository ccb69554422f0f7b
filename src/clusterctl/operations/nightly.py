"""The nightly burn-in as a command: the site's policy, one night, its record, and a line or a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import click

from clusterctl.edges.night_record import read_record, write_record
from clusterctl.edges.site import Site, contents
from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.nightly.policy import NightPolicy, choose, overdue, require_affordable
from clusterctl.fleet.nightly.record import NightRecord
from clusterctl.fleet.nightly.window import Opening, Window, parse_window
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.adapters import Edges
from clusterctl.operations.context import CLOCK, Office, state_dir
from clusterctl.operations.night import Night, Watch, candidates, ended, idle_words, started, tonights
from clusterctl.operations.pool import spares
from clusterctl.operations.scheduling import scheduler_of
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import Scheduler
from clusterctl.site.scheduling import NightlySettings, zone_named
from clusterctl_cli import render

LOOK_S = 300.0


@dataclass(frozen=True, slots=True)
class Said:
    """What the person, or the timer, asked for; None: as the site says. `scheduler`: instead of the site's."""

    window: str | None = None
    budget: int | None = None
    dry_run: bool = False
    as_json: bool = False
    scheduler: Scheduler | None = None


def run_nightly(office: Office, said: Said) -> int:
    """One night; the exit code. One that did not come to its end never has 1, which timers take for an end."""
    try:
        return _run(office, said)
    except ClusterctlError as error:
        if error.exit_code != 1:
            raise
        raise EnvironmentBrokenError(error.message, where=error.where, remedy=error.remedy) from error


def _run(office: Office, said: Said) -> int:
    settings = _settings(office.site)
    window = _window(office.site, settings, said)
    policy = policy_of(office.site, settings, said)
    scheduler = said.scheduler or scheduler_of(office.site)
    require_affordable(policy, len(candidates(office)), window.usual)
    tonight = replace(office, site=tonights(office.site, policy))
    contents.suite(tonight.site)
    if said.dry_run:
        return _rehearse(office, policy, scheduler, window, said)
    opening = _opening(window, CLOCK.now())
    return _hold_watch(tonight, policy, scheduler, opening, said)


def policy_of(site: Site, settings: NightlySettings, said: Said) -> NightPolicy:
    return NightPolicy(
        percent=said.budget or settings.percent,
        most=settings.most,
        node=timedelta(minutes=settings.node_minutes),
        attempts=site.settings.limits.attempts,
        expiry=timedelta(days=settings.expiry_days),
    )


def _hold_watch(office: Office, policy: NightPolicy, scheduler: Scheduler, opening: Opening, said: Said) -> int:
    state, metrics = state_dir(office.site), _metrics(office.site)
    before, began = read_record(state), CLOCK.now()
    write_record(state, replace(before, began=began) if before else NightRecord(began), metrics)
    office.describe()
    office.journal.append([started(office, policy, opening.end)])
    night = Watch(office, Edges(office.site), scheduler, policy, opening.end).run()
    tested = [node for node in office.journal.summaries() if node.name in night.tested]
    failed = [node for node in tested if node.stage is not Stage.GOLD]
    late = overdue(policy, candidates(office), CLOCK.now())
    office.journal.append([ended(office, night, [node.name for node in failed])])
    write_record(state, NightRecord(began, CLOCK.now(), len(tested), len(failed), len(late)), metrics)
    _tell(night, failed, late, said)
    if (asked := spares(office)) is not None and asked.missing:
        click.echo(f"too few spares: {asked}", err=said.as_json)
    return 1 if failed or late or night.stuck else 0


def _rehearse(office: Office, policy: NightPolicy, scheduler: Scheduler, window: Window, said: Said) -> int:
    """Whom the next night would take first, if everybody stayed as idle as now."""
    seen = dict(scheduler.look(Deadline.after(LOOK_S)).value)
    out = sum(node.ours for node in seen.values())
    choice = choose(policy, candidates(office), idle_words(seen), out=out, left=window.usual)
    if said.as_json:
        click.echo(json.dumps({"dry_run": True, "window": str(window), "first": choice.names, "why": choice.why}))
        return 0
    first = f"first {', '.join(choice.names)}" if choice.names else f"nobody: {choice.why}"
    click.echo(f"in {window}: {first}\n\nNothing was changed.")
    return 0


def _tell(night: Night, failed: Sequence[NodeSummary], late: Sequence[str], said: Said) -> None:
    """`{"tested": […], "failed": [node…], "overdue": […], "passed_over": {…}, "stuck": {…}, "ended":…}`, one line
    where all is well, or a report.
    """
    if said.as_json:
        nodes = [render.node_json(node, CLOCK.now()) for node in failed]
        told = {"tested": night.tested, "failed": nodes, "overdue": list(late), "passed_over": night.passed_over}
        click.echo(json.dumps({**told, "stuck": night.stuck, "ended": night.ended}))
        return
    good = len(night.tested) - len(failed)
    counted = f"{len(night.tested)} nodes tested, {good} gold again" if night.tested else "nobody was tested"
    click.echo(f"nightly: {counted}; {night.ended}")
    for node in failed:
        click.echo(f"\n{node.name} ({node.location}) is {node.stage.value}: {node.cause}\n  {node.remedy}")
    for name, why in night.stuck.items():
        click.echo(f"\n{name} could not be given back: {why}")
    if late:
        click.echo(
            f"\nevidence is too old of {len(late)} gold nodes: {', '.join(late[:10])}{' …' if late[10:] else ''}"
        )
    if (failed or late or night.stuck) and night.passed_over:
        click.echo("\npassed over: " + "; ".join(f"{name}: {why}" for name, why in night.passed_over.items()))


def _settings(site: Site) -> NightlySettings:
    if site.settings.nightly is None:
        raise UsageError(
            "the site has no nightly burn-in",
            where=site.where("nightly"),
            remedy="add nightly: {window: 02:00-05:00, time_zone: Europe/Berlin} (docs/nightly.md)",
        )
    return site.settings.nightly


def _window(site: Site, settings: NightlySettings, said: Said) -> Window:
    where = "--window" if said.window else site.where("nightly", "window")
    return parse_window(said.window or settings.window, zone_named(settings.time_zone), where=where)


def _opening(window: Window, now: datetime) -> Opening:
    opening = window.at(now)
    if opening is None:
        local = now.astimezone(window.zone)
        raise UsageError(
            f"it is {local:%H:%M} there, and the window is {window}",
            where="nightly.window",
            remedy="let the timer start it within the window (role burnin_timer), or say --window",
        )
    return opening


def _metrics(site: Site) -> Path | None:
    name = site.settings.nightly.metrics if site.settings.nightly else ""
    return Path(site.path(name)) if name else None
