"""Compare how two versions of the package read and score the same replies, strictly and leniently.

    PYTHONPATH=OLD_CLONE python benchmarks/changed_readings.py write old --random 100000
    PYTHONPATH=.         python benchmarks/changed_readings.py write new --random 100000
    python benchmarks/changed_readings.py compare old new

The replies are those of the corpora, of ``--runs FOLDER`` (prediction files), of ``--cases FILE``
(scoring cases), and random ones, made of pieces of the corpora. A reply of the corpora or of a run
is read with the labels that were asked for, where a version knows what to do with them. Seconds of
processor are those of lenient parsing alone. With ``--scores`` each reply is scored, too, against
up to three boxes that are drawn, or are those of its strict reading, moved: ``compare`` says how
many sums of strict scores differ, and what each format's come to.
"""

from __future__ import annotations

import argparse
import gzip
import inspect
import json
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import vlmeval_findit as findit
from vlmeval_findit.benchmarks import parse
from vlmeval_findit.boxes import (
    ImageExtent,
    LenientReply,
    ParsedReply,
    ReplyFormat,
    answer_kind,
    parse_leniently,
    read,
)

_ROOT = Path(__file__).resolve().parent.parent
_PARTS = ("first", "second", "third", "fourth", "own")
_CORPORA = [_ROOT / f"tests/boxes/reply_corpus/{name}.jsonl" for name in _PARTS]
_KNOWS_LABELS = "asked" in inspect.signature(parse_leniently).parameters
_RUN = re.compile(r"[^_].*?_(FindIt_.+)\.json")


@dataclass(frozen=True, slots=True)
class Asked:
    """A reply, and what it answers."""

    where: str
    form: ReplyFormat
    labels: tuple[str, ...]
    reply: str


# --- replies --------------------------------------------------------------------------------------


def of_corpora() -> Iterator[Asked]:
    """Yield the replies of the corpora."""
    for path in _CORPORA:
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            yield Asked(row["id"], _form(row["form"]), tuple(row["labels"]), row["reply"])


def _form(fields: dict[str, Any]) -> ReplyFormat:
    return ReplyFormat(**{key: value for key, value in fields.items() if value is not None})


def of_cases(path: Path) -> Iterator[Asked]:
    """Yield the replies of scoring cases (docs/reference/protocol.md, section 8)."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            case = json.loads(line)
            asked = case["kwargs"]
            form = {
                "output": asked.get("parse_fmt") or asked["fmt"],
                "representation": asked.get("parse_bbox_repr") or asked["bbox_repr"],
                "key": asked.get("parse_json_key") or asked.get("json_key"),
                "structure": asked.get("parse_json_structure") or asked.get("json_structure"),
                "multilabel": bool(asked.get("multi_label")),
                "frames": int(asked.get("max_frames") or 1),
            }
            yield Asked(f"case {number}", _form(form), (), case["response"])


def of_runs(folder: Path) -> Iterator[Asked]:
    """Yield the replies of the prediction files of FindIt below a folder, each once."""
    for path in sorted(folder.rglob("*_FindIt_*.json")):
        name = _RUN.fullmatch(path.name)
        if name is None:
            continue
        try:
            form = parse(name[1]).reply  # type: ignore[attr-defined]
            rows = json.loads(path.read_text("utf-8"))
        except (ValueError, AttributeError):
            continue
        for row in rows if isinstance(rows, list) else ():
            reply = row.get("prediction") if isinstance(row, dict) else None
            if isinstance(reply, str):
                label = str(row.get("label") or "")
                labels = tuple(label.split(",")) if form.multilabel else (label,)
                asked = tuple(each.strip() for each in labels if each.strip())
                yield Asked(path.name, form, asked, reply)


def random_replies(count: int) -> Iterator[Asked]:
    """Yield replies of pieces of the corpora's, in formats of the corpora, the same every time."""
    draw = random.Random(20261129)
    known = list(of_corpora())
    forms = list(dict.fromkeys(each.form for each in known))
    for number in range(count):
        pieces: list[str] = []
        for _ in range(draw.randint(1, 4)):
            reply = draw.choice(known).reply
            start = draw.randrange(max(1, len(reply)))
            end = start + draw.choice((5, 20, 80, 400))
            pieces.append(draw.choice((reply, reply[start:end])))
        source = draw.choice(known)
        yield Asked(f"random {number}", draw.choice(forms), source.labels, "".join(pieces)[:3000])


# --- how a version reads them ---------------------------------------------------------------------


def _plain(reading: ParsedReply | None) -> Any:
    if reading is None:
        return None
    reason = None if reading.reason is None else reading.reason.value
    return [reading.boxes, reading.labels, reading.frames, reason]


