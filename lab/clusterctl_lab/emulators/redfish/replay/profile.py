"""A recorded machine as the protocol engine serves it: its tree, with power, boot and sessions over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from clusterctl_lab import markers
from clusterctl_lab.boot import BootTarget
from clusterctl_lab.emulators.redfish.profile import BiosAttribute, Log, Paths, Profile, RefusedError
from clusterctl_lab.emulators.redfish.replay.copy import Copy
from clusterctl_lab.emulators.redfish.replay.landmarks import Landmarks
from clusterctl_lab.emulators.redfish.replay.recording import ROOT
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head
from clusterctl_lab.emulators.redfish.traits import Etag, IfMatch, Traits
from clusterctl_lab.emulators.redfish.view import LogRecord, View

_LOG_ENTRY = "LogEntry.v1_4_0.LogEntry"
_SESSION = "Session.v1_0_0.Session"


@dataclass(frozen=True, slots=True)
class Replayed:
    """`vendor` words the errors, and behaves where no recording shows how. Of all that can be written only power, boot,
    sessions and the clearing of the log are taken.
    """

    copy: Copy
    landmarks: Landmarks
    vendor: Profile
    bios: Mapping[str, BiosAttribute] = field(default_factory=dict)
    questions: Mapping[str, Callable[[View], Resource]] = field(default_factory=dict)

    @property
    def paths(self) -> Paths:
        marks = self.landmarks
        return Paths(
            root=ROOT,
            sessions=marks.sessions,
            system=marks.system,
            reset=marks.reset,
            clear_log={marks.clear_log: Log.SEL} if marks.clear_log else {},
            boot=marks.settings,
        )

    @property
    def traits(self) -> Traits:
        """The vendor's, as far as the recording does not show others. Without an ETag nothing can ask for one."""
        marks, traits = self.landmarks, self.vendor.traits
        boot = replace(traits.boot, targets=marks.boot_targets, modes=marks.boot_modes)
        if_match = IfMatch.IGNORED if marks.etag is Etag.NONE else traits.if_match
        return replace(traits, reset_types=marks.reset_types, boot=boot, etag=marks.etag, if_match=if_match)

    def tree(self, view: View) -> Mapping[str, Resource]:
        return _Overlaid(self.copy, self.landmarks, view)

    def refusal(self, refused: RefusedError) -> tuple[int, Resource]:
        return self.vendor.refusal(refused)

    def success(self) -> Resource:
        return self.vendor.success()

    def login_record(self, at: str, user: str, client: str) -> LogRecord:
        return self.vendor.login_record(at, user, client)


