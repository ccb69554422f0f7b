"""Firmware images on the controller's disk: only an image with the baseline's digest is sent."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.settings.baseline import Image

_BLOCK = 1024 * 1024


class ImageFiles:
    """Meets `ports.Images`."""

    @contextmanager
    def opened(self, image: Image) -> Iterator[BinaryIO]:
        """Yield the file at its start; its digest was computed from this very opening of it."""
        with _opened(image) as file:
            digest = hashlib.sha256()
            while block := file.read(_BLOCK):
                digest.update(block)
            if digest.hexdigest() != image.sha256:
                raise UsageError(
                    f"{image.file} is not the image that was meant: its SHA-256 is {digest.hexdigest()}",
                    where=image.where,
                    remedy="fetch the image again, or correct sha256 after comparing it with the vendor's",
                )
            file.seek(0)
            yield file


def _opened(image: Image) -> BinaryIO:
    try:
        descriptor = os.open(image.file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no path"
        remedy = "put the image there, or correct its path"
        raise UsageError(f"{image.file} cannot be opened: {reason}", where=image.where, remedy=remedy) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"{image.file} is no regular file", where=image.where, remedy="name the image itself")
    return os.fdopen(descriptor, "rb")
