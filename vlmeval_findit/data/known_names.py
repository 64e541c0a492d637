"""Which image or class of a set another program means by a name or an id, however it is spelled."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

from ..boxes import plain_label
from .custom.class_rules import label_text

Spelling = Callable[[str], str]


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _folded(name: str) -> str:
    return _composed(_composed(name).casefold())


def _folded_label(name: str) -> str:
    return _folded(label_text(name))


def _folded_plain_label(name: str) -> str:
    return plain_label(_folded_label(name))


# What of paths and ids is compared, one after the other: each leaves out more than the one before
AS_STATED: tuple[Spelling, ...] = (str, _composed, _folded)
# What of classes is compared, in the same way
AS_LABELS: tuple[Spelling, ...] = (label_text, _folded_label, _folded_plain_label)
# What of labels is compared where the metric's rule holds, as in replies
AS_SCORED: tuple[Spelling, ...] = (str, plain_label)


class KnownNames:
    """What names mean: an exact spelling wins, and what may mean two things is no guess.

    Args:
        names: pairs of a name and what it means.
        spellings: what of names is compared.

    >>> classes = [(name, name) for name in ("Cat", "cat", "T-shirt")]
    >>> known = KnownNames(classes, AS_LABELS)
    >>> [known.find(name) for name in ("cat", "CAT", "tshirt", "dog")]
    [['cat'], ['Cat', 'cat'], ['T-shirt'], []]
    """

    def __init__(self, names: Iterable[tuple[str, str]], spellings: Sequence[Spelling]) -> None:
        pairs = list(dict.fromkeys(names))
        self._tables: list[tuple[Spelling, dict[str, list[str]]]] = []
        for spelling in spellings:
            table: dict[str, dict[str, None]] = {}
            for name, meant in pairs:
                table.setdefault(spelling(name), {})[meant] = None
            self._tables.append((spelling, {key: [*found] for key, found in table.items()}))
        self._found: dict[str, list[str]] = {}  # Files name few things again and again.

    def __contains__(self, name: str) -> bool:
        """Tell whether a name is known in this very spelling: the first of those compared."""
        spelling, table = self._tables[0]
        return spelling(name) in table

    def find(self, name: str) -> Sequence[str]:
        """Return what a name may mean, by the first spelling that is known: nothing, one, more."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._look_up(name)
        return found

    def _look_up(self, name: str) -> list[str]:
        for spelling, table in self._tables:
            key = spelling(name)
            if key in table and key:  # Nothing is left of "?" without punctuation.
                return table[key]
        return []


class KnownImages:
    """Images of a set by their paths, as other programs write these.

    >>> images = KnownImages(["a/1.jpg", "b/1.jpg", "2.png"])
    >>> [images.find(name) for name in ("C:\\\\b\\\\1.jpg", "b/1.jpg", "/data/2.PNG", "2")]
    [['a/1.jpg', 'b/1.jpg'], ['b/1.jpg'], ['2.png'], ['2.png']]
    """

    def __init__(self, names: Iterable[str]) -> None:
        paths = [(name, PurePosixPath(name)) for name in names]
        self._whole = KnownNames(((name, name) for name, _ in paths), AS_STATED)
        self._bases = KnownNames(((path.name, name) for name, path in paths), AS_STATED)
        self._stems = KnownNames(((path.stem, name) for name, path in paths), AS_STATED)

    def __contains__(self, name: str) -> bool:
        """Tell whether this very path is known."""
        return name in self._whole

    def find(self, name: str) -> Sequence[str]:
        """Return which images may be meant: by the path, else its last part, without suffix."""
        path = name.replace("\\", "/")
        base = PurePosixPath(path).name
        return self._whole.find(path) or self._bases.find(base) or self._stems.find(base)


def id_text(value: object) -> str:
    """Return an id as a text: JSON has numbers of ids with a point and as texts, too.

    >>> [id_text(value) for value in (7, 7.0, "7", "07")]
    ['7', '7', '7', '07']
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
