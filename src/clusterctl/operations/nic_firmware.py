"""New firmware for the adapters of many machines, by a person's word: told, done in waves, told again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import click

from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.node import Stage
from clusterctl.fleet.settings.plan import permitted, waves
from clusterctl.operations.adapters import Edges, Outside
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.decisions import Manner, chosen
from clusterctl.operations.settings_waves import Course, Wanted, Waves, ids
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.settings.nic_firmware import ACT, NicFirmwareWork
from clusterctl_cli.render_settings import error_json
from clusterctl_cli.stopping import stoppable

WAVE_S = 3 * 3600.0
"""Seconds for the playbook over one wave: eight adapters burnt one after another, and a server's boot."""
DONE = "its adapters run their firmware"
IMAGES = "nic_firmware_images"


def update(office: Office, wanted: Wanted, manner: Manner) -> int:
    """The exit code."""
    reason = orders.said(wanted.reason)
    variables = _variables(office)
    course = _plan(office, wanted)
    cancelled = threading.Event()
    doing = manner.yes and not manner.dry_run
    if doing:
        with closing(Edges(office.site)) as outside, stoppable(cancelled):
            work = _work(office, outside, variables)
            told = replace(wanted, reason=f"adapters' firmware: {reason}")
            Waves(office, outside, told, course, work, DONE).run(cancelled)
    click.echo(json.dumps(_json(course, doing=doing)) if manner.as_json else "\n".join(_words(course, doing=doing)))
    if cancelled.is_set():
        return CancelledError.exit_code
    return 1 if doing and (course.failures or course.stopped or course.left) else 0


def _variables(office: Office) -> Mapping[str, Any]:
    """The site's, if they name images."""
    variables = office.site.settings.configure.variables
    if not variables.get(IMAGES):
        raise UsageError(
            f"the site names no {IMAGES}",
            where=office.site.where("configure", "variables"),
            remedy="write there, for each PSID, version, url and sha256 of its image (roles/nic_firmware/README.md)",
        )
    return variables


def _plan(office: Office, wanted: Wanted) -> Course:
    """Who may be touched, one of each SKU first; what each adapter needs is seen on the machine."""
    names = set(chosen(office, wanted.patterns or ("*",)))
    nodes = [node for node in office.nodes() if node.name in names and node.stage is not Stage.RETIRED]
    known, left, able = ids(office), {}, []
    for node in nodes:
        if node.name not in known:
            left[node.name] = "nothing has happened to it yet; clusterctl discover first"
            continue
        try:
            permitted(office.journal.state(known[node.name]), CLOCK.now(), from_pool=wanted.from_pool, acts={ACT})
        except UsageError as error:
            left[node.name] = f"{error.message}; {error.remedy}"
        else:
            able.append((node.name, node.sku))
    return Course({}, waves(able, wanted.wave), len({sku for _, sku in able}), left)


def _work(office: Office, outside: Outside, variables: Mapping[str, Any]) -> NicFirmwareWork:
    ssh = office.site.settings.ssh
    reach = SshAccess(ssh.user, office.site.path(ssh.private_key))
    return NicFirmwareWork(outside.playbooks, office.journal, reach.address, variables, WAVE_S)


def _json(course: Course, *, doing: bool) -> Mapping[str, Any]:
    return {
        "dry_run": not doing,
        "waves": [list(wave) for wave in course.order],
        "done": [{"name": one.name, "error": error_json(one.error), "changed": one.changed} for one in course.done],
        "left_alone": course.left,
        "stopped": course.stopped or None,
    }


def _words(course: Course, *, doing: bool) -> Iterable[str]:
    if doing:
        for one in sorted(course.done, key=lambda each: each.name):
            yield f"{one.name}: {one.error or DONE}"
    else:
        for number, wave in enumerate(course.order, start=1):
            yield f"wave {number}: {', '.join(wave)}"
    for name, why in course.left.items():
        yield f"left alone: {name}: {why}"
    if course.stopped:
        yield course.stopped
    if not doing:
        yield "\nNothing was changed; --yes does it. Which adapters need it is seen on each machine, before its turn."
