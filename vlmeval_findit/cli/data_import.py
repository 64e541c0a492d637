"""``run_findit.py data import``: a dataset of one's own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..data.own.annotations import AnnotationError, Annotations, Units
from ..data.own.asked import AskedSet, asked_of
from ..data.own.build import build_asked
from ..data.own.exif import Drawn
from .import_sets import is_meant
from .import_sets import main as main_of_sets
from .imported import described
from .parsing import Parser

EPILOG = """\
--coco FILE   instances: images, annotations with bbox [x, y, width, height], categories
--yolo DIR    labels/…/NAME.txt (class cx cy width height, fractions), data.yaml or classes.txt;
              images: DIR/images, unless --images says otherwise
--voc DIR     Annotations/*.xml; images: DIR/JPEGImages, unless --images says otherwise
--csv FILE    columns image,label,x1,y1,x2,y2 and, if known, width,height; one box a line,
              pixels unless --units says fractions; tabs where the file ends in .tsv
--jsonl FILE  one query a line, a JSON object: image, or images (frames of a video); one of
              label, labels, expression, references (pictures of the object); boxes (all that
              there are, [] for none); if wanted caption, tags. Numbers as in --csv.
                {"image": "a.jpg", "expression": "the grey cat", "boxes": [[1, 2, 30, 40]]}
              With labels a box is {"box": [x1, y1, x2, y2], "label": "cat"}; with images there
              is a list of boxes a frame. tags are {"kind": "value"} or a list of words: scores
              are told apart by them. See docs/data.md
--set NAME --from DIR
              a published set in the format in which it is published, checked against what is
              known of it; --sets lists them with their licences, --only takes some subsets of
              one, --partial takes one that is not as published, --name calls it otherwise

Images stay where they are. Every one is decoded, every box is checked. Tables count the pixels of
a picture as it is stored. Where EXIF tells viewers to turn it and the stated size does not show
which of the two was annotated, say --exif stored (boxes are taken as they are) or --exif turned
(they are brought back)."""


def main(argv: Sequence[str]) -> int:
    """Make a dataset of one's own."""
    if is_meant(argv):
        return main_of_sets(argv)
    parser = Parser(
        prog="run_findit.py data import",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--coco", type=Path, metavar="FILE")
    source.add_argument("--yolo", type=Path, metavar="DIR")
    source.add_argument("--voc", type=Path, metavar="DIR")
    source.add_argument("--csv", type=Path, metavar="FILE")
    source.add_argument("--jsonl", type=Path, metavar="FILE")
    # For help and messages: main_of_sets reads them.
    source.add_argument("--set", metavar="NAME")
    source.add_argument("--sets", action="store_true")
    parser.add_argument("--images", type=Path, metavar="DIR", help="folder of the images")
    parser.add_argument("--name", required=True, help="the dataset will be FindIt_NAME_…")
    parser.add_argument("--replace", action="store_true", help="replace your dataset of that name")
    parser.add_argument(
        "--units",
        choices=[one.value for one in Units],
        help="what numbers of --csv, --jsonl count",
    )
    parser.add_argument(
        "--frames", type=int, metavar="N", help="thin the videos of --jsonl to N frames"
    )
    parser.add_argument(
        "--split", metavar="NAME", help="which split of --yolo is read (val, of several)"
    )
    parser.add_argument(
        "--exif", choices=[one.value for one in Drawn], help="what boxes of such pictures count"
    )
    args = parser.parse_args(argv)
    if args.units is not None and args.csv is None and args.jsonl is None:
        parser.error("--units is for --csv and --jsonl; the other formats have units of their own")
    if args.frames is not None and args.jsonl is None:
        parser.error("--frames is for --jsonl; the other formats have no videos")
    if args.frames is not None and args.frames < 1:
        parser.error(f"--frames {args.frames}: at least 1")
    if args.split is not None and args.yolo is None:
        parser.error("--split is for --yolo; name the file or folder of one split of the others")
    folder = _images(args)
    drawn = Drawn(args.exif) if args.exif else None
    built = build_asked(args.name, [_read(args, folder)], folder, args.replace, drawn)
    print(described(built, folder))
    return 0


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


def _read(args: argparse.Namespace, folder: Path) -> AskedSet:
    units = Units(args.units) if args.units else None
    if args.jsonl is not None:
        from ..data.own.jsonl import read_jsonl

        return read_jsonl(args.jsonl, units, args.frames)
    return asked_of(_annotations(args, folder, units))


def _annotations(args: argparse.Namespace, folder: Path, units: Units | None) -> Annotations:
    if args.coco is not None:
        from ..data.own.coco_in import read_coco

        return read_coco(args.coco)
    if args.yolo is not None:
        from ..data.own.yolo import read_yolo

        return read_yolo(args.yolo, folder, args.split)
    if args.voc is not None:
        from ..data.own.voc import read_voc

        return read_voc(args.voc)
    from ..data.own.box_list import read_listing

    return read_listing(args.csv, units)
