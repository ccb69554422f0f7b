"""One copy of a recording: its resources, with the identities of that copy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from clusterctl_lab.emulators.redfish.replay.copies import choose_stride
from clusterctl_lab.emulators.redfish.replay.recording import Recording
from clusterctl_lab.emulators.redfish.resource import Resource


class Copy(Mapping[str, Resource]):
    """Resources by path without trailing slash, each parsed again at each request."""

    def __init__(self, recording: Recording, distance: int = 0) -> None:
        self._recording = recording
        self.identities = tuple(identity.counted_on(distance) for identity in recording.identities)
        """This machine's serials, MAC addresses, GUIDs, in the recording's order."""
        self._moved = {path.text(self.identities): was for was, path in recording.moving.items()}

    def __getitem__(self, path: str) -> Resource:
        recorded = self._recording.resources[self._recorded_path(path)]
        body: Resource = json.loads(recorded.text(self.identities))
        return body

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._recorded_path(path) in self._recording.resources

    def __iter__(self) -> Iterator[str]:
        here = {was: now for now, was in self._moved.items()}
        return (here.get(path, path) for path in self._recording.resources)

    def __len__(self) -> int:
        return len(self._recording.resources)

    def _recorded_path(self, path: str) -> str:
        """Where it stands in the recording; nowhere for a path that has moved away in this copy."""
        if path in self._moved:
            return self._moved[path]
        return "" if path in self._recording.moving else path


def make_copies(recording: Recording, count: int, seed: int = 0) -> tuple[Copy, ...]:
    """So many machines like the recorded one; with one, it is the recorded one. Raises `UsageError` where serials run
    out.
    """
    if count == 1:
        return (Copy(recording),)
    stride = choose_stride(recording.identities, count + 1, seed)
    return tuple(Copy(recording, number * stride) for number in range(1, count + 1))