def write(replies: Iterable[Asked], path: Path, with_scores: bool = False) -> None:
    """Write what the imported version reads, a JSON line a reply, and print its seconds."""
    in_ascii: list[float] = []  # Seconds of each reply
    others: list[float] = []
    distinct = list(_distinct(replies))
    scores = strict_scores(distinct) if with_scores else {}
    with path.open("w", encoding="utf-8") as file:
        for asked in distinct:
            strict = read(asked.reply, asked.form)
            begin = time.process_time()
            lenient = _leniently(asked, strict)
            of_its_kind = in_ascii if asked.reply.isascii() else others
            of_its_kind.append(time.process_time() - begin)
            line = {
                "where": asked.where,
                "form": asdict(asked.form),
                "labels": asked.labels,
                "reply": asked.reply,
                "strict": _plain(strict),
                "score": scores.get(asked),
                "kind": answer_kind(asked.reply, strict, lenient).value,
                "lenient": None if lenient is None else _plain(lenient.reading),
                "repairs": [] if lenient is None else [each.value for each in lenient.repairs],
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    total = sum(in_ascii) + sum(others)
    print(f"{len(distinct)} replies, {total:.1f} s of lenient parsing", file=sys.stderr)
    for what, seconds in (("ASCII", in_ascii), ("other signs", others)):
        if seconds:
            each = 1e6 * sum(seconds) / len(seconds)
            print(f"  {len(seconds)} of {what}: {each:.0f} µs each", file=sys.stderr)


def _distinct(replies: Iterable[Asked]) -> Iterator[Asked]:
    """Yield each reply once, of those that answer the same."""
    seen: set[Asked] = set()
    for asked in replies:
        same = Asked("", asked.form, asked.labels, asked.reply)
        if same not in seen:
            seen.add(same)
            yield asked


def _leniently(asked: Asked, strict: ParsedReply) -> LenientReply | None:
    extent = ImageExtent(1000, 1000)
    if _KNOWS_LABELS:
        return parse_leniently(asked.reply, asked.form, strict, extent, asked.labels)
    return parse_leniently(asked.reply, asked.form, strict, extent)


# --- how a version scores them --------------------------------------------------------------------

_SIDE = 1000  # Pixels; the numbers of replies are thousandths, so the same
_BATCH = 1000  # Replies
# What rests on lenient parsing, or on the kind of an answer without a box
_NOT_STRICT = ("lenient", "lost", "mask_", "negatives", "positives")


def strict_scores(replies: Iterable[Asked]) -> dict[Asked, dict[str, float]]:
    """Return the sums of the strict score of each reply whose format has a name."""
    by_form: dict[ReplyFormat, list[Asked]] = defaultdict(list)
    for asked in replies:
        by_form[asked.form].append(asked)
    scores: dict[Asked, dict[str, float]] = {}
    for form, of_form in by_form.items():
        try:
            findit.score([], [], name_of(form), **asked_as(form))
        except ValueError:
            print(f"not scored, as no name asks for it: {len(of_form)} of {form}", file=sys.stderr)
            continue
        for start in range(0, len(of_form), _BATCH):
            batch = of_form[start : start + _BATCH]
            for asked, sums in zip(batch, _sums(batch, form), strict=True):
                scores[asked] = sums
    return scores


def _sums(batch: Sequence[Asked], form: ReplyFormat) -> Iterator[dict[str, float]]:
    truths = [_truth(asked) for asked in batch]
    scored = findit.score([asked.reply for asked in batch], truths, name_of(form), **asked_as(form))
    for query in scored.queries:
        sums = {name: value for name, value in query.sums.items() if _is_strict(name)}
        yield {**sums, **{f"IoU {at}": iou for at, iou in enumerate(query.details.get("ious", ()))}}


def _is_strict(name: str) -> bool:
    return not name.startswith(_NOT_STRICT)


def name_of(form: ReplyFormat) -> str:
    """Return the end of the name that asks for a format."""
    parts = [form.representation, form.output]
    if form.output == "json":
        parts.append(form.structure if form.structure == "decomposed" else form.key)
        parts += ["nested"] * (form.structure == "nested")
    return "_".join(parts)


def asked_as(form: ReplyFormat) -> dict[str, Any]:
    """Return what else is said of a format where it is scored."""
    return {
        "sizes": (_SIDE, _SIDE),
        "space": "grid1000",
        "multilabel": form.multilabel,
        "frames": form.frames,
    }


def _truth(asked: Asked) -> Any:
    """Draw the truth of a query, the same every time: most boxes are those of the reply, moved."""
    draw = random.Random(asked.reply)
    reading = read(asked.reply, asked.form)
    boxes: list[list[float]] = []
    labels: list[str] = []
    frames: list[int] = []
    for at in range(draw.randint(0, 3)):
        box = [draw.uniform(0, 400), draw.uniform(0, 400), draw.uniform(500, 999), 999.0]
        if at < len(reading.boxes) and _is_box(reading.boxes[at]):
            moved = [number + draw.choice((0, 0, 1, 20)) for number in reading.boxes[at]]
            box = moved if _is_box(moved) else box
        boxes.append(box)
        labels.append(draw.choice([*asked.labels, *reading.labels, "dog"]) or "dog")
        frames.append(draw.randrange(asked.form.frames))
    return findit.truth(boxes, labels if asked.form.multilabel else (), frames)


def _is_box(box: Sequence[float]) -> bool:
    x1, y1, x2, y2 = box
    return 0 <= x1 <= x2 - 2 <= _SIDE - 2 and 0 <= y1 <= y2 - 2 <= _SIDE - 2


# --- two versions ---------------------------------------------------------------------------------


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Name how the lenient reading of a reply changed; "" if it did not."""
    before, after = old["lenient"], new["lenient"]
    if before == after:
        return ""
    if not before or not before[0]:
        return "boxes where none were read" if after and after[0] else "an empty list"
    if not after or not after[0]:
        return "no box where some were read"
    if before[0] == after[0]:
        return "other labels or frames"
    return "other boxes"


def compare(old: Path, new: Path, show: bool) -> None:
    """Print how many readings differ, and each that does."""
    pairs = list(zip(_rows(old), _rows(new), strict=True))
    assert all(before["reply"] == after["reply"] for before, after in pairs)
    for name in ("strict", "score", "kind", "lenient"):
        differ = sum(before[name] != after[name] for before, after in pairs)
        print(f"{name}: {differ} of {len(pairs)} differ")
    _print_scores(pairs)
    kinds = Counter((a["kind"], b["kind"]) for a, b in pairs if a["kind"] != b["kind"])
    for (before_kind, after_kind), count in kinds.most_common():
        print(f"  {count} were {before_kind!r}, are {after_kind!r}")
    for change, count in Counter(_change(*pair) for pair in pairs).most_common():
        print(f"  {count} {change or 'lenient readings are the same'}")
    for before, after in pairs if show else ():
        change = _change(before, after)
        if change:
            print(f"\n{before['where']}: {change}; {before['labels']} {before['form']}")
            print(f"  {before['reply'][:300]!r}\n  {before['lenient']}\n  {after['lenient']}")


def _print_scores(pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Print what the strict scores of each format come to in both versions."""
    before: dict[str, Counter[str]] = defaultdict(Counter)
    after: dict[str, Counter[str]] = defaultdict(Counter)
    for old, new in pairs:
        if old["score"] is not None and new["score"] is not None:
            name = _named(ReplyFormat(**new["form"]))
            before[name].update(old["score"])
            after[name].update(new["score"])
    for name in sorted(after):
        old_sums, new_sums = _summed(before[name]), _summed(after[name])
        end = "the same" if old_sums == new_sums else f"before: {old_sums}"
        print(f"  {name}: {new_sums}; {end}")


def _named(form: ReplyFormat) -> str:
    several = ["multilabel"] * form.multilabel + [f"f{form.frames}"] * (form.frames > 1)
    return "_".join([*several, name_of(form)])


def _summed(sums: Counter[str]) -> str:
    """Write the sums of a format, all digits of them; IoUs of objects are in one of these."""
    return ", ".join(f"{key} {sums[key]!r}" for key in sorted(sums) if not key.startswith("IoU "))


def main() -> None:
    """Write what this version reads, or compare two such files."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write")
    writer.add_argument("out", type=Path)
    writer.add_argument("--random", type=int, default=0, metavar="N")
    writer.add_argument("--runs", type=Path, nargs="*", default=())
    writer.add_argument("--cases", type=Path, nargs="*", default=())
    writer.add_argument("--no-corpora", action="store_true")
    writer.add_argument("--scores", action="store_true", help="score each reply, too")
    comparer = commands.add_parser("compare")
    comparer.add_argument("old", type=Path)
    comparer.add_argument("new", type=Path)
    comparer.add_argument("--list", action="store_true", help="print each change")
    options = parser.parse_args()
    if options.command == "compare":
        compare(options.old, options.new, options.list)
        return
    replies = [] if options.no_corpora else list(of_corpora())
    for folder in options.runs:
        replies += of_runs(folder)
    for path in options.cases:
        replies += of_cases(path)
    replies += random_replies(options.random)
    write(replies, options.out, options.scores)


if __name__ == "__main__":
    main()
