"""One machine's BMC: methods, preconditions and errors of the Redfish protocol (DMTF DSP0266)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from clusterctl_lab.emulators.redfish import etags, queries
from clusterctl_lab.emulators.redfish.access import Access
from clusterctl_lab.emulators.redfish.background import Background
from clusterctl_lab.emulators.redfish.context import BmcContext
from clusterctl_lab.emulators.redfish.download import download
from clusterctl_lab.emulators.redfish.exchange import Answer, Delivery, Request
from clusterctl_lab.emulators.redfish.profile import Problem, Profile, RefusedError
from clusterctl_lab.emulators.redfish.quirks import ActiveQuirks
from clusterctl_lab.emulators.redfish.resource import Resource
from clusterctl_lab.emulators.redfish.services.accounts import Accounts
from clusterctl_lab.emulators.redfish.services.bios import Bios
from clusterctl_lab.emulators.redfish.services.boot import BootSettings
from clusterctl_lab.emulators.redfish.services.boot_certificates import BootCertificates
from clusterctl_lab.emulators.redfish.services.certificates import Certificates
from clusterctl_lab.emulators.redfish.services.logs import Logs
from clusterctl_lab.emulators.redfish.services.media import VirtualMedia
from clusterctl_lab.emulators.redfish.services.power import PowerButton
from clusterctl_lab.emulators.redfish.services.tasks import Tasks
from clusterctl_lab.emulators.redfish.services.update import Fetch, Updates
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import LogRecord, View
from clusterctl_lab.world import World

Respond = Callable[[Request, Traits], Answer]


class Bmc:
    """Answers requests for one machine, from the world as it is at that moment."""

    def __init__(
        self,
        world: World,
        name: str,
        profile: Profile,
        clock: Callable[[], float] = time.monotonic,
        fetch: Fetch = download,
    ) -> None:
        self._context = BmcContext(world, name, profile, Background(name))
        self._access = Access(self._context, clock)
        self._quirks = ActiveQuirks(self._context)
        self._logs = Logs(self._context)
        self._tasks = Tasks(self._context)
        self._bios = Bios(self._context, self._tasks)
        self.certificates = Certificates(self._context)
        self._rendered: tuple[View, Mapping[str, Resource]] | None = None
        self._writes = self._all_writes(fetch)
        self.absence: Callable[[float], Awaitable[None]] | None = None
        """Takes the BMC off the network for this many seconds while it restarts; the server sets it."""

    @property
    def rejected(self) -> int:
        """How many wrong logins it has seen."""
        return self._access.rejected

    def answer(self, request: Request) -> Answer:
        """Return the answer to any request; a refusal is an answer too. Quirks act before and after."""
        request = replace(request, path=request.path.rstrip("/"), slash=request.path.endswith("/"))
        quirks = self._quirks.behaviours()
        traits = self._traits()
        if traits.closes_reused and request.reused:
            return Answer(0, delivery=Delivery.LOST)
        try:
            early = next(filter(None, (quirk.before(request) for quirk in quirks)), None)
            answer = early or self._serve(request, traits)
        except RefusedError as refused:
            answer = self._refusal(refused, request.path, traits)
        for quirk in quirks:
            answer = quirk.after(request, answer)
        return answer

    async def close(self) -> None:
        await self._context.background.close()

    async def restart(self) -> None:
        """As Manager.Reset has it: sessions end, and nothing answers for a while."""
        self._access.restart()
        if self.absence is not None:
            await self.absence(self._context.world.delays.bmc_restart)

    def _all_writes(self, fetch: Fetch) -> Mapping[tuple[str, str], Respond]:
        """Return the writes that this vendor supports; empty `Paths` of a vendor are not served."""
        context = self._context
        services = (
            PowerButton(context, self.restart),
            BootSettings(context),
            BootCertificates(context),
            Accounts(context),
            self._logs,
            VirtualMedia(context),
            self.certificates,
            self._tasks,
            self._bios,
            Updates(context, self._tasks, fetch, self.restart),
        )
        writes: dict[tuple[str, str], Respond] = {("POST", context.profile.paths.sessions): self._log_in}
        writes |= {("POST", path): self._ask for path in context.profile.questions}
        for service in services:
            writes |= {(method, path): write for (method, path), write in service.writes.items() if path}
        return writes

    def _traits(self) -> Traits:
        return self._quirks.traits(self._context.profile.traits)

    def _serve(self, request: Request, traits: Traits) -> Answer:
        if traits.refuses_identity and request.encoding == "identity":
            raise RefusedError(Problem.NOT_ACCEPTABLE, "Accept-Encoding")
        self._access.admit(request, traits)
        self._require_password_changed(request, traits)
        tree = self._tree(traits)
        methods = self._methods(request.path, tree)
        if not methods:
            raise RefusedError(Problem.NOT_FOUND, request.path)
        if request.method not in methods:
            raise RefusedError(Problem.METHOD_NOT_ALLOWED)
        if request.method == "DELETE":
            self._access.sessions.delete(request.path.rsplit("/", 1)[-1])
            return Answer(204)
        write = self._writes.get((request.method, request.path))
        if write is None:
            found = queries.read(tree, request.path, request.query, self._context.profile.paths.root)
            body, headers = etags.tagged(found, traits.etag)
            return Answer(200, body, headers)
        self._require_precondition(request, tree, traits)
        return write(request, traits)

    def _methods(self, path: str, tree: Mapping[str, Resource]) -> tuple[str, ...]:
        """Return the methods that a path allows; empty where the path does not exist."""
        reads = ("GET", "HEAD") if path in tree else ()
        writes = tuple(method for method, target in self._writes if target == path)
        is_session = bool(reads) and path.startswith(self._context.profile.paths.sessions + "/")
        return (*reads, *writes, *(("DELETE",) if is_session else ()))

    def _require_password_changed(self, request: Request, traits: Traits) -> None:
        """Refuse everything but the account, sessions and the root while the factory's password is set (DSP0266,
        "Password change required handling").
        """
        paths = self._context.profile.paths
        account_service = paths.accounts.rpartition("/")[0] or paths.sessions
        free = request.path in ("/redfish", paths.root) or request.path.startswith((paths.sessions, account_service))
        if traits.must_change_password and not free:
            raise RefusedError(Problem.PASSWORD_CHANGE_REQUIRED, f"{paths.accounts}/{traits.account_id}")

    def _require_precondition(self, request: Request, tree: Mapping[str, Resource], traits: Traits) -> None:
        paths = self._context.profile.paths
        settings = (paths.system, paths.boot_patch, paths.bios_settings)
        if traits.post_busy and self._context.state.posting and request.method == "PATCH" and request.path in settings:
            raise RefusedError(Problem.POST_BUSY)
        if request.path != paths.sessions:
            etags.check(request.if_match, tree[request.path] if request.method == "PATCH" else None, traits.if_match)

    def _log_in(self, request: Request, traits: Traits) -> Answer:
        session, token = self._access.log_in(request, traits)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self._logs.audit(self._context.profile.login_record(at, session.user, request.client))
        location = f"{self._context.profile.paths.sessions}/{session.id}"
        return Answer(201, self._tree(traits)[location], {"X-Auth-Token": token, "Location": location})

    def _ask(self, request: Request, traits: Traits) -> Answer:
        request.json()
        return Answer(200, self._context.profile.questions[request.path](self._view(traits)))

    def _tree(self, traits: Traits) -> Mapping[str, Resource]:
        """All resources as of now; rendered again only when something changed."""
        view = self._view(traits)
        if self._rendered is None or self._rendered[0] != view:
            self._rendered = (view, self._context.profile.tree(view))
        return self._rendered[1]

    def _view(self, traits: Traits) -> View:
        state = self._context.state
        return View(
            machine=self._context.machine,
            power=state.power,
            running=state.running,
            posting=state.posting,
            boot_target=state.boot_target,
            boot_once=state.boot_once,
            boot_mode=state.boot_mode,
            boot_uri=state.boot_uri,
            boot_authorities=state.boot_authorities,
            boot_order=state.boot_order,
            sel=tuple(LogRecord(*entry) for entry in state.sel),
            lifecycle_log=self._logs.lifecycle,
            sessions=self._access.sessions.views(traits.session_timeout),
            bios=self._bios.current,
            pending=self._bios.pending,
            media=tuple(sorted(state.media.items())),
            tasks=self._tasks.views,
            locked=self._access.locked(traits),
            must_change_password=traits.must_change_password,
        )

    def _refusal(self, refused: RefusedError, path: str, traits: Traits) -> Answer:
        status, body = self._context.profile.refusal(refused)
        if traits.already and refused.problem in (Problem.ALREADY_ON, Problem.ALREADY_OFF):
            status = traits.already
        return Answer(status, body, self._refusal_headers(refused, path, traits))

    def _refusal_headers(self, refused: RefusedError, path: str, traits: Traits) -> Mapping[str, str]:
        if refused.problem is Problem.UNAUTHORIZED:
            return {"WWW-Authenticate": 'Basic realm="RedfishService"'}
        if refused.problem is Problem.METHOD_NOT_ALLOWED:
            return {"Allow": ", ".join(self._methods(path, self._tree(traits)))}
        if refused.problem is Problem.UNAVAILABLE:
            return {"Retry-After": refused.args_[0]}
        return {}
