"""A stand-in for a vendor's package: the real name, version and dependencies, and the files that roles read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl_lab.emulators.apt.tools import run


@dataclass(frozen=True, slots=True)
class StandIn:
    """One package; `files` maps a path to its content and mode, `postinst` runs on the host after unpacking."""

    name: str
    version: str
    depends: tuple[str, ...] = ()
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    postinst: str = ""

    @property
    def control(self) -> str:
        """The control file, deb-control(5)."""
        depends = f"Depends: {', '.join(self.depends)}\n" if self.depends else ""
        return (
            f"Package: {self.name}\nVersion: {self.version}\nArchitecture: all\nSection: misc\nPriority: optional\n"
            f"Maintainer: clusterctl lab <lab@localhost>\n{depends}"
            "Description: stand-in of the clusterctl rehearsal lab\n Drives no hardware.\n"
        )

    def build(self, into: Path, scratch: Path) -> None:
        """Build the `.deb` into the folder `into`."""
        tree = scratch / f"{self.name}_{self.version}"
        files = {**self.files, "/DEBIAN/control": (self.control, 0o644)}
        if self.postinst:
            files["/DEBIAN/postinst"] = (self.postinst, 0o755)
        for path, (content, mode) in files.items():
            target = tree / path.lstrip("/")
            target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
            target.chmod(mode)
        tree.chmod(0o755)
        run("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(tree), str(into))
