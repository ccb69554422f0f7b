"""Stand-ins for tools of hardware that the lab lacks, in the real tools' formats, rendered from the lab's machines."""

from clusterctl_lab.emulators.host_tools.files import (
    CONTAINER,
    EXPORTER,
    GPU_IMAGE,
    guest_tools,
    lower_files,
    machine_files,
    programs,
)

__all__ = ["CONTAINER", "EXPORTER", "GPU_IMAGE", "guest_tools", "lower_files", "machine_files", "programs"]
