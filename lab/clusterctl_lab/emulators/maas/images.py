"""Which operating systems MAAS has imported, and with which kernels."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl_lab.emulators.maas.refusal import bad_form

DEFAULT = "ubuntu/focal"


@dataclass(frozen=True, slots=True)
class Image:
    """`name` as `osystem/series`; the first of `kernels` is the default."""

    name: str
    kernels: tuple[str, ...]

    @property
    def osystem(self) -> str:
        return self.name.partition("/")[0]

    @property
    def shown(self) -> str:
        """As MAAS lists it: an uploaded one by its series alone."""
        return self.series if self.osystem == "custom" else self.name

    @property
    def series(self) -> str:
        return self.name.partition("/")[2]


class Images:
    """The imported ones: as in the recordings."""

    def __init__(self) -> None:
        self.all = (
            Image("custom/rocky9-custom", ("ga-20.04",)),
            Image("ubuntu/focal", ("ga-20.04", "hwe-20.04")),
            Image("ubuntu/jammy", ("ga-22.04", "hwe-22.04")),
        )

    def choose(self, series: str, kernel: str, architecture: str) -> tuple[Image, str]:
        """Return the image for `distro_series` (empty: the default) and its kernel; raise 400 with MAAS's message."""
        wanted = series or DEFAULT
        image = next((image for image in self.all if wanted in (image.name, image.series)), None)
        if image is None:
            choices = ", ".join(f"'{name}'" for name in ("", *(image.name for image in self.all)))
            raise bad_form(distro_series=f"'{series}' is not a valid distro_series.  It should be one of: {choices}.")
        if kernel and kernel not in image.kernels:
            raise bad_form(hwe_kernel=f"{kernel} is not available for {image.name} on {architecture}.")
        return image, kernel or image.kernels[0]
