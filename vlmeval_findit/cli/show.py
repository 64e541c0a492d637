"""``run_findit.py show``: what a query asks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..models.payload import located
from ..models.table import find_model, unknown_space
from ..places import image_folder
from ..prompts import PartKind
from ..release_prompts import prompt_set
from ..spaces import reference_size
from ..tasks import load_task


def main(argv: Sequence[str]) -> int:
    """What a query asks: its message with images at their places, its sizes, its boxes."""
    parser = argparse.ArgumentParser(prog="run_findit.py show", description=__doc__)
    parser.add_argument("--data", required=True, help="a dataset's name")
    parser.add_argument("--index", type=int, default=0, help="the row (default 0)")
    parser.add_argument("--model", help="also say in which space this model answers")
    args = parser.parse_args(argv)
    task = load_task(args.data)
    if args.index not in task.queries:
        raise ValueError(f"{args.data} has no row {args.index} (it has {len(task.queries)})")
    query, variant = task.queries[args.index], task.variant
    folder = image_folder(variant.row.images)
    name, make = prompt_set()
    print(f"{variant.name}, row {query.index}, prompts {name}, images in {folder.path}\n")
    for part in make(query, variant):
        print(f"<{part.value}>" if part.kind is PartKind.IMAGE else part.value)
    print(f"\nimage: {query.width} x {query.height} pixels")
    for frame, box in zip(query.truth.frames, query.truth.boxes, strict=True):
        print(f"ground truth{f', frame {frame + 1}' if variant.frames > 1 else ''}: {list(box)}")
    if args.model:
        row = find_model(args.model)
        if row is None:
            raise unknown_space(args.model)
        space = row.space(variant.row)
        w, h = reference_size(space, query.width, query.height)
        print(f"{args.model} answers in {space.as_dict()}: numbers up to {w:g} x {h:g}")
        print(f"replies are read as {row.reads(variant)}")
        if row.api is not None:
            from .sent import print_sent

            print_sent(located(make(query, variant), folder.path), variant, space, row.api)
    return 0
