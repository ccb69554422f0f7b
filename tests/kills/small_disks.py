"""A site whose state lies on small disks of its own, so that they can be full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

SIZE = "8m"


@dataclass(frozen=True)
class SmallDisks:
    """`journal` holds the journal and the host keys, `ansible` the folders of Ansible's runs."""

    journal: Path
    ansible: Path

    def make_room(self) -> None:
        for folder in (self.journal, self.ansible):
            (folder / "ballast").unlink(missing_ok=True)


@contextmanager
def small_disks(site: Path) -> Iterator[SmallDisks]:
    """Mounted before the first run, unmounted at the end; what is on them is gone then."""
    disks = SmallDisks(site / "state", site / "state/ansible")
    with ExitStack() as mounted:
        for folder in (disks.journal, disks.ansible):
            folder.mkdir(mode=0o700)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", folder], check=True)
            mounted.callback(_unmount, folder)
        yield disks


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", folder], check=True)
