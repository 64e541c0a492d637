"""``run_findit.py import``: a dataset of one's own, or questions about marks on a dataset."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..data.own.annotations import AnnotationError, Annotations, Units
from ..data.own.build import build
from ..data.own.exif import Drawn

EPILOG = """\
--coco FILE   instances: images, annotations with bbox [x, y, width, height], categories
--yolo DIR    labels/…/NAME.txt (class cx cy width height, fractions), data.yaml or classes.txt;
              images: DIR/images, unless --images says otherwise
--voc DIR     Annotations/*.xml; images: DIR/JPEGImages, unless --images says otherwise
--csv FILE    columns image,label,x1,y1,x2,y2 and, if known, width,height; one box a line,
              pixels unless --units says fractions; tabs where the file ends in .tsv
--vp-questions FROM
              VP-Bench questions about marks that are drawn on the pictures of FROM, a dataset of
              object detection: Scenes, Demo, Pascal, OpenImages or one of your own

Images stay where they are. Every one is decoded, every box is checked. Tables count the pixels of
a picture as it is stored. Where EXIF tells viewers to turn it and the stated size does not show
which of the two was annotated, say --exif stored (boxes are taken as they are) or --exif turned
(they are brought back)."""


def main(argv: Sequence[str]) -> int:
    """Make a dataset of one's own."""
    parser = argparse.ArgumentParser(
        prog="run_findit.py import",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--coco", type=Path, metavar="FILE")
    source.add_argument("--yolo", type=Path, metavar="DIR")
    source.add_argument("--voc", type=Path, metavar="DIR")
    source.add_argument("--csv", type=Path, metavar="FILE")
    source.add_argument("--vp-questions", metavar="FROM")
    parser.add_argument("--images", type=Path, metavar="DIR", help="folder of the images")
    parser.add_argument(
        "--name", required=True, help="the dataset will be FindIt_NAME_…, questions VPBench_NAME"
    )
    parser.add_argument("--replace", action="store_true", help="replace your dataset of that name")
    parser.add_argument(
        "--units", choices=[one.value for one in Units], help="what the numbers of --csv count"
    )
    parser.add_argument(
        "--exif", choices=[one.value for one in Drawn], help="what boxes of such pictures count"
    )
    parser.add_argument("--count", type=int, metavar="N", help="of questions (400)")
    parser.add_argument("--seed", type=int, metavar="N", help="of questions (0)")
    args = parser.parse_args(argv)
    asks = args.vp_questions is not None
    for flag, is_of_questions in _FLAGS.items():
        if getattr(args, flag) is not None and asks is not is_of_questions:
            parser.error(f"--{flag} is {'' if is_of_questions else 'not '}for --vp-questions")
    if asks:
        from .vp_questions import make

        return make(args.vp_questions, args.name, args.count, args.seed, args.replace)
    if args.units is not None and args.csv is None:
        parser.error("--units is for --csv; the other formats have units of their own")
    folder = _images(args)
    drawn = Drawn(args.exif) if args.exif else None
    built = build(args.name, _read(args, folder), folder, args.replace, drawn)
    for note in built.notes:
        print(note)
    for reason, count in built.left_out.items():
        print(f"left out: {count} {reason}")
    for table in built.tables:
        print(f"{table.table:<24}{table.queries:>6} queries{table.boxes:>8} boxes: {table.path}")
    print(
        f"Images: {folder}\n"
        f"Run it: python run_findit.py --data FindIt_{args.name}_xyxy_json --model MODEL"
    )
    return 0


_FLAGS = {"count": True, "seed": True, "images": False, "units": False, "exif": False}
"""Flags that are for questions about marks only, or for all but them."""


def _images(args: argparse.Namespace) -> Path:
    folder: Path | None = args.images
    if folder is None and args.yolo is not None:
        folder = args.yolo / "images"
    if folder is None and args.voc is not None:
        folder = args.voc / "JPEGImages"
    if folder is None:
        raise AnnotationError("--images DIR is missing: where do the images lie?")
    if not folder.is_dir():
        raise AnnotationError(f"{folder}: no such folder; say with --images where the images lie")
    return folder


def _read(args: argparse.Namespace, folder: Path) -> Annotations:
    if args.coco is not None:
        from ..data.own.coco_in import read_coco

        return read_coco(args.coco)
    if args.yolo is not None:
        from ..data.own.yolo import read_yolo

        return read_yolo(args.yolo, folder)
    if args.voc is not None:
        from ..data.own.voc import read_voc

        return read_voc(args.voc)
    from ..data.own.box_list import read_listing

    return read_listing(args.csv, Units(args.units) if args.units else None)
