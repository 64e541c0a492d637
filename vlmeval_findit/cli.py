"""The command line.  The only module that prints; what a command does not need it does not import.

Without a command it is VLMEvalKit's runner: every flag of ``run.py`` is handed over, after what can
be refused has been refused.  Without any argument it is the demonstration.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .scoring import RunScore, Settings

Command = Callable[[Sequence[str]], int]

USAGE = """\
usage: run_findit.py                          the demonstration, without a network or weights
       run_findit.py --data FindIt_… --model … [any flag of VLMEvalKit's run.py]
       run_findit.py COMMAND …

commands:
  prepare   turn the release's Parquet subsets into tables
  score     score prediction files again, without the model
  show      print what a query asks, and the sizes of its images
  models    list the models whose coordinate space is known
  demo      the demonstration

flags of ours, with --data:
  --images KEY=DIR        image folder of a dataset (keys: configs/datasets.yaml)
  --skip-missing-images   leave out rows without a usable image; the result says so
  --prompts CLONE         ask in the release's own words, from a clone of it
  --model Replay=PATH     answer from a recorded prediction file or a folder of such files

a dataset name: FindIt_<Dataset>[_multilabel][_caption][_f<N>]_<representation>_<text|json>
                [_<key>][_<structure>][_cx-<definitions|formula>]"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status (2: refused, nothing was run)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    commands: dict[str, Command] = {
        "prepare": prepare,
        "score": score,
        "show": show,
        "models": models,
        "demo": demo,
    }
    first = arguments[0] if arguments else "demo"
    if first in ("-h", "--help"):
        print(USAGE)
        return 0
    try:
        if first in commands:
            return commands[first](arguments[1:])
        if not first.startswith("-"):
            from .variant import nearest

            raise ValueError(f"no command {first!r}{nearest(first, commands)}")
        return run(arguments)
    except (ValueError, OSError) as error:
        # Ours derive from ValueError: what was given cannot be used, and the message says why.
        print(f"error: {error}", file=sys.stderr)
        return 2


# --- prepare --------------------------------------------------------------------------------------


def prepare(argv: Sequence[str]) -> int:
    """Tables from Parquet subsets."""
    from .tables import prepare_subset, tables_of

    parser = argparse.ArgumentParser(prog="run_findit.py prepare", description=prepare.__doc__)
    parser.add_argument("--subsets", type=Path, help="folder of the release's Parquet files")
    parser.add_argument("--only", help="datasets, separated by commas: Pascal,RefCOCO")
    parser.add_argument(
        "--out", type=Path, default=Path("datasets_tsv"), help="default: datasets_tsv"
    )
    parser.add_argument("--demo", action="store_true", help="the demonstration's tables")
    args = parser.parse_args(argv)
    if args.demo == (args.subsets is not None):
        parser.error("name either --subsets DIR or --demo")
    if args.demo:
        from .demo.tables import prepare_demo

        done = prepare_demo()
    else:
        names = args.only.split(",") if args.only else None
        done = [prepare_subset(args.subsets, args.out, *table) for table in tables_of(names)]
    for one in done:
        print(f"{one.table:<24}{one.queries:>6} queries{one.boxes:>8} boxes{one.size:>10} bytes")
    for one in done:
        for odd in one.oddities:
            box = ", ".join(f"{n:.1f}" for n in odd.box)
            print(f"{one.table}, row {odd.index}: {odd.what}, left as it is: [{box}]")
    print(f"{len(done)} tables in {done[0].path.parent}" if done else "nothing to do")
    return 0


# --- score ----------------------------------------------------------------------------------------


