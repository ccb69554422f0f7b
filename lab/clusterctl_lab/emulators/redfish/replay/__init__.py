"""Replay: a BMC that answers as a real one was recorded, behind the same protocol engine as the lab's own.

`recording.py` reads a recording, `copy.py` makes many machines of it, `profile.py` lays power, boot and sessions over
it, `serve.py` serves it.
"""

from clusterctl_lab.emulators.redfish.replay.copy import Copy, make_copies
from clusterctl_lab.emulators.redfish.replay.landmarks import dangling, find_landmarks
from clusterctl_lab.emulators.redfish.replay.recording import Recording, load_recording
from clusterctl_lab.emulators.redfish.replay.serve import Replay, ReplaySettings, serve_replay
from clusterctl_lab.emulators.redfish.replay.vendor import vendor_of

__all__ = [
    "Copy",
    "Recording",
    "Replay",
    "ReplaySettings",
    "dangling",
    "find_landmarks",
    "load_recording",
    "make_copies",
    "serve_replay",
    "vendor_of",
]
