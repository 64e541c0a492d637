"""Rules for classes: which are renamed, left out, or mark regions where nothing counts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...core import not_there, quoted_value, suggestion
from ..annotated_samples import AnnotationError
from ..ledger import Ledger
from .csv_lines import cell_of_several_lines, csv_lines, lines_in
from .text_encodings import text_of
from .uncounted_objects import says_not_to_count

# Signs without a width, which nobody sees in a label
_UNSEEN = dict.fromkeys(map(ord, "\u200b\u2060\ufeff"))


@lru_cache(10_000)
def label_text(text: str) -> str:
    """Return a label as it is asked for: in NFC, with single blanks; files have others, too.

    >>> label_text(" red\\u00a0 cat ")
    'red cat'
    """
    return " ".join(unicodedata.normalize("NFC", text).translate(_UNSEEN).split())


def label_at(text: str, where: object) -> str:
    """Return a label as :func:`label_text` does, or raise an AnnotationError for several lines.

    What follows on the next line is mostly another object, as where a quote is missing.
    """
    lines = lines_in(text)
    if lines > 1:
        raise AnnotationError(
            f"{where}: the label {quoted_value(text)} has {lines} lines: is a quote or a "
            "comma missing? Write it on one line"
        )
    return label_text(text)


def check_class_names(names: Mapping[Any, str], where: object, ledger: Ledger) -> None:
    """Refuse classes of one name; those that differ in blanks only are one.

    ``names`` are those in the file, by their ids or numbers; "" is none.
    """
    keys: dict[str, Any] = {}
    for key, name in names.items():
        label = label_at(name, f"{where}: {key!r}")
        if not label:
            continue
        before = keys.setdefault(label, key)
        if before == key:
            continue
        if names[before] == name:
            raise AnnotationError(
                f"{where}: {before!r} and {key!r} have one name, {name!r}: whose boxes are meant? "
                "Name them differently, or join them in the file"
            )
        what = "classes whose names differ in blanks only: they are one"
        ledger.note(what, f"{where}: {before!r} and {key!r}", unlike_file=True)


@dataclass(frozen=True, slots=True)
class ClassRules:
    """What the user says of classes; names as :func:`label_text` has those in the file."""

    ignore: tuple[str, ...] = ()  # Their boxes are regions where no answer counts
    drop: tuple[str, ...] = ()  # Their boxes are left out
    rename: Mapping[str, str] = field(default_factory=dict)  # New names by old ones

    def name_of(self, label: str) -> str:
        """Return the name that is asked for.

        >>> ClassRules(rename={"n07805966": "pepper"}).name_of("n07805966")
        'pepper'
        """
        return self.rename.get(label, label)

    def text_of_code(self, code: int, where: str) -> str:
        """Return the text of a class that is a number, for which a rule must be stated.

        Raises an AnnotationError if there is none.
        """
        if str(code) not in (*self.rename, *self.drop, *self.ignore):
            raise AnnotationError(
                f"{where}: the category is the number {code}: type --rename-class {code}=NAME, and "
                "so for each; the data set's README lists the names"
            )
        return str(code)

    def check(self, source: Path, classes: Collection[str]) -> None:
        """Raise an AnnotationError for a rule of an unknown class, or for two rules of one class.

        A list of renames in a file may name more classes than there are.
        """
        for flag, names in (("--ignore-class", self.ignore), ("--drop-class", self.drop)):
            for name in names:
                if name not in classes:
                    raise AnnotationError(
                        f"{source}: {flag} {name}: unknown class{suggestion(name, classes)}"
                    )
        both = sorted(set(self.ignore) & set(self.drop))
        if both:
            raise AnnotationError(
                f"--ignore-class {both[0]} and --drop-class {both[0]}: leave one of them out"
            )
        if self.rename and not set(self.rename) & set(classes):
            old = next(iter(self.rename))
            raise AnnotationError(
                f"{source}: --rename-class {old}={self.rename[old]}: unknown class"
                f"{suggestion(old, classes)}"
            )

    def undecided(self, classes: Collection[str]) -> list[str]:
        """Return classes whose name says that they do not count, and that no rule is about.

        >>> ClassRules().undecided(["Car", "DontCare", "ignored regions"])
        ['DontCare', 'ignored regions']
        """
        stated = {*self.ignore, *self.drop, *self.rename}
        return [name for name in classes if name not in stated and says_not_to_count(name)]


# OpenImages' and WordNet's
_CODE = re.compile(r"/[mg]/[0-9a-z_]+|n\d{8}")


def refuse_codes(source: Path, classes: Collection[str], rules: ClassRules) -> None:
    """Ask for the names of classes that are called by codes, which models do not know."""
    stated = {*rules.ignore, *rules.drop, *rules.rename}
    codes = [name for name in classes if _CODE.fullmatch(name) and name not in stated]
    if codes:
        raise AnnotationError(
            f"{source}: the class {codes[0]!r} is a code, and models are asked for names. Type "
            f"--rename-class @FILE, which has a line {codes[0]},NAME for each (as OpenImages' "
            "class-descriptions-boxable.csv has), or --rename-class "
            f"{codes[0]}={codes[0]} to ask for the code"
        )


def refuse_undecided(source: Path, names: Sequence[str]) -> None:
    """Ask what classes mean whose names say that they do not count."""
    if names:
        name = names[0]
        raise AnnotationError(
            f"{source}: does the class {name!r} mark where boxes do not count? Type "
            f"--ignore-class '{name}' (no answer there is an error), --drop-class '{name}' "
            f"(leave its boxes out), or --rename-class '{name}={name}' (ask for it like any other)"
        )


def read_renames(values: Sequence[str], encoding: str | None = None) -> dict[str, str]:
    """Read ``OLD=NEW`` and ``@FILE``: a CSV file with the columns old and new name, no header.

    ``encoding`` is that of such files, as the user states it.

    Raises an AnnotationError for other texts, and where an old name has two new ones.

    >>> read_renames(["n02123045=tabby cat"])
    {'n02123045': 'tabby cat'}
    """
    renames: dict[str, str] = {}
    for value in values:
        for old, new, where in _pairs(value, encoding):
            before = renames.setdefault(old, new)
            if before != new:
                raise AnnotationError(f"{where}: {old!r} becomes {before!r} and {new!r}")
    return renames


def _pairs(value: str, encoding: str | None) -> list[tuple[str, str, str]]:
    """Return old name, new name, and the place of each pair."""
    where = f"--rename-class {value}"
    if value.startswith("@"):
        return _pairs_of_file(Path(value[1:]), encoding)
    old, equals, new = value.partition("=")
    if not equals or not old.strip() or not new.strip():
        raise AnnotationError(
            f"{where}: should be OLD=NEW, or @FILE with a pair OLD,NEW on each line"
        )
    return [(label_text(old), label_text(new), where)]


def _pairs_of_file(path: Path, encoding: str | None) -> list[tuple[str, str, str]]:
    if not path.is_file():
        raise AnnotationError(f"--rename-class @{path}: the file {not_there(path)}")
    pairs = []
    for line in csv_lines(path, text_of(path, encoding), ","):
        if not line.cells:
            continue
        where = f"{path}, line {line.first}"
        if len(line.cells) != 2 or not all(map(str.strip, line.cells)):
            raise AnnotationError(f"{where}: should be a pair OLD,NEW")
        for at, name in enumerate(line.cells):
            if lines_in(name) > 1:
                raise cell_of_several_lines(path, line, at)
        old, new = map(label_text, line.cells)
        pairs.append((old, new, where))
    return pairs
