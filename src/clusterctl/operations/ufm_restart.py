"""The restart of UFM where its model of the fabric is stale: once, on the active host, journaled, and read back.

A run that is killed is finished by the next one, which reads back and restarts nothing a second time.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.acts import Act, ActResult
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UsageError
from clusterctl.fleet.event import Event as JournalEvent
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.fabric_managers import ModelReading, compared
from clusterctl.operations.operation import Control, Effect, Event, Failure, Outcome, Preview, Result
from clusterctl.ports import Claim, Clock, Deadline, LinkModel, ManagerService
from clusterctl.ports.deadline import SYSTEM_TIMER, Timer
from clusterctl.steps.executor.lease import sole_claim

NAME = "fabric restart"
SUBJECT = "ufm"
"""Of the events about UFM, in the stream `fabric`."""
CLAIM = NodeId("ufm restart")
AGAIN = timedelta(hours=1)
"""UFM is not restarted twice within this time: it needs minutes to discover a large fabric."""
LOOK_S = 300.0
EVERY_S = 15.0
"""Seconds between two looks at the model of a UFM that was restarted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRequest:
    """`back_s`: seconds in which UFM must have the fabric again."""

    reason: str
    back_s: float = 1200.0


@dataclass(frozen=True, slots=True)
class UfmRestart:
    """The site's UFM: `links` as it has them, and its `service`."""

    context: SiteContext
    links: LinkModel
    service: ManagerService
    clock: Clock = CLOCK
    timer: Timer = SYSTEM_TIMER

    def preview(self, request: RestartRequest) -> Preview:
        """Return what a restart would do. Raise `UsageError` where none is needed, or one was made lately."""
        begun = self._begun()
        text = "read back what a run that was killed began; no second restart" if begun else self._why()
        question = "Read UFM back?" if begun else "Restart UFM? The subnet manager on its host restarts with it."
        return Preview(operation=NAME, question=question, effects=(Effect(node=SUBJECT, text=text),)).of(request)

    def run(self, request: RestartRequest, control: Control) -> Result:
        """Restart UFM, and wait until it has the fabric. Return whether it has, as its outcome."""
        journal = self.context.journal
        with sole_claim(journal, CLAIM, self.context.run, control.cancelled.set) as claim:
            control.require(self.preview(request))
            if not self._begun():
                self._restart(request, claim, control)
            outcome = self._read_back(request, claim, control)
        return Result(operation=NAME, outcomes=(outcome,), cancelled=control.cancelled.is_set())

    def _why(self) -> str:
        """Return why UFM is restarted, in words that do not change from one look to the next."""
        last = self._last(ActIntended)
        if last is not None and self.clock.now() - last.at < AGAIN and not self._was_refused():
            remedy = f"wait until {last.at + AGAIN:%H:%M} UTC; UFM needs minutes to discover the fabric"
            raise UsageError(f"UFM was restarted at {last.at:%Y-%m-%d %H:%M} UTC", where=NAME, remedy=remedy)
        model = self._model(Deadline.after(LOOK_S, timer=self.timer))
        if not model.stale and not model.unread:
            remedy = "nothing; for another reason, restart it on its host"
            raise UsageError("UFM's model is the fabric: no restart is needed", where=NAME, remedy=remedy)
        return "restart it: its model of the fabric is stale" if model.stale else "restart it: its links cannot be read"

    def _model(self, deadline: Deadline) -> ModelReading:
        with closing(self.context.adapters(Access.READ)) as adapters:
            seen = parse_ibnetdiscover(adapters.fabric.ibnetdiscover(deadline).value, file="ibnetdiscover")
        return compared(self.links, seen, deadline)

    def _restart(self, request: RestartRequest, claim: Claim, control: Control) -> None:
        """Restart the active UFM under an intent; what is not known to have happened is read back."""
        deadline = Deadline.after(LOOK_S + request.back_s, control.cancelled, self.timer)
        if not self.service.is_active(deadline):
            remedy = "let fabric.ufm.active and .restart reach the active host: by UFM's virtual address"
            raise UsageError("UFM does not run on the host that would be restarted", where=NAME, remedy=remedy)
        self._write(claim, ActIntended(act=Act.UFM_RESTART, target=SUBJECT, reason=request.reason))
        deadline.check("restarting UFM")
        try:
            self.service.restart(deadline)
        except OutcomeUnknownError as error:
            control.on_event(Event(node=SUBJECT, text=str(error)))
        except EdgeError as error:
            self._write(claim, ActObserved(act=Act.UFM_RESTART, result=ActResult.FAILED, message=error.message))
            raise

    def _read_back(self, request: RestartRequest, claim: Claim, control: Control) -> Outcome:
        deadline = Deadline.after(request.back_s, control.cancelled, self.timer)
        while (problem := self._problem(deadline)) and deadline.remaining > EVERY_S:
            control.on_event(Event(node=SUBJECT, text=problem))
            deadline.sleep(EVERY_S, "waiting for UFM's model")
        result = ActResult.UNKNOWN if problem else ActResult.DONE
        self._write(claim, ActObserved(act=Act.UFM_RESTART, result=result, message=problem))
        if not problem:
            return Outcome(node=SUBJECT, text="restarted: its model is the fabric")
        remedy = "see UFM's log on its host: /opt/ufm/files/log"
        return Outcome(node=SUBJECT, failure=Failure(kind="stale", message=problem, remedy=remedy))

    def _problem(self, deadline: Deadline) -> str:
        """Return what is still wrong with UFM's model; empty where it is the fabric."""
        try:
            model = self._model(deadline.within(LOOK_S))
        except EdgeError as error:  # the subnet manager restarts, too
            return error.message
        return next(iter((*model.unread, *model.stale)), "")

    def _begun(self) -> bool:
        """Return whether a run has begun a restart lately, and has not read it back."""
        intent, observed = self._last(ActIntended), self._last(ActObserved)
        if intent is None or self.clock.now() - intent.at >= AGAIN:
            return False
        return observed is None or observed.seq < intent.seq

    def _was_refused(self) -> bool:
        """Return whether the last restart did not take place."""
        last = self._last(ActObserved)
        return last is not None and isinstance(last.payload, ActObserved) and last.payload.result is ActResult.FAILED

    def _last(self, kind: type[Payload]) -> JournalEvent | None:
        found = [one for one in self.context.journal.history(Stream.FABRIC, SUBJECT) if isinstance(one.payload, kind)]
        return found[-1] if found else None

    def _write(self, claim: Claim, payload: Payload) -> None:
        self.context.journal.append([NewEvent(Stream.FABRIC, SUBJECT, payload)], claim=claim)
