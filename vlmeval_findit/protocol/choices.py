"""Who may state what decides the meaning of a model's replies, and who goes first.

The run's record, else what is stated of this model, else what the last score of the same
predictions was told, else what a table knows of it, else an environment variable: that is said of
no model in particular. The page is reference/settings.md.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import astuple, is_dataclass
from functools import cache
from typing import Any, NamedTuple

log = logging.getLogger(__name__)


class Setting(NamedTuple):
    """A setting that decides what the replies of a model mean, by the names it is stated by."""

    noun: str
    variable: str
    instead: str  # What to type for another value than the known one; {} stands for it


# Space of a reply's coordinates
SPACE_SETTING = Setting("coordinate space", "FINDIT_SPACE", "--space '{}'")
# Marks around a model's thought, which is not read
THOUGHT_MARKS = Setting("marks of thoughts", "FINDIT_THOUGHT_MARKS", "score --thought-marks '{}'")
# Known model whose free-form answers look the same
READS_LIKE = Setting("way of answering", "FINDIT_READS_LIKE", "score --reads-like '{}'")
# Mark that a model sees best in VP-Bench's stage 1
VP_MARK = Setting("best mark", "FINDIT_VP_MARK", "it into LMUData/VPBench_best_marks.json")
SETTINGS = (SPACE_SETTING, THOUGHT_MARKS, READS_LIKE, VP_MARK)
"""All settings that a variable states for models of which they are not known."""

RECORDED = "recorded by the run"
STATED_SOURCE = "setting"  # Source of a value that a user stated, by flag or file
IN_PLACE_OF = ", in place of "  # Stands in a source before the table's value that was overridden


def _typed(value: Any) -> str:
    """Write a value as it is typed after a flag."""
    is_named = not isinstance(value, Mapping) or value.keys() == {"kind"}
    return in_words(value) if is_named else json.dumps(value)


def stating_flag(setting: Setting, value: Any) -> str:
    """Return what states a value.

    >>> stating_flag(SPACE_SETTING, {"kind": "unit"})
    "--space 'unit'"
    """
    return setting.instead.format(_typed(value))


def is_stated(source: str | None) -> bool:
    """Return whether a value is a user's, or a variable's: not that of a table."""
    return bool(source) and str(source).startswith(
        (STATED_SOURCE, *(each.variable for each in SETTINGS))
    )


class Known(NamedTuple):
    """What a table has for a model, and which table."""

    value: Any
    source: str


class ChosenValue(NamedTuple):
    """The value in force (None: nobody states it), who stated it, and what is said of that."""

    value: Any
    source: str = ""
    remark: str = ""  # one line; "" where nothing is overridden, ignored or decided by a variable


def choose_value(
    setting: Setting,
    model: str,
    *,
    recorded: Any = None,
    stated: Any = None,
    last: Any = None,
    known: Known | None = None,
    variable: Any = None,
) -> ChosenValue:
    """Choose the value in force for a model; None is not stated.

    Whether something contradicts the record is checked elsewhere; a variable never does, nor does
    ``last``, which the last score of the same predictions was told.

    >>> known = Known("unit", "model table")
    >>> choose_value(SPACE_SETTING, "Nano", known=known, variable="pixels").value
    'unit'
    """
    if recorded is not None:
        return ChosenValue(recorded, RECORDED, _ignored(setting, model, recorded, variable))
    if stated is not None:
        if known is None or known.value == stated:
            return ChosenValue(stated, STATED_SOURCE, _ignored(setting, model, stated, variable))
        instead = f"{IN_PLACE_OF}{in_words(known.value)} ({known.source})"
        remark = f"{model}: {setting.noun} {in_words(stated)}, as stated{instead}"
        return ChosenValue(stated, f"{STATED_SOURCE}{instead}", remark)
    if last is not None:
        instead = ""
        if known is not None and known.value != last:
            instead = f"{IN_PLACE_OF}{in_words(known.value)} ({known.source})"
        # Of no single model: where a folder's are all alike this is printed once.
        told = f"{setting.noun} {in_words(last)}, as the last score was told{instead}"
        another = f"For another type {setting.instead.format('…')}"
        remark = f"{told}. {_ignored(setting, model, last, variable) or another}"
        return ChosenValue(last, f"{STATED_SOURCE}{instead}", remark)
    if known is not None:
        return ChosenValue(
            known.value, known.source, _ignored(setting, model, known.value, variable)
        )
    if variable is not None:
        value = in_words(variable)
        remark = f"{model}: {setting.noun} {value}, by {setting.variable}: nothing else states it"
        return ChosenValue(variable, setting.variable, remark)
    return ChosenValue(None)


def _ignored(setting: Setting, model: str, value: Any, variable: Any) -> str:
    """Say that a variable has no effect on a model; "" if it says the same or nothing."""
    if variable is None or variable == value:
        return ""
    return (
        f"{setting.variable}={in_words(variable)} is not used for {model}, whose {setting.noun} is "
        f"known: {in_words(value)}. For another type {stating_flag(setting, variable)}"
    )


def note_on_choice(setting: Setting, choice: ChosenValue) -> str:
    """Say which value was stated in place of a known one; "" if none was.

    >>> like = choose_value(READS_LIKE, "A", stated="B", known=Known("A", "model table: A"))
    >>> note_on_choice(READS_LIKE, like)
    'way of answering B, as stated, in place of A (model table: A)'
    """
    _, in_place, known = choice.source.partition(IN_PLACE_OF)
    value = f"{setting.noun} {in_words(choice.value)}"
    return f"{value}, as stated{IN_PLACE_OF}{known}" if in_place else ""


def note_on_spaces(spaces: Iterable[Mapping[str, Any]]) -> str | None:
    """Say which coordinate spaces of a score were stated in place of known ones; None: none.

    >>> note_on_spaces([{"kind": "unit", "source": "setting, in place of pixels (model table: A)"}])
    'read in unit, as stated, in place of pixels (model table: A)'
    """
    notes = []
    for space in spaces:
        _, in_place, known = str(space.get("source", "")).partition(IN_PLACE_OF)
        if in_place:
            plain = {name: value for name, value in space.items() if name != "source"}
            notes.append(f"read in {in_words(plain)}, as stated{IN_PLACE_OF}{known}")
    return "; ".join(notes) or None


def in_words(value: Any) -> str:
    """Write a value for a message.

    >>> in_words({"kind": "smart_resize", "factor": 24})
    'smart_resize factor=24'
    """
    if isinstance(value, Mapping):
        more = [f"{name}={each}" for name, each in value.items() if name != "kind" and each]
        return " ".join([str(value.get("kind", "")), *more])
    if is_dataclass(value) and not isinstance(value, type):
        return " ".join(filter(None, astuple(value)))
    return str(value)


@cache
def say_once(remark: str) -> None:
    """Print a remark, once in a process."""
    if remark:
        log.warning("%s", remark)
