"""``run_findit.py check``: try a benchmark, a model, a space and so on before its first run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click

from ..benchmarks import begins_with_prefix, benchmarks, parse
from ..boxes.representation import REPRESENTATIONS
from ..boxes.spaces import KINDS
from ..core.benchmark import Benchmark
from ..core.command import SOME_FAILED
from ..core.drawing import Drawing
from ..core.settings import settings_from
from ..core.spelling import nearest
from ..data.sources import published_sets
from ..models.model_table import MODELS, find_model
from ..report.drawn import drawn_values
from ..runs import benchmark_check, plugin_row_check
from .options import PATH, Command, complete_datasets


@click.command(cls=Command, examples=["python run_findit.py check MyModel --plugin mine.py"])
@click.argument("name")
@click.option(
    "--data",
    default="FindIt_Demo_xyxy_json",
    metavar="NAME",
    shell_complete=complete_datasets,
    help="What a model is asked.",
)
@click.option("--from", "folder", type=PATH, metavar="DIR", help="The folder of a published set.")
@click.option("--out", type=PATH, metavar="DIR", help="Keep predictions, scores, a report there.")
@click.option("--encoder", metavar="NAME", help="What scores captions.")
def command(
    name: str, data: str, folder: Path | None, out: Path | None, encoder: str | None
) -> int:
    """Try a benchmark, a model, a space … before its first run.

    NAME is a dataset, or a benchmark (its first dataset); a model, or MODEL=CHECKPOINT; a
    coordinate space; a representation; a published set. Exit status 1: something is wrong.
    """
    with tempfile.TemporaryDirectory() as passing:
        wrong = _print(_findings(name, data, folder, encoder, out or Path(passing)))
    if out is not None and out.is_dir():
        from .report import write_report

        write_report([out], out / "report.html")
    print(f"{wrong} wrong" if wrong else "all right")
    return SOME_FAILED if wrong else 0


def _findings(
    asked: str, data: str, folder: Path | None, encoder: str | None, out: Path
) -> benchmark_check.Findings:
    """The check of what has a name.

    Raises:
        ValueError: nothing has it.
    """
    name, _, checkpoint = asked.partition("=")
    ours = {one.name: one for one in benchmarks()}
    if begins_with_prefix(name) or name in ours:
        question = parse(_first_here(ours[name]) if name in ours else name)
        space = "pixels" if question.in_boxes else None
        settings = settings_from({"space": space, "encoder": encoder})
        return benchmark_check.check_benchmark(question.name, settings, out, _drawn)
    if (model := find_model(name)) is not None:
        known = model.local.checkpoints if model.local else {}
        return plugin_row_check.check_model(model, checkpoint or known.get(name), parse(data).name)
    if name in KINDS:
        return plugin_row_check.check_space(KINDS[name])
    if name in REPRESENTATIONS:
        return plugin_row_check.check_representation(REPRESENTATIONS[name])
    sets = published_sets()
    if name in sets:
        return plugin_row_check.check_importer(sets[name], folder)
    names = [*ours, *MODELS, *KINDS, *REPRESENTATIONS, *sets]
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


def _print(findings: Iterable[benchmark_check.Finding]) -> int:
    """Print findings as they come; how many of them are wrong."""
    wrong = 0
    for one in findings:
        print(f"{'wrong' if one.wrong else 'ok':<7}{one.what}")
        if one.wrong:
            wrong += 1
            print(f"{'':<7}-> {one.wrong}")
    return wrong
