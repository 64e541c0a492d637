"""``run_findit.py check``: try a benchmark, a model, a space and so on before its first run."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ..benchmarks import begins_with_prefix, benchmarks, parse
from ..boxes.representation import REPRESENTATIONS
from ..boxes.spaces import KINDS
from ..core.benchmark import Benchmark
from ..core.command import SOME_FAILED
from ..core.drawing import Drawing
from ..core.settings import settings_from
from ..core.spelling import nearest
from ..data.importers.table import IMPORTERS
from ..models.table import MODELS, find_model
from ..report.drawn import drawn_values
from ..runs import check, check_rows
from .parsing import Parser


def main(argv: Sequence[str]) -> int:
    """Print what was looked at, a line each, and at last whether all of it is right."""
    parser = Parser(prog="run_findit.py check", description=__doc__)
    parser.add_argument(
        "name",
        help="a dataset, or a benchmark (its first dataset); a model, or MODEL=CHECKPOINT; a "
        "coordinate space; a representation; a published set",
    )
    parser.add_argument("--data", default="FindIt_Demo_xyxy_json", help="what a model is asked")
    parser.add_argument("--from", dest="folder", type=Path, help="the folder of a published set")
    parser.add_argument("--out", type=Path, help="keep predictions, scores and a report here")
    parser.add_argument("--encoder", help="what scores captions")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as passing:
        wrong = _print(_findings(args, args.out or Path(passing)))
    if args.out is not None and args.out.is_dir():
        from .report import main as report

        report([str(args.out), "--out", str(args.out / "report.html")])
    print(f"{wrong} wrong" if wrong else "all right")
    return SOME_FAILED if wrong else 0


def _findings(args: Namespace, out: Path) -> check.Findings:
    """The check of what has a name.

    Raises:
        ValueError: nothing has it.
    """
    name, _, checkpoint = args.name.partition("=")
    ours = {one.name: one for one in benchmarks()}
    if begins_with_prefix(name) or name in ours:
        question = parse(_first_here(ours[name]) if name in ours else name)
        space = "pixels" if question.in_boxes else None
        settings = settings_from({"space": space, "encoder": args.encoder})
        return check.check_benchmark(question.name, settings, out, _drawn)
    if (model := find_model(name)) is not None:
        known = model.local.checkpoints if model.local else {}
        return check_rows.check_model(model, checkpoint or known.get(name), parse(args.data).name)
    if name in KINDS:
        return check_rows.check_space(KINDS[name])
    if name in REPRESENTATIONS:
        return check_rows.check_representation(REPRESENTATIONS[name])
    if name in IMPORTERS:
        return check_rows.check_importer(IMPORTERS[name], args.folder)
    names = [*ours, *MODELS, *KINDS, *REPRESENTATIONS, *IMPORTERS]
    near = nearest(name, names)
    raise ValueError(f"no benchmark, model, space, representation or set {name!r}{near}")


def _first_here(benchmark: Benchmark) -> str:
    """The first of its datasets whose table is here; where none is, the first."""
    for name in benchmark.listed():
        with suppress(FileNotFoundError):
            benchmark.load(name)
            return name
    return benchmark.listed()[0]


def _drawn(drawing: Drawing, folder: Path) -> None:
    drawn_values(drawing, folder, lambda picture: 0)


def _print(findings: Iterable[check.Finding]) -> int:
    """Print findings as they come; how many of them are wrong."""
    wrong = 0
    for one in findings:
        print(f"{'wrong' if one.wrong else 'ok':<7}{one.what}")
        if one.wrong:
            wrong += 1
            print(f"{'':<7}-> {one.wrong}")
    return wrong
