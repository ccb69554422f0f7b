"""Quirks of what a BMC answers and how the answer arrives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.boot import BootTarget
from clusterctl_lab.emulators.redfish.context import BmcContext
from clusterctl_lab.emulators.redfish.exchange import Answer, Delivery, Request
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.quirks.behaviour import Behaviour, Sometimes

BROKEN_ONE_IN = 8
INCOMPLETE_ONE_IN = 4
REDIRECTED_ONE_IN = 6
RETRY_AFTER_S = 1


class _Occasional(Behaviour):
    """A quirk that hits one request after every three to eight."""

    def __init__(self, context: BmcContext, quirk: BmcQuirk) -> None:
        super().__init__(context, quirk)
        self.sometimes = Sometimes(self.random)


class Spurious401(_Occasional):
    """Only requests with credentials are hit, logins too."""

    def before(self, request: Request) -> Answer | None:
        if (request.token or request.authorization or request.writes) and self.sometimes.now():
            raise RefusedError(Problem.UNAUTHORIZED)
        return None


class Unavailable(_Occasional):
    def before(self, request: Request) -> Answer | None:
        del request
        if self.sometimes.now():
            raise RefusedError(Problem.UNAVAILABLE, str(RETRY_AFTER_S))
        return None


class CutsBodies(_Occasional):
    def after(self, request: Request, answer: Answer) -> Answer:
        if request.writes or answer.content is None or not self.sometimes.now():
            return answer
        return replace(answer, delivery=Delivery.CUT)


class LosesAnswers(Behaviour):
    def after(self, request: Request, answer: Answer) -> Answer:
        login = request.method == "POST" and request.path == self.context.profile.paths.sessions
        changed = request.writes and request.method != "DELETE" and answer.status < 300
        return replace(answer, delivery=Delivery.LOST) if changed and not login else answer


class Slow(Behaviour):
    def after(self, request: Request, answer: Answer) -> Answer:
        del request
        return replace(answer, delay=self.random.uniform(*self.context.machine.bmc.latency_s))


class Redirects(Behaviour):
    """Redirect to the BMC itself only: a client must not follow a redirect to another host."""

    def before(self, request: Request) -> Answer | None:
        if request.writes or request.slash or not self.affects(request, REDIRECTED_ONE_IN):
            return None
        return Answer(308, headers={"Location": f"{request.path}/"})


class BrokenJson(Behaviour):
    def after(self, request: Request, answer: Answer) -> Answer:
        content = answer.content
        if not content or not self.damages(request, answer, BROKEN_ONE_IN):
            return answer
        return replace(answer, raw=content[: len(content) * 2 // 3])


class _OneProperty(Behaviour):
    """A quirk of one property of the affected resources, always the same one.

    Spared are the properties that identify a resource, and the members of a collection: without them it would be
    another, valid list.
    """

    def after(self, request: Request, answer: Answer) -> Answer:
        if answer.body is None or not self.damages(request, answer, INCOMPLETE_ONE_IN):
            return answer
        names = [name for name in answer.body if not name.startswith(("@", "Members")) and name != "Id"]
        if not names:
            return answer
        return replace(answer, body=self.changed(answer.body, names[len(request.path) % len(names)]))

    def changed(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        raise NotImplementedError


class MissingMembers(_OneProperty):
    def changed(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        return {key: value for key, value in body.items() if key != name}


class WrongTypes(_OneProperty):
    def changed(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        value = body[name]
        if isinstance(value, (bool, int, float)):
            return {**body, name: str(value)}
        return {**body, name: [value] if isinstance(value, str) else None}


class RevertsBoot(Behaviour):
    def after(self, request: Request, answer: Answer) -> Answer:
        boot_patch = request.method == "PATCH" and request.path == self.context.profile.paths.boot_patch
        if boot_patch and answer.status < 300:
            state = self.context.state
            state.boot_target, state.boot_once, state.boot_mode, state.boot_uri = BootTarget.NONE, False, "Legacy", ""
            state.boot_order = ()
        return answer


class NoSessions(Behaviour):
    def before(self, request: Request) -> Answer | None:
        if request.method == "POST" and request.path == self.context.profile.paths.sessions:
            raise RefusedError(Problem.METHOD_NOT_ALLOWED)
        return None


class FailsExpand(Behaviour):
    def before(self, request: Request) -> Answer | None:
        return Answer(500, {}) if "$expand" in request.query else None


class NoUtf8(Behaviour):
    """The text is an asset tag that nothing reads."""

    def after(self, request: Request, answer: Answer) -> Answer:
        if request.writes or request.path != self.context.profile.paths.system or answer.body is None:
            return answer
        tagged = replace(answer, body={**answer.body, "AssetTag": "@tag@"})
        return replace(answer, raw=(tagged.content or b"").replace(b"@tag@", b"M\xfcnchen"))


class BlankFailure(Behaviour):
    def after(self, request: Request, answer: Answer) -> Answer:
        if request.writes or answer.body is None or "FailurePredicted" not in answer.body:
            return answer
        return replace(answer, body={**answer.body, "FailurePredicted": ""})
