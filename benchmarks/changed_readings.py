"""Compare how two versions of the package read the same replies, strictly and leniently.

    PYTHONPATH=OLD_CLONE python benchmarks/changed_readings.py write old --random 100000
    PYTHONPATH=.         python benchmarks/changed_readings.py write new --random 100000
    python benchmarks/changed_readings.py compare old new

The replies are those of the corpora, of ``--runs FOLDER`` (prediction files), of ``--cases FILE``
(scoring cases), and random ones, made of pieces of the corpora. A reply of the corpora or of a run
is read with the labels that were asked for, where a version knows what to do with them. Seconds of
processor are those of lenient parsing alone.
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
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
_PARTS = ("first", "second", "third", "own")
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


def write(replies: Iterable[Asked], path: Path) -> None:
    """Write what the imported version reads, a JSON line a reply, and print its seconds."""
    seconds = 0.0
    seen: set[Asked] = set()
    with path.open("w", encoding="utf-8") as file:
        for asked in replies:
            same = Asked("", asked.form, asked.labels, asked.reply)
            if same in seen:
                continue
            seen.add(same)
            strict = read(asked.reply, asked.form)
            begin = time.process_time()
            lenient = _leniently(asked, strict)
            seconds += time.process_time() - begin
            line = {
                "where": asked.where,
                "form": asdict(asked.form),
                "labels": asked.labels,
                "reply": asked.reply,
                "strict": _plain(strict),
                "kind": answer_kind(asked.reply, strict, lenient).value,
                "lenient": None if lenient is None else _plain(lenient.reading),
                "repairs": [] if lenient is None else [each.value for each in lenient.repairs],
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{len(seen)} replies, {seconds:.1f} s of lenient parsing", file=sys.stderr)


def _leniently(asked: Asked, strict: ParsedReply) -> LenientReply | None:
    extent = ImageExtent(1000, 1000)
    if _KNOWS_LABELS:
        return parse_leniently(asked.reply, asked.form, strict, extent, asked.labels)
    return parse_leniently(asked.reply, asked.form, strict, extent)


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
    for name in ("strict", "kind", "lenient"):
        differ = sum(before[name] != after[name] for before, after in pairs)
        print(f"{name}: {differ} of {len(pairs)} differ")
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
    write(replies, options.out)


if __name__ == "__main__":
    main()
