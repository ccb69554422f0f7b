"""What may be ordered on the page: each action with its role, its fields and the operation that carries it out.

An order is previewed first; what runs is what was approved, by the preview's digest. What takes long runs detached.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusterctl.fleet.access import UserRole
from clusterctl.fleet.decisions.permissions import PowerOrder
from clusterctl.fleet.durations import fixed_until
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Step
from clusterctl.fleet.peer_text import visible
from clusterctl.operations import (
    decisions,
    detached,
    incident_resolution,
    maintain,
    maintenance_control,
    power,
    revalidate,
    runs,
)
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.decisions import Decision, DecisionRequest
from clusterctl.operations.incident_resolution import ResolveRequest
from clusterctl.operations.operation import Control, Preview, Result, current_time
from clusterctl.operations.runs import RunRecord
from clusterctl_web.guard import require_role
from clusterctl_web.sessions import Actor

MOST_KEYS = 1000
LONGEST = 1000
"""Characters of one field."""
STEPS = tuple(step.value for step in Step)
DISK_STEPS = frozenset({Step.DISCOVER, Step.INSTALL})
"""What begins with one of these steps may overwrite a root disk."""

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One input of an action. `options`: the values that it may have, the first by default; none: any text."""

    name: str
    label: str
    required: bool = False
    options: tuple[str, ...] = ()
    hint: str = ""


REASON = Field(name="reason", label="Reason", required=True, hint="kept in the node's history with your name")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAction:
    """An action on one node, plan or incident.

    operation  module of `clusterctl.operations`; `request` makes its request from the name and the fields
    detached   it takes long: it runs in a process of its own
    """

    name: str
    title: str
    about: str
    role: UserRole
    operation: Any
    request: Callable[[SiteContext, str, Values], Any]
    fields: tuple[Field, ...] = (REASON,)
    detached: bool = False

    def values(self, given: Callable[[str], str]) -> dict[str, str]:
        """Return the value of each field, a duration as its end: the form of the approval has that.

        Raises `UsageError` for one that is missing, too long, or no option.
        """
        values = {one.name: _value(one, given(one.name)) for one in self.fields}
        fixed = {name: fixed_until(values[name], current_time()) for name in (UNTIL.name,) if name in values}
        return {**values, **fixed}


def _value(one: Field, text: str) -> str:
    value = text.strip()
    if not value and one.required:
        raise UsageError("is missing", where=one.name, remedy=f"fill in: {one.label}")
    if len(value) > LONGEST or not value.isprintable() or visible(value) != value:
        raise UsageError(f"is no line of at most {LONGEST} characters", where=one.name, remedy="write less")
    if value and one.options and value not in one.options:
        raise UsageError(f"is none of {', '.join(filter(None, one.options))}", where=one.name, remedy="choose one")
    return value


def _decision(decision: Decision) -> Callable[[SiteContext, str, Values], DecisionRequest]:
    return lambda _context, node, values: DecisionRequest(decision=decision, nodes=(node,), **values)


def _repaired(_context: SiteContext, node: str, values: Values) -> DecisionRequest:
    """Return the report of a repair; the serial of a part that was replaced joins the history of both parts."""
    serial = f"; new part has serial {values['serial']}" if values["serial"] else ""
    reason = f"repaired: {values['done']}{serial}"
    return DecisionRequest(
        decision=Decision.REPAIRED, nodes=(node,), reason=reason, part=values["part"], serial=values["serial"]
    )


