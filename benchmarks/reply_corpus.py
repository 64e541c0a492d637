"""Measure lenient reading against a corpus of replies, each with the boxes that it states.

A line of a corpus is a JSON object: ``id``, ``form`` (the fields of a ``ReplyFormat``), ``image``
(width, height), ``space``, ``reply``, ``states`` (``box`` in the requested order and the run's
space, of ``all`` as two corners; ``label``, null where one label was asked for; ``frame`` as the
reply counts it), ``why``, ``doubt`` where people may disagree, and ``source``: whose form it is, in
the third part with the project whose parser, example or issue shows it. In the fourth, ``author``
is what its author said where a ``rule`` of section 5 of the protocol decides otherwise.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlmeval_findit.benchmarks.findit import FORMAT_FAILURES
from vlmeval_findit.boxes import (
    Corners,
    ImageExtent,
    ParsedReply,
    ReplyFormat,
    Space,
    parse_leniently,
    reader,
    reply_extent,
)
from vlmeval_findit.protocol import Reply, read_reply

# The rules were written with the first part in view. The second was written and read when they were
# done, by another author, from what is known of families of models; the third from public parsers,
# cookbooks and issues, form by form; the fourth is by an author who saw neither rules nor code.
# What they showed was mended afterwards.
FIRST = Path(__file__).parent.parent / "tests/boxes/reply_corpus/first.jsonl"
SECOND = FIRST.with_name("second.jsonl")
THIRD = FIRST.with_name("third.jsonl")
FOURTH = FIRST.with_name("fourth.jsonl")
PARTS = (FIRST, SECOND, THIRD, FOURTH)
TOLERANCE = 0.002  # Share of the image's side: 999 and 1000 steps are no difference


@dataclass(frozen=True, slots=True)
class StatedBox:
    """A box that a reply states, or that was read."""

    corners: Corners
    label: str = ""
    frame: int = 0  # From 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a corpus."""

    name: str
    form: ReplyFormat
    extent: ImageExtent
    asked: tuple[str, ...]  # Labels
    reply: str
    states: tuple[StatedBox, ...]
    why: str
    in_doubt: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was read from a reply, beside what it states."""

    entry: Entry
    found: int
    missing: tuple[StatedBox, ...]
    surplus: tuple[StatedBox, ...]

    @property
    def agrees(self) -> bool:
        return not self.missing and not self.surplus

    @property
    def kind(self) -> str:
        """Name the disagreement."""
        if self.agrees:
            return "right"
        if not self.surplus:
            return "not read"
        if not self.entry.states:
            return "a box where none is stated"
        if not self.missing:
            return "a box too many"
        places = {(box.corners, box.frame) for box in self.surplus}
        if all((box.corners, box.frame) in places for box in self.missing):
            return "another label"
        return "another box"


def entries_of(path: Path) -> list[Entry]:
    """Read a corpus."""
    return [_entry(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def _entry(row: dict[str, Any]) -> Entry:
    form = ReplyFormat(**{key: value for key, value in row["form"].items() if value is not None})
    frames = [box.get("frame", 0) for box in row["states"]]
    first_frame = 1 if frames and min(frames) else 0
    states: list[StatedBox] = []
    for box in row["states"]:
        numbers = [float(number) for number in box["box"]]
        if len(numbers) != form.numbers.width:
            numbers = [*form.numbers.from_corners((numbers[0], numbers[1], numbers[2], numbers[3]))]
        corners = form.numbers.to_corners(numbers)
        label = (box["label"] or "").lower()
        states.append(StatedBox(corners, label, box.get("frame", 0) - first_frame))
    extent = reply_extent(Space(row["space"]), *row["image"])
    doubt = bool(row.get("doubt"))
    asked = tuple(row["labels"])
    return Entry(row["id"], form, extent, asked, row["reply"], tuple(states), row["why"], doubt)


def reading_of(entry: Entry) -> ParsedReply:
    """Read a reply strictly, and leniently where that finds more, as a run is scored."""
    strict = strict_reading_of(entry)
    answer = Reply(0, entry.reply).answer
    lenient = parse_leniently(answer, entry.form, strict, entry.extent, entry.asked)
    return strict if lenient is None else lenient.reading


def strict_reading_of(entry: Entry) -> ParsedReply:
    """Read a reply as the score does."""
    return read_reply(Reply(0, entry.reply), reader(entry.form), FORMAT_FAILURES)


def is_strict(entry: Entry) -> bool:
    """Return whether the boxes of a reply are those of strict reading, which rules do not change.

    In text formats any list of four numbers is a box then.
    """
    strict = strict_reading_of(entry)
    return bool(strict.boxes) and reading_of(entry) == strict


def compare(entry: Entry, reading: ParsedReply) -> Comparison:
    """Pair each stated box with an equal one that was read."""
    missing: list[StatedBox] = []
    surplus: list[StatedBox] = []
    for place, corners in enumerate(reading.boxes):
        label = reading.labels[place].lower() if reading.labels else ""
        surplus.append(StatedBox(corners, label, reading.frames[place] if reading.frames else 0))
    for box in entry.states:
        same = next((each for each in surplus if _is_same(box, each, entry.extent)), None)
        if same is None:
            missing.append(box)
        else:
            surplus.remove(same)
    found = len(entry.states) - len(missing)
    return Comparison(entry, found, tuple(missing), tuple(surplus))


def _is_same(box: StatedBox, other: StatedBox, extent: ImageExtent) -> bool:
    sides = (extent.width, extent.height) * 2
    near = [
        abs(a - b) <= TOLERANCE * side
        for a, b, side in zip(box.corners, other.corners, sides, strict=True)
    ]
    return all(near) and box.label == other.label and box.frame == other.frame


def summary(name: str, comparisons: Sequence[Comparison]) -> str:
    """Write precision, recall and the kinds of misses of some comparisons."""
    found = sum(each.found for each in comparisons)
    stated = found + sum(len(each.missing) for each in comparisons)
    boxes = found + sum(len(each.surplus) for each in comparisons)
    kinds = Counter(each.kind for each in comparisons)
    return (
        f"{name}: {len(comparisons)} replies, {kinds.pop('right', 0)} right; "
        f"precision {_percent(found, boxes)}, recall {_percent(found, stated)}; "
        + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 100:.1f} ({part}/{whole})"


def measure(
    entries: Iterable[Entry], read_entry: Callable[[Entry], ParsedReply] = reading_of
) -> list[Comparison]:
    """Compare what is read from each reply with what it states."""
    return [compare(entry, read_entry(entry)) for entry in entries]


def main() -> None:
    """Print how well lenient reading agrees with each part of the corpus."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("corpora", nargs="*", type=Path, default=PARTS)
    parser.add_argument("--list", action="store_true", help="print each disagreement")
    options = parser.parse_args()
    for corpus in options.corpora:
        comparisons = measure(entries_of(corpus))
        _print_summaries(corpus.stem, comparisons)
        strict = [each for each in comparisons if is_strict(each.entry)]
        others = [each for each in comparisons if each not in strict]
        _print_summaries(f"{corpus.stem}, boxes of strict reading", strict)
        _print_summaries(f"{corpus.stem}, other replies", others)
        for each in comparisons if options.list else ():
            if not each.agrees:
                _print_disagreement(each)


def _print_summaries(name: str, comparisons: Sequence[Comparison]) -> None:
    print(summary(name, comparisons))
    certain = [each for each in comparisons if not each.entry.in_doubt]
    print(summary(f"{name}, without doubt", certain))


def _print_disagreement(compared: Comparison) -> None:
    entry = compared.entry
    doubt = " (doubt)" if entry.in_doubt else ""
    print(f"\n{entry.name}{doubt}: {compared.kind}: {entry.why}")
    print(f"  {entry.form}\n  {entry.reply[:600]!r}")
    for what, boxes in (("missing", compared.missing), ("surplus", compared.surplus)):
        for box in boxes:
            print(f"  {what} {box.corners} {box.label!r} frame {box.frame}")


if __name__ == "__main__":
    main()