def score(argv: Sequence[str]) -> int:
    """Score prediction files again, without a model."""
    from .scoring import score_file, write_score
    from .spaces import spaces_help

    parser = argparse.ArgumentParser(
        prog="run_findit.py score",
        description=score.__doc__,
        epilog="coordinate spaces:\n" + spaces_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("predictions", type=Path, nargs="+", help="<model>_<dataset>.json|tsv|xlsx")
    parser.add_argument("--dataset", help="the dataset's name, where the file name does not say it")
    parser.add_argument(
        "--space", help="coordinate space of the replies, goes before what is known"
    )
    parser.add_argument("--min-pixels", type=int, help="of smart_resize")
    parser.add_argument("--max-pixels", type=int, help="of smart_resize")
    parser.add_argument(
        "--two-step", action="store_true", help="smart_resize of the chat interface"
    )
    parser.add_argument("--scene-max-size", type=int, help="longer side that scenes were shrunk to")
    parser.add_argument("--reads-like", help="model whose answers to `unconstrained` it shares")
    args = parser.parse_args(argv)
    settings = _settings(args)
    runs = []
    for path in args.predictions:
        run = score_file(path, settings, args.dataset)
        write_score(run, path)
        runs.append(run)
    print_scores(runs)
    return 0


def _settings(args: argparse.Namespace) -> Settings:
    from .scoring import settings_from
    from .spaces import SpaceError

    fields = {
        name: getattr(args, name)
        for name in ("min_pixels", "max_pixels", "two_step", "scene_max_size")
        if getattr(args, name)
    }
    if fields and not args.space:
        raise SpaceError(f"--{next(iter(fields)).replace('_', '-')} needs --space")
    space = {"kind": args.space, **fields} if args.space else None
    return settings_from({"space": space, "reads_like": args.reads_like})


def print_scores(runs: Iterable[RunScore]) -> None:
    """A table of scores, one row a run."""
    from .scoring import score_row

    print_rows(score_row(run) for run in runs)


def print_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """A table of the columns that a reader looks at first, and a line for what was left out."""
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("dataset", no_wrap=True)
    table.add_column("model", no_wrap=True)
    for name in ("F1@0.5", "mIoU", "Adherence", "scored", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["dataset"],
            row["model"],
            *(f"{float(row[name]):.1f}" for name in ("F1@0.5", "mIoU", "Adherence")),
            f"{row['scored']}/{row['rows']}",
            str(row["failed calls"]),
        )
    # A pipe has no width: never fold a name there.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(table)


# --- show, models ---------------------------------------------------------------------------------


def show(argv: Sequence[str]) -> int:
    """What a query asks: its message with images at their places, its sizes, its boxes."""
    from .images import image_folder
    from .models.table import find_model, unknown_space
    from .prompts import PartKind
    from .release_prompts import prompt_set
    from .scoring import load_task
    from .spaces import reference_size

    parser = argparse.ArgumentParser(prog="run_findit.py show", description=show.__doc__)
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
    return 0


def models(argv: Sequence[str]) -> int:
    """The models whose coordinate space is known."""
    from .datasets import DATASETS
    from .models.table import MODELS

    argparse.ArgumentParser(prog="run_findit.py models", description=models.__doc__).parse_args(
        argv
    )
    for row in MODELS.values():
        general = row.space(DATASETS["Pascal"]).as_dict()
        scenes = row.space(DATASETS["HRInsDet_easy"]).as_dict()
        print(f"{row.name:<20}{_settings_text(general)}")
        if scenes != general:
            print(f"{'':<20}{_settings_text(scenes)} on HRInsDet")
    return 0


def _settings_text(settings: Mapping[str, Any]) -> str:
    rest = " ".join(f"{key}={value}" for key, value in settings.items() if key != "kind")
    return f"{settings['kind']} {rest}".strip()


# --- VLMEvalKit's runner --------------------------------------------------------------------------


def run(argv: Sequence[str]) -> int:
    """Hand a command line over to VLMEvalKit, after refusing what can be refused."""
    ours, rest = _our_flags().parse_known_args(argv)
    if ours.images:
        os.environ["FINDIT_IMAGES"] = ",".join(ours.images)
    if ours.skip_missing_images:
        os.environ["FINDIT_SKIP_MISSING"] = "1"
    if ours.prompts:
        os.environ["FINDIT_PROMPTS"] = str(ours.prompts)
    names = [name for name in ours.data or () if name.startswith("FindIt")]
    _check_names(names)
    os.environ.setdefault("PRED_FORMAT", "json")
    try:
        import vlmeval.run

        from .host import register
        from .host.preflight import preflight
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): pip install 'vlmeval-findit[vlmeval]', "
            "or install a clone of it into this environment"
        ) from None
    register()
    model_names = [_with_source(model) for model in ours.model or ()]
    preflight(names, model_names, ours)
    sys.argv = ["run_findit.py", *rest, *_host_flags(ours, model_names)]
    vlmeval.run.main()
    return 0


