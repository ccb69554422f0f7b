"""BIOS attributes (DMTF Bios and Settings schemas; recorded at Bios and Bios/Settings of all three vendors).

What is PATCHed to the settings object waits for the next boot. At Dell it waits for a job first: one that the PATCH
asks for with `@Redfish.SettingsApplyTime`, or one that is made afterwards for this object; until that job is over,
further changes are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, only, required
from clusterctl_lab.emulators.redfish.profile import BiosAttribute, Problem, Profile, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource, head, ref
from clusterctl_lab.emulators.redfish.services.tasks import DONE, SCHEDULED, Tasks
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import Attributes, TaskState, View
from clusterctl_lab.machine import Machine

KIND = "BIOSConfiguration"
_WITHOUT_JOB = "bios settings"
_APPLY = "@Redfish.SettingsApplyTime"
_NOTE = "BIOS Configuration Pending Settings. These settings will be applied on next system reboot."


class Bios:
    def __init__(self, context: BmcContext, tasks: Tasks) -> None:
        self._context = context
        self._tasks = tasks
        self._pending: dict[str, str | int] = {}
        paths = context.profile.paths
        self.writes: Writes = {("PATCH", paths.bios_settings): self._patch}
        if context.profile.traits.bios_jobs:
            self.writes = {**self.writes, ("POST", paths.jobs): self._make_job}

    @property
    def pending(self) -> Attributes:
        return tuple(sorted(self._pending.items()))

    @property
    def current(self) -> Attributes:
        return current(self._context.profile, self._context.machine)

    def _patch(self, request: Request, traits: Traits) -> Answer:
        body = request.json()
        only(body, ("Attributes", _APPLY))
        wanted = required(body, "Attributes", kind=dict)
        for name, value in wanted.items():
            _check(self._context.profile.bios, name, value)
        apply = required(body, _APPLY, kind=dict).get("ApplyTime") if _APPLY in body else None
        if apply not in (None, "OnReset"):
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(apply), "ApplyTime")
        if traits.bios_jobs and self._tasks.waiting(KIND):
            raise RefusedError(Problem.JOB_PENDING)
        self._pending.update(wanted)
        if traits.bios_jobs:
            return self._schedule() if apply else Answer(200, self._context.profile.success())
        self._context.state.at_boot[_WITHOUT_JOB] = self._apply
        return Answer(200, self._context.profile.success())

    def _make_job(self, request: Request, _: Traits) -> Answer:
        """Dell's POST to its job queue."""
        body = request.json()
        only(body, ("TargetSettingsURI",))
        target = str(required(body, "TargetSettingsURI"))
        if target.rstrip("/") != self._context.profile.paths.bios_settings or not self._pending:
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, target, "TargetSettingsURI")
        if self._tasks.waiting(KIND):
            raise RefusedError(Problem.JOB_PENDING)
        return self._schedule()

    def _schedule(self) -> Answer:
        job = self._tasks.begin(KIND, "BIOS.Setup.1-1", TaskState.SCHEDULED, SCHEDULED)
        self._context.state.at_boot[job] = lambda: self._carry_out(job)
        return self._tasks.accepted(job)

    def _carry_out(self, job: str) -> None:
        self._apply()
        self._tasks.report(job, TaskState.COMPLETED, 100, DONE)

    def _apply(self) -> None:
        changes, self._pending = self._pending, {}
        delivered = self._context.profile.bios
        self._context.world.rewrite(self._context.name, lambda machine: _with_bios(machine, changes, delivered))


def current(profile: Profile, machine: Machine) -> Attributes:
    """All attributes of a machine: as its vendor delivers them, but for those that were changed."""
    delivered = {name: attribute.default for name, attribute in profile.bios.items()}
    return tuple(sorted((delivered | dict(machine.bios)).items()))


def _with_bios(machine: Machine, changes: Mapping[str, str | int], delivered: Mapping[str, BiosAttribute]) -> Machine:
    values = {**dict(machine.bios), **changes}
    return replace(
        machine, bios=tuple(sorted((name, value) for name, value in values.items() if delivered[name].default != value))
    )


def _check(known: Mapping[str, BiosAttribute], name: str, value: Any) -> None:
    if name not in known:
        raise RefusedError(Problem.PROPERTY_UNKNOWN, name)
    attribute = known[name]
    if attribute.read_only:
        raise RefusedError(Problem.PROPERTY_READ_ONLY, name)
    right_type = type(value) is type(attribute.default)
    if not right_type or (attribute.allowed and value not in attribute.allowed):
        raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(value), name)


def bios_resource(path: str, settings: str, view: View, registry: str) -> Resource:
    """`registry` as `BiosAttributeRegistry.v1_0_3`."""
    return {
        **head(path, "Bios.v1_2_0.Bios", "BIOS Configuration Current Settings"),
        "@Redfish.Settings": {
            "@odata.type": "#Settings.v1_3_3.Settings",
            "SettingsObject": ref(settings),
            "SupportedApplyTimes": ["OnReset"],
        },
        "AttributeRegistry": registry,
        "Attributes": dict(view.bios),
    }


def pending_resource(path: str, view: View, registry: str) -> Resource:
    return {
        **head(path, "Bios.v1_2_0.Bios", "BIOS Configuration Pending Settings"),
        "AttributeRegistry": registry,
        "Attributes": dict(view.pending),
        "Description": _NOTE,
    }