def _revalidation(_context: SiteContext, node: str, values: Values) -> revalidate.RevalidateRequest:
    return revalidate.RevalidateRequest(
        nodes=(node,),
        parts=_words(values["parts"]),
        reason=values["reason"],
        partners=_words(values["partners"]),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _power(_context: SiteContext, node: str, values: Values) -> power.PowerRequest:
    return power.PowerRequest(order=PowerOrder(values["order"]), nodes=(node,), reason=values["reason"])


UNTIL = Field(name="until", label="Until", hint="2026-12-01, 12h, 3d; empty: until it is released")
END = Field(name="until", label="Until", required=True, hint="2026-12-01, 12h, 30d; at most 90 days")
PART = Field(name="part", label="Part", hint="slot, serial or name, such as gpu3; may be empty")
ORDER = Field(name="order", label="Order", required=True, options=tuple(order.value for order in PowerOrder))
CHECK = Field(name="check", label="Check", required=True, hint="the check with the finding, such as gpu_ecc")
ACTIONS: Mapping[str, PageAction] = {
    action.name: action
    for action in (
        PageAction(
            name="hold", title="Hold", about="No step touches the node; a gold node leaves the pool.",
            role=UserRole.OPERATOR, operation=decisions, request=_decision(Decision.HOLD), fields=(REASON, UNTIL),
        ),
        PageAction(
            name="release", title="Release",
            about="Lifts a hold; sends a stopped node back to the step that stopped it, for the next bootstrap.",
            role=UserRole.OPERATOR, operation=decisions, request=_decision(Decision.RELEASE),
        ),
        PageAction(
            name="repaired", title="Report a repair",
            about="Ticks a work order off: the step that stopped the node measures it again with the next bootstrap.",
            role=UserRole.OPERATOR, operation=decisions, request=_repaired,
            fields=(
                Field(name="done", label="What was done", required=True, hint="such as GPU 3 replaced"),
                Field(name="part", label="Part", hint="such as gpu3; empty: the one that keeps the node back"),
                Field(name="serial", label="Serial of the new part", hint="empty where nothing was replaced"),
            ),
        ),
        PageAction(
            name="quarantine", title="Quarantine", about="Takes the node out of use.", role=UserRole.OPERATOR,
            operation=decisions, request=_decision(Decision.QUARANTINE),
            fields=(
                REASON,
                PART,
                Field(name="step", label="A release leads back to", options=("", *STEPS), hint="empty: the next step"),
            ),
        ),
        PageAction(
            name="revalidate", title="Revalidate",
            about="Proves the node again after a repair, up to gold. What begins before configure needs an admin.",
            role=UserRole.OPERATOR, operation=revalidate, request=_revalidation, detached=True,
            fields=(
                Field(name="parts", label="Repaired parts", hint="gpu3, a slot, a serial, cable 5; with commas"),
                Field(name="reason", label="Reason", hint="instead of the parts; kept with your name"),
                Field(name="partners", label="Partners", hint="idle gold nodes; empty: those that the scheduler lends"),
            ),
        ),
        PageAction(
            name="waive", title="Waive", about="Takes responsibility for a bad finding until a date.",
            role=UserRole.ADMIN, operation=decisions, request=_decision(Decision.WAIVE),
            fields=(CHECK, PART, REASON, END),
        ),
        PageAction(
            name="power", title="Power", about="Switches the machine through its BMC.", role=UserRole.ADMIN,
            operation=power, request=_power, detached=True,
            fields=(ORDER, REASON),
        ),
    )
}  # fmt: skip
"""In the order in which the page offers them."""


def _stop(*, final: bool) -> Callable[[SiteContext, str, Values], maintenance_control.StopRequest]:
    return lambda _context, plan, values: maintenance_control.StopRequest(
        plan=plan, reason=values["reason"], final=final
    )


def _resume(context: SiteContext, plan: str, _values: Values) -> maintain.MaintainRequest:
    return maintain.resuming(context, plan)


PLAN_REASON = Field(name="reason", label="Reason", hint="kept in the plan's history with your name")
PLAN_ACTIONS: Mapping[str, PageAction] = {
    action.name: action
    for action in (
        PageAction(
            name="pause", title="Pause", about="No more nodes begin. A change that has begun ends first.",
            role=UserRole.OPERATOR, operation=maintenance_control, request=_stop(final=False), fields=(PLAN_REASON,),
        ),
        PageAction(
            name="resume", title="Resume",
            about="Goes on with a plan that was paused or halted, or whose run was killed.",
            role=UserRole.ADMIN, operation=maintain, request=_resume, fields=(), detached=True,
        ),
        PageAction(
            name="stop", title="Stop", about="Ends the plan for good. A change that has begun ends first.",
            role=UserRole.OPERATOR, operation=maintenance_control, request=_stop(final=True), fields=(PLAN_REASON,),
        ),
    )
}  # fmt: skip
"""Actions on plans of rolling changes."""


def _resolve(_context: SiteContext, incident: str, values: Values) -> ResolveRequest:
    return ResolveRequest(incidents=(incident,), reason=values["reason"])


INCIDENT_ACTIONS: Mapping[str, PageAction] = {
    "resolve": PageAction(
        name="resolve", title="Resolve",
        about="Ends the incident by hand: its channels and its ticket get to know it. No new one is opened until it is "
        "gone and comes back.",
        role=UserRole.OPERATOR, operation=incident_resolution, request=_resolve,
        fields=(Field(name="reason", label="Reason", required=True, hint="in the message, with your name"),),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """What actions are about: the path of its pages, and the actions that the page offers."""

    path: str
    actions: Mapping[str, PageAction]

    def action(self, name: str) -> PageAction:
        """Return an action. Raises `UsageError` where there is none of this name."""
        if name not in self.actions:
            raise UsageError("there is no such action", where=name, remedy=f"one of {', '.join(self.actions)}")
        return self.actions[name]

    def offered(self, actor: Actor) -> Sequence[PageAction]:
        """Return the actions that the actor's role may order."""
        return [action for action in self.actions.values() if actor.role.includes(action.role)]


NODES = Subjects(path="/nodes", actions=ACTIONS)
PLANS = Subjects(path="/plans", actions=PLAN_ACTIONS)
INCIDENTS = Subjects(path="/incidents", actions=INCIDENT_ACTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What the actor has approved. `key`: of this very order; sent twice, it is carried out once."""

    digest: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an order has led to: a result, or the run that goes on."""

    result: Result | None = None
    run: RunRecord | None = None


@dataclass(slots=True)
class _Once:
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: Done | None = None


@dataclass
class Orders:
    """Previews orders and carries them out, each as the one who gives it. Thread-safe."""

    folder: Path
    _keys: OrderedDict[str, _Once] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def opened(self, actor: Actor, command: str, *, thorough: bool = False) -> Iterator[SiteContext]:
        """Yield the site, opened as the actor: the journal has the name with each event."""
        context = open_site(self.folder, Invocation(actor.name, command), thorough=thorough)
        try:
            yield context
        finally:
            context.journal.close()

    def preview(self, actor: Actor, action: PageAction, subject: str, values: Values) -> Preview:
        """Return what an action would do. Raises `PrivilegeError` where the actor's role does not suffice."""
        require_role(actor, action.role)
        with self.opened(actor, action.name, thorough=action.detached) as context:
            request = action.request(context, subject, values)
            require_role(actor, role_of(context, request))
            preview: Preview = action.operation.preview(context, request)
            return preview

    def carry_out(self, actor: Actor, action: PageAction, subject: str, values: Values, approval: Approval) -> Done:
        """Carry out an action as approved. Raises `ConflictError` where the preview has changed."""
        require_role(actor, action.role)

        def act(key: str) -> Done:
            with self.opened(actor, action.name, thorough=action.detached) as context:
                request = action.request(context, subject, values)
                require_role(actor, role_of(context, request))
                control = Control(approval.digest)
                if not action.detached:
                    return Done(result=action.operation.run(context, request, control))
                control.require(action.operation.preview(context, request))
                origin = detached.Origin(command=action.name, approved=approval.digest, key=key)
                return Done(run=detached.order(context, request, origin))

        return self._once((actor.name, action.name, subject, approval.key), act)

    def cancel(self, actor: Actor, name: str) -> Result:
        """Ask a run to stop."""
        require_role(actor, UserRole.OPERATOR)
        with self.opened(actor, "runs cancel") as context:
            return runs.run(context, runs.CancelRequest(run=runs.find(context, name).name), Control())

    def preview_retry(self, actor: Actor, name: str) -> tuple[RunRecord, Preview]:
        """Return a run and what it would do if it was ordered again. Raises `PrivilegeError` as for its order."""
        require_role(actor, UserRole.OPERATOR)
        with self.opened(actor, "runs retry", thorough=True) as context:
            record, request = detached.again(context, name)
            require_role(actor, role_of(context, request))
            return record, detached.operation_of(record.operation).preview(context, request)

    def retry(self, actor: Actor, name: str, approval: Approval) -> Done:
        """Order a run's request again, as approved."""
        require_role(actor, UserRole.OPERATOR)

        def act(key: str) -> Done:
            with self.opened(actor, "runs retry", thorough=True) as context:
                record, request = detached.again(context, name)
                require_role(actor, role_of(context, request))
                Control(approval.digest).require(detached.operation_of(record.operation).preview(context, request))
                detached.close_lost(context, record)
                origin = detached.Origin(command=record.command, approved=approval.digest, earlier=record.name, key=key)
                return Done(run=detached.order(context, request, origin))

        return self._once((actor.name, "retry", name, approval.key), act)

    def _once(self, order: tuple[str, ...], act: Callable[[str], Done]) -> Done:
        """Act, once for one order, the key last: when it is repeated, it gets what it has led to."""
        if not order[-1]:
            return act("")
        digest = hashlib.sha256("\0".join(order).encode()).hexdigest()
        with self._lock:
            once = self._keys.setdefault(digest, _Once())
            self._keys.move_to_end(digest)
            while len(self._keys) > MOST_KEYS:
                self._keys.popitem(last=False)
        with once.lock:
            if once.done is None:
                once.done = act(digest)
            return once.done


def role_of(context: SiteContext, request: Any) -> UserRole:
    """Return the role that a request needs: admin for what may lead to a write to a disk, or switches a machine."""
    match request:
        case revalidate.RevalidateRequest():
            return UserRole.ADMIN if revalidate.first_step(context, request) in DISK_STEPS else UserRole.OPERATOR
        case DecisionRequest(decision=Decision.HOLD | Decision.RELEASE | Decision.REPAIRED | Decision.QUARANTINE):
            return UserRole.OPERATOR
        case maintenance_control.StopRequest() | ResolveRequest():
            return UserRole.OPERATOR
        case _:
            return UserRole.ADMIN