def _our_flags() -> argparse.ArgumentParser:
    """Our flags, and those of the host's that are looked at before it gets them."""
    parser = argparse.ArgumentParser(prog="run_findit.py", add_help=False, allow_abbrev=False)
    parser.add_argument("--images", action="append", metavar="KEY=DIR")
    parser.add_argument("--skip-missing-images", action="store_true")
    parser.add_argument("--prompts", type=Path)
    parser.add_argument("--data", nargs="+")
    parser.add_argument("--model", nargs="+")
    parser.add_argument("--judge-args")
    parser.add_argument("--mode", default="all")
    parser.add_argument("--work-dir", default="./outputs")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--base-url")
    return parser


def _host_flags(ours: argparse.Namespace, models: Sequence[str]) -> list[str]:
    flags = ["--mode", ours.mode, "--work-dir", ours.work_dir]
    flags += ["--data", *ours.data] if ours.data else []
    flags += ["--model", *models] if models else []
    flags += ["--judge-args", ours.judge_args] if ours.judge_args else []
    flags += ["--base-url", ours.base_url] if ours.base_url else []
    return flags + ["--reuse"] * ours.reuse


def _check_names(names: Iterable[str]) -> None:
    from .variant import parse

    for name in names:
        parse(name)


def _with_source(model: str) -> str:
    """``Replay=PATH``: make the model that answers from there; the name without the path."""
    name, given, path = model.partition("=")
    if given:
        from .host.preflight import add_replay

        if name != "Replay":
            raise ValueError(f"--model {model}: only Replay takes a path")
        add_replay(path)
    return name


# --- the demonstration ----------------------------------------------------------------------------

DEMO_DATASETS = (
    "FindIt_Demo_xyxy_json",
    "FindIt_Demo_cxcywh_text",
    "FindIt_Demo_all-labelled_json_bbox_2d_nested",
    "FindIt_Demo_multilabel_yxyx_json_class_name",
    "FindIt_Demo_refexp_xywh_text",
    "FindIt_Demo_described_yxhw_json_decomposed",
    "FindIt_Demo_insdet_xyxy_json_coordinates",
    "FindIt_Demo_video_f8_xyxy_json",
    "FindIt_Demo_video_f1_xyxy_text",
)
DEMO_MODELS = ("OpenCV-Detector", "FullImage")


def demo(argv: Sequence[str]) -> int:
    """Real photographs, a classical detector, the whole path; needs no network and no weights."""
    import csv
    import subprocess

    from .demo.tables import ensure_demo
    from .images import image_folder

    parser = argparse.ArgumentParser(prog="run_findit.py demo", description=demo.__doc__)
    parser.add_argument("--work-dir", type=Path, default=Path("outputs"))
    args = parser.parse_args(argv)
    ensure_demo()
    args.work_dir.mkdir(parents=True, exist_ok=True)
    log = args.work_dir / "demo.log"
    print(f"Photographs: {image_folder('Demo').path}")
    print(f"Running {len(DEMO_DATASETS)} variants with {', '.join(DEMO_MODELS)} through VLMEvalKit")
    command = [sys.executable, "-m", "vlmeval_findit.cli", "--data", *DEMO_DATASETS]
    command += ["--model", *DEMO_MODELS, "--work-dir", str(args.work_dir)]
    with log.open("w", encoding="utf-8") as f:
        done = subprocess.run(command, stdout=f, stderr=subprocess.STDOUT, check=False)
    files = [
        args.work_dir / model / f"{model}_{name}_score.csv"
        for name in DEMO_DATASETS
        for model in DEMO_MODELS
    ]
    missing = [path for path in files if not path.is_file()]
    if done.returncode or missing:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        raise ValueError(f"the demonstration did not run through; the end of {log}:\n{tail}")
    rows: list[dict[str, str]] = []
    for path in files:
        with path.open(encoding="utf-8", newline="") as f:
            rows += csv.DictReader(f)
    print_rows(rows)
    print(f"Scores, details and provenance: {args.work_dir}/<model>/; VLMEvalKit's log: {log}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
