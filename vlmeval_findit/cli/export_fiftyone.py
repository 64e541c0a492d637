"""``run_findit.py export-fiftyone``: answers and ground truth as a FiftyOne dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.spelling import counted
from ..runs.scored_run import load_runs
from .parsing import Parser


def main(argv: Sequence[str]) -> int:
    """Write answers and ground truth as a FiftyOne dataset on disk; FiftyOne is not needed."""
    parser = Parser(prog="run_findit.py export-fiftyone", description=main.__doc__)
    parser.add_argument(
        "runs", type=Path, nargs="+", help="scored prediction files, or folders of them"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="what is written")
    args = parser.parse_args(argv)
    # It brings scipy, which a --help need not wait for.
    from ..publish.fiftyone_export import export, shows_boxes

    runs = load_runs(args.runs)
    # Where none is of boxes, the export says so.
    shown = [run for run in runs if shows_boxes(run)] or runs
    done = export(shown, args.out)
    what = f"{counted(done.samples, 'picture')}, {done.boxes:,} boxes of "
    print(f"{args.out}/: {what}{counted(len(done.fields), 'run')}: {', '.join(done.fields)}")
    if len(shown) < len(runs):
        print(f"{counted(len(runs) - len(shown), 'run')} without boxes (points, choices): left out")
    if done.gone:
        is_ = "is" if done.gone == 1 else "are"
        print(f"{counted(done.gone, 'picture')} {is_} not there: FiftyOne will not show them")
    if done.left_out:
        print(f"{done.left_out:,} boxes cannot be shown: left out")
    print("open it with:")
    print("  import fiftyone as fo")
    how = "dataset_type=fo.types.FiftyOneDataset"
    print(f"  fo.launch_app(fo.Dataset.from_dir({str(args.out)!r}, {how}))")
    return 0
