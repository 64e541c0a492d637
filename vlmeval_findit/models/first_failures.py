"""The first calls of a model or server: if all fail in the same words, so would the others."""

from __future__ import annotations

from dataclasses import dataclass, field

# So many calls that fail in the same words are no accident. Over as many different images, they
# are not the fault of an image either, as of its size.
FIRST_CALLS = 5


@dataclass(slots=True)
class FirstFailures:
    """Counts the first calls while all fail in the same words, and none is answered.

    >>> first = FirstFailures()
    >>> for image in "abcd":
    ...     first.note("no", image)
    >>> first.are_hopeless
    False
    >>> first.note("no", "e")
    >>> first.are_hopeless
    True
    """

    words: str = ""
    calls: int = 0
    images: set[object] = field(default_factory=set)
    any_answered: bool = False

    def answered(self) -> None:
        """Note a call that was answered: later failures say nothing of all calls."""
        self.any_answered = True

    def note(self, words: str, images: object) -> None:
        """Note a failed call over some images; other words than before begin the count anew."""
        if words != self.words:
            self.begin_anew()
            self.words = words
        self.calls += 1
        self.images.add(images)

    def begin_anew(self) -> None:
        self.words = ""
        self.calls = 0
        self.images = set()

    @property
    def are_repeated(self) -> bool:
        return not self.any_answered and self.calls >= FIRST_CALLS

    @property
    def are_hopeless(self) -> bool:
        """Whether no further call would be answered either."""
        return not self.any_answered and len(self.images) >= FIRST_CALLS
