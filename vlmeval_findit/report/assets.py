"""Write a page: as one file up to a limit, else with its answers in files beside it (assets).

A page opened from a disk may not fetch, but it may load scripts. So an asset is a script that
hands over values: the answers of one run, or some images. Its name holds a hash of its content, so
a page never takes the assets of another, older one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..core.files import atomic_write, sha256_of, write_once
from ..leaderboard.board import Board
from .cards import CARDS
from .gallery import (
    Numbered,
    TooLargeError,
    gallery_data,
    head,
    picture_values,
    run_entries,
)
from .page import Contents, contents_of, json_in_html, rendered
from .pairs import Side, key_of
from .thumbnails import side_within, thumbnails_of

LIMIT = 30_000_000  # Bytes up to which a page is one file
_BUDGET = 100_000_000  # Characters of all thumbnails in assets: no browser loads all of them
_PICTURES = 40  # Images of one asset

_IN_ASSETS = ("index", "prompt", "reply", "shots", "frames", "count", "lines")
"""What assets hold of an answer, and the index by which it is known."""

_OURS = re.compile(r"(answers|pictures)-\d{4,}-[0-9a-f]{12}\.js")


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a page."""

    page: Path
    assets: tuple[Path, ...]  # None where the page is one file


def write_page(
    path: Path,
    board: Board,
    time: datetime,
    cards: int = CARDS,
    sides: Sequence[Side] = (),
    limit: int = LIMIT,
) -> Written:
    """Write the report of a leaderboard; see :func:`.page.make_page`.

    A page of at most ``limit`` bytes is one file. Else images, prompts and replies go into the
    folder ``<page>_files``. Assets that an earlier page left there are removed once the new page is
    whole; other files are not touched.
    """
    contents = contents_of(board, time, cards, sides)
    folder = path.with_name(f"{path.stem}_files")
    page = _alone(contents, limit)
    assets: tuple[Path, ...] = ()
    if page is None:
        gallery, shown, assets = _write_answers(contents, folder)
        page = rendered(contents, gallery, shown, folder.name)
    with atomic_write(path) as f:
        f.write(page)
    _remove_others(folder, assets)
    return Written(path, assets)


def _alone(contents: Contents, limit: int) -> str | None:
    """Return the page with all its answers; None where it would exceed the limit."""
    chosen = (card for one in contents.found for card in contents.choice.cards(one))
    try:
        gallery = gallery_data(chosen, contents.runs, limit)
    except TooLargeError:
        return None
    page = rendered(contents, gallery, len(gallery["cards"]))
    return page if len(page.encode("utf-8", "backslashreplace")) <= limit else None


def _write_answers(
    contents: Contents, folder: Path
) -> tuple[dict[str, Any], int, tuple[Path, ...]]:
    """Write the assets of runs, one after the other, then those of images.

    Returns:
        what the page itself must know: by what it filters and sorts, and where the rest is; the
        number of answers; and the files.
    """
    place = {key_of(run): at for at, run in enumerate(contents.runs)}
    pictures, parts, values = Numbered(), Numbered(), Numbered()
    rows: list[dict[str, Any]] = []
    roles: set[str] = set()
    answers: dict[int, Path] = {}
    shown = 0
    for one in contents.found:
        texts = Numbered()
        chosen = contents.choice.cards(one)
        entries = list(run_entries(chosen, place, texts, pictures, parts))
        frames = (frame for entry in entries for frame in entry["frames"])
        roles |= {role for frame in frames for role, *_ in frame["boxes"]}
        at = place[key_of(one.run)]
        own = [{key: entry[key] for key in _IN_ASSETS} for entry in entries]
        held = {"run": at, "texts": texts.values, "cards": own}
        answers[at] = _write(folder, f"answers-{at:04}", held)
        # As a text of numbers, which is a tenth of what they take as values.
        numbers = json.dumps([_row(entry, values) for entry in entries], separators=(",", ":"))
        rows.append({"run": at, "rows": numbers})
        shown += len(entries)
    drawn = _write_pictures(pictures.values, folder)
    gallery = {
        **head(contents.runs),
        "texts": [""],
        "parts": parts.values,
        "pictures": [],
        "cards": [],
        "values": values.values,
        "rows": rows,
        "assets": {
            "folder": folder.name,
            "answers": {at: file.name for at, file in answers.items()},
            "pictures": [file.name for file in drawn],
            "each": _PICTURES,
            "roles": sorted(roles),
        },
    }
    return gallery, shown, (*answers.values(), *drawn)


def _row(entry: Mapping[str, Any], values: Numbered) -> list[int | float | None]:
    """Return what the page filters and sorts by, as numbers: texts are places in ``values``."""
    return [
        entry["index"],
        values.place(entry["label"]),
        entry["good"],
        entry["spread"],
        int(entry["found"]),
        int(entry["failed"]),
        values.place(entry["reason"]),
        values.place(tuple(entry["error_types"])),
        values.place(tuple(entry["parts"])),
        values.place(tuple(entry["sizes"])),
        entry["iou"],
    ]


def _write_pictures(pictures: Sequence[tuple[Path, int, int]], folder: Path) -> list[Path]:
    side = side_within(list(dict.fromkeys(path for path, *_ in pictures)), _BUDGET)
    files = []
    for start in range(0, len(pictures), _PICTURES):
        some = pictures[start : start + _PICTURES]
        made = thumbnails_of((path for path, *_ in some), side)
        values = {"start": start, "pictures": [picture_values(made, *one) for one in some]}
        files.append(_write(folder, f"pictures-{start // _PICTURES:04}", values))
    return files


def _write(folder: Path, name: str, values: Mapping[str, Any]) -> Path:
    text = f"addAssets({json_in_html(values)});\n".encode()
    path = folder / f"{name}-{sha256_of(text)[:12]}.js"
    write_once(path, text)
    return path


def _remove_others(folder: Path, kept: Iterable[Path]) -> None:
    """Remove the assets of an earlier page, and the folder if nothing is left in it."""
    if not folder.is_dir():
        return
    for file in set(folder.iterdir()) - set(kept):
        if _OURS.fullmatch(file.name):
            file.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
