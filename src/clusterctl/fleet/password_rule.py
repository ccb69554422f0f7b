"""What the site's generated passwords are made of: pure, the dice are an argument."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError

UPPER, LOWER, DIGITS = "ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnopqrstuvwxyz", "23456789"
"""Without 0, O, 1, I and l: somebody may have to type one at a console."""
SIGNS = "-_."
"""Signs that no BMC, shell, URL or form is known to stumble over."""
SHORTEST = 8
"""A shorter password is not worth the change."""


class Characters(enum.Enum):
    """Each class of the chosen ones is in each password: BMCs that demand classes demand three at most of these four.

    Letters and digits are taken by all vendors; signs are for BMCs that insist on one.
    """

    LETTERS_AND_DIGITS = "letters_and_digits"
    WITH_SIGNS = "with_signs"

    @property
    def classes(self) -> tuple[str, ...]:
        plain = (UPPER, LOWER, DIGITS)
        return plain if self is Characters.LETTERS_AND_DIGITS else (*plain, SIGNS)


@dataclass(frozen=True, slots=True)
class PasswordRule:
    """How long the site wants them, and of which characters."""

    length: int = 16
    characters: Characters = Characters.LETTERS_AND_DIGITS

    def length_for(self, shortest: int | None, longest: int | None) -> int:
        """As many characters as the site says, within what this BMC takes; 0 and None are limits that it keeps to
        itself. Raises `EdgeError` where that is too short to be worth it.
        """
        wanted = max(self.length, shortest or 0)
        found = min(wanted, longest) if longest else wanted
        if found < SHORTEST:
            raise EdgeError(
                f"the BMC takes passwords of {found} characters at most: too short to be worth the change",
                remedy="update the BMC's firmware",
            )
        return found

    def draw(self, length: int, pick: Callable[[str], str]) -> str:
        """A password with a character of each class. `pick` chooses one of the characters that it is given, each as
        likely as any other.
        """
        alphabet = "".join(self.characters.classes)
        while True:
            drawn = "".join(pick(alphabet) for _ in range(length))
            if self.fits(drawn, length):
                return drawn

    def fits(self, password: str, length: int) -> bool:
        """Whether it is one that `draw` could have drawn."""
        classes = self.characters.classes
        letters = set(password)
        return len(password) == length and letters <= set("".join(classes)) and all(letters & set(c) for c in classes)
