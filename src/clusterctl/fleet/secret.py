"""What holds a secret stays in this process."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class NeverPickled:
    """Mixin for objects with a secret in them: they are never pickled, and so never written or sent by mistake.

    Their secret fields are `field(repr=False)`, too.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds a secret and is never pickled")
