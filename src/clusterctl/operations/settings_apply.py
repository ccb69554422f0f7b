"""Bringing machines to their SKUs' baselines by a person's word: planned, told, done in waves, told again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace

import click

from clusterctl.edges.firmware_images import ImageFiles
from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.settings.drift import in_words
from clusterctl.fleet.settings.plan import Todo, permitted, todo, waves
from clusterctl.operations.adapters import Edges, Outside
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.decisions import Manner
from clusterctl.operations.settings_check import Selection, look, select
from clusterctl.operations.settings_waves import Course, Wanted, Waves, ids
from clusterctl.ports import Deadline
from clusterctl.steps.settings.apply_baseline import BaselineApplier, BaselineResult
from clusterctl.steps.settings.machine_session import SettingsServices, SettingsTimeouts
from clusterctl.steps.settings.wave import SettleWork
from clusterctl_cli.render_settings import error_json, plan_text, plan_words
from clusterctl_cli.stopping import stoppable

LOOK_S = 600.0
DONE = "as the baseline has it"


def apply(office: Office, wanted: Wanted, manner: Manner) -> int:
    """Plan, tell, do; the exit code."""
    reason = orders.said(wanted.reason)
    selection = select(office, wanted.patterns)
    cancelled = threading.Event()
    with closing(Edges(office.site)) as outside, stoppable(cancelled):
        with closing(Edges(office.site, read_only=True)) as readers:
            course = _plan(office, readers, selection, wanted, cancelled)
        _check_images(course.plans.values())
        doing = manner.yes and not manner.dry_run and not cancelled.is_set()
        if doing:
            click.echo(plan_text(course.plans, course.order, course.left), err=True)
            wanted = replace(wanted, reason=f"settings: {reason}")
            Waves(office, outside, wanted, course, _work(office, outside, selection, course), DONE).run(cancelled)
    _tell(course, manner, doing=doing)
    if cancelled.is_set():
        return CancelledError.exit_code
    return 1 if doing and (course.failures or course.stopped or course.left) else 0


def _work(office: Office, outside: Outside, selection: Selection, course: Course) -> SettleWork:
    timing = office.site.settings.timing
    pace = SettingsTimeouts(poll=timing.settings_poll_s, show=timing.settings_report_s)
    settler = BaselineApplier(
        SettingsServices(outside.bmcs, office.site.bmc_address, office.journal, ImageFiles(), pace)
    )
    baselines = {one.name: one.baseline for one in selection.asked}
    return SettleWork(settler, baselines, pace.longest * (1 + course.most_images))


def _plan(office: Office, outside: Outside, selection: Selection, wanted: Wanted, cancelled: threading.Event) -> Course:
    """From how the machines stand now; who may not be set, or cannot be read, is left alone."""
    left = dict(selection.passed)
    able, known = [], ids(office)
    begun = set()
    for one in selection.asked:
        node = office.journal.state(known[one.name])
        begun |= {node.name} if node.open_acts else set()
        try:
            permitted(node, CLOCK.now(), from_pool=wanted.from_pool)
        except UsageError as error:
            left[one.name] = f"{error.message}; {error.remedy}"
        else:
            able.append(one)
    plans: dict[str, Todo] = {}
    for seen in look(office, outside, able, Deadline.after(LOOK_S, cancelled)):
        plan = todo(seen.drifts)
        if seen.error is not None:
            left[seen.name] = str(seen.error)
        elif not plan.nothing or seen.name in begun:
            plans[seen.name] = plan
        elif plan.by_hand:
            left[seen.name] = "by hand: " + "; ".join(map(in_words, plan.by_hand))
    order = waves([(name, selection.skus[name]) for name in plans], wanted.wave)
    canaries = len({selection.skus[name] for name in plans})
    return Course(plans, order, canaries, left)


def _check_images(plans: Iterable[Todo]) -> None:
    """Each that will be sent is there, and is the one that was meant; before anything is touched."""
    wishes = (wish for plan in plans for wish in (*plan.bmc, *plan.host))
    for image in dict.fromkeys(wish.image for wish in wishes if wish.image is not None):
        with ImageFiles().opened(image):
            pass


def _tell(course: Course, manner: Manner, *, doing: bool) -> None:
    """`{"dry_run":…, "waves": [[…]], "plans": {…}, "done": […], "left_alone": {…}, "stopped":…}`, or it in words."""
    if manner.as_json:
        told = {
            "dry_run": not doing,
            "waves": [list(wave) for wave in course.order],
            "plans": {name: plan_words(plan) for name, plan in course.plans.items()},
            "done": [_json(one) for one in course.done],
            "left_alone": course.left,
            "stopped": course.stopped or None,
        }
        click.echo(json.dumps(told))
        return
    if not doing:
        click.echo(plan_text(course.plans, course.order, course.left))
        click.echo("\nNothing was changed; --yes does it.")
        return
    for one in sorted(course.done, key=lambda each: each.name):
        click.echo(f"{one.name}: {one.error or DONE}")
        for each in one.left:
            click.echo(f"  by hand: {in_words(each)}")
    for name, why in course.left.items():
        click.echo(f"left alone: {name}: {why}")
    if course.stopped:
        click.echo(course.stopped)


def _json(one: BaselineResult) -> dict[str, object]:
    return {"name": one.name, "error": error_json(one.error), "by_hand": [in_words(each) for each in one.left]}