class _Overlaid(Mapping[str, Resource]):
    """The recorded resources; those that requests change are made from the view."""

    def __init__(self, copy: Copy, marks: Landmarks, view: View) -> None:
        self._copy = copy
        self._marks = marks
        self._view = view

    def __getitem__(self, path: str) -> Resource:
        if path in self._changed:
            return self._changed[path]
        if self._is_recorded_session(path):
            raise KeyError(path)
        return self._copy[path]

    def __contains__(self, path: object) -> bool:
        if path in self._changed:
            return True
        return isinstance(path, str) and not self._is_recorded_session(path) and path in self._copy

    def __iter__(self) -> Iterator[str]:
        yield from self._changed
        yield from (path for path in self._copy if path not in self._changed and not self._is_recorded_session(path))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _is_recorded_session(self, path: str) -> bool:
        """Sessions of the time of the recording are over."""
        return path.startswith(f"{self._marks.sessions}/")

    @cached_property
    def _changed(self) -> Mapping[str, Resource]:
        found = {ROOT: self._marked_root(), **self._sessions(), **self._power()}
        if self._marks.log:
            found[self._marks.log] = self._log()
        return {path: _stamped(body) for path, body in found.items()}

    def _marked_root(self) -> Resource:
        """Return the recorded service root with the marker of a simulated BMC."""
        root = self._copy[ROOT]
        oem = root.get("Oem")
        return {**root, "Oem": {**(oem if isinstance(oem, dict) else {}), **markers.BMC_OEM}}

    def _power(self) -> dict[str, Resource]:
        """The system and the chassis it stands in, with the power and boot of now."""
        marks, view = self._marks, self._view
        places = (marks.system, marks.settings, *marks.chassis)
        found = {path: self._copy[path] for path in places if path in self._copy}
        for body in found.values():
            if "PowerState" in body:
                body["PowerState"] = "On" if view.power else "Off"
            if isinstance(body.get("Boot"), dict):
                body["Boot"] |= self._override()
        return found

    def _override(self) -> Resource:
        """The boot override in force."""
        view = self._view
        enabled = "Once" if view.boot_once else "Continuous"
        return {
            "BootSourceOverrideTarget": view.boot_target.value,
            "BootSourceOverrideEnabled": "Disabled" if view.boot_target is BootTarget.NONE else enabled,
            "BootSourceOverrideMode": view.boot_mode,
            **({"HttpBootUri": view.boot_uri} if view.boot_uri else {}),
        }

    def _sessions(self) -> dict[str, Resource]:
        """DMTF Session schema."""
        marks = self._marks
        found = {
            f"{marks.sessions}/{session.id}": {
                **head(f"{marks.sessions}/{session.id}", _SESSION, "User Session"),
                "UserName": session.user,
            }
            for session in self._view.sessions
        }
        recorded = self._copy.get(marks.sessions, {})
        members = collection(marks.sessions, "SessionCollection", "Session Collection", found)
        return {marks.sessions: {**members, **recorded, **_only(members, "Members")}, **found}

    def _log(self) -> Resource:
        """The recorded entries that are still there, then what has happened since (DMTF LogEntry schema)."""
        path = self._marks.log
        body = self._copy[path]
        recorded = {entry_key(entry): entry for entry in recorded_entries(self._copy, path)}
        members = []
        for number, record in enumerate(self._view.sel, start=1):
            old = recorded.get((record.at, record.severity, record.message))
            members.append(old if old is not None else _entry(f"{path}/replay-{number}", record))
        return {**body, "Members": members, "Members@odata.count": len(members)}


def recorded_entries(copy: Copy, path: str) -> list[Resource]:
    """The entries of a log, embedded in the collection or on their own."""
    listed = copy[path].get("Members") if path in copy else None
    members = [member for member in listed if isinstance(member, dict)] if isinstance(listed, list) else []
    return [_whole(copy, member) for member in members]


def entry_key(entry: Resource) -> tuple[str, str, str]:
    """Time, severity and message: what distinguishes one entry from another."""
    created, severity, message = (entry.get(key) for key in ("Created", "Severity", "Message"))
    return str(created or ""), str(severity or ""), str(message or "")


def _whole(copy: Copy, member: Resource) -> Resource:
    path = str(member.get("@odata.id", "")).rstrip("/")
    return copy[path] if set(member) == {"@odata.id"} and path in copy else member


def _entry(path: str, record: LogRecord) -> Resource:
    return {
        **head(path, _LOG_ENTRY, "Log Entry"),
        "Created": record.at,
        "EntryType": "SEL",
        "Message": record.message,
        "Severity": record.severity,
    }


def _only(body: Resource, prefix: str) -> Resource:
    return {key: value for key, value in body.items() if key.startswith(prefix)}


def _stamped(body: Resource) -> Resource:
    """With an ETag of its own where it was recorded with one: it is another representation now."""
    recorded = body.get("@odata.etag")
    if not isinstance(recorded, str):
        return body
    bare = {key: value for key, value in body.items() if key != "@odata.etag"}
    digest = hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()[:16].upper()
    return {**bare, "@odata.etag": f'{"W/" if recorded.startswith("W/") else ""}"{digest}"'}
