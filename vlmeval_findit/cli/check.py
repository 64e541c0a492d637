"""``check``: try a benchmark, a model, a space … before its first run; ``plugins``: list them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from ..benchmarks import begins_with_prefix, benchmark_of, benchmarks, refuse_file
from ..boxes import FILE_PIXELS, REPRESENTATIONS, SPACE_KINDS
from ..core import EXIT_SOME_FAILED, as_called, reported, scrub, suggestion, unreported
from ..data import load_dataset, parse_dataset, published_sets
from ..models import MODELS, find_model, row_of_checkpoint
from ..protocol import Benchmark, Drawing, custom_prompt, settings_from
from ..report import drawn_values
from ..scoring import plugin_tables
from . import plugin_checks
from .access import without_effect
from .command_base import PATH, WRITTEN, Command, complete_datasets, option, say
from .model_options import prompt_options
from .printing import print_text

_ASKED_ABOUT = "FindIt_Demo_xyxy_json"

_MODEL = "a model"
_DATASET = "a dataset"
_CAPTIONS = "a dataset of captions, which an encoder scores"
_SET = "a published set"

_USED_BY = {
    **dict.fromkeys(("data", "like", "system", "prompt_template"), _MODEL),
    "from": _SET,
    "out": _DATASET,
    "encoder": _CAPTIONS,
}
"""What is checked with an option."""


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py check",
        "python run_findit.py check MyModel --plugin mine.py  # yours",
    ],
)
@click.argument("name", required=False)
@option(
    "--data",
    "NAME",
    f"Dataset that a model is asked about.  [default: {_ASKED_ABOUT}]",
    shell_complete=complete_datasets,
)
@option("--like", "NAME", "Known model that MODEL=CHECKPOINT is run like.")
@click.option("--from", "from", type=PATH, metavar="DIR", help="The folder of a published set.")
@option("--out", "DIR", "Write predictions, scores, a report there.", type=WRITTEN)
@option("--encoder", "NAME", "What scores captions.")
@prompt_options
def command(
    name: str | None,
    **options: Any,
) -> int:
    """Try a benchmark, a model, a space … before its first run; list what plug-ins add.

    Without a NAME: the rows of plug-ins, by table, and what cannot be used. NAME is a dataset, or a
    benchmark (its first dataset that is on disk); a model, or MODEL=CHECKPOINT; a coordinate space;
    a representation; a published set. Exit status 1: something is wrong.
    """
    if name is None:
        for flag in (each for each, value in options.items() if value is not None):
            raise without_effect(flag, "no NAME says what to try", "Name it")
        return list_plugins()
    wrong = 0
    status = 0
    out: Path | None = options["out"]
    with tempfile.TemporaryDirectory() as temporary:
        for finding in _findings(name, options, Path(temporary)):
            print_text(f"{'wrong' if finding.wrong else 'ok':<7}{finding.what}")
            if finding.wrong:
                wrong += 1
                print_text(f"{'':<7}-> {finding.wrong}")
    if out is not None and out.is_dir():
        from .report import write_report

        status = write_report([out], out / "report.html")
    say(f"{wrong} wrong" if wrong else "all right")
    return EXIT_SOME_FAILED if wrong else status


def _findings(target: str, options: Mapping[str, Any], temporary: Path) -> plugin_checks.Findings:
    """Return the check of the row that has a name; a ValueError if no table has one.

    What is written goes to ``--out``, else into a temporary folder.
    """
    given = [option for option, value in options.items() if value is not None]
    prompt = custom_prompt(options["system"], options["prompt_template"])
    data = options["data"] or _ASKED_ABOUT
    like = options["like"]
    name, _, checkpoint = target.partition("=")
    known = {benchmark.name: benchmark for benchmark in benchmarks()}
    is_dataset = begins_with_prefix(name) or name in known
    if prompt is not None and is_dataset:
        raise ValueError(
            "--system and --prompt-template are tried with a model: "
            f"check MODEL --data {name}; data show {name} prints them without"
        )
    if is_dataset:
        variant = parse_dataset(_first_with_table(known[name]) if name in known else name)
        uses_encoder = benchmark_of(variant.name).uses_encoder
        _refuse_unused(given, name, _DATASET, *([_CAPTIONS] if uses_encoder else []))
        space = FILE_PIXELS.kind if variant.in_boxes else None
        settings = settings_from({"space": space, "encoder": options["encoder"]})

        def draw(drawing: Drawing, folder: Path) -> None:
            drawn_values(drawing, folder, lambda image: 0)

        return plugin_checks.check_benchmark(
            variant.name, settings, options["out"] or temporary, draw
        )
    if like is not None and not checkpoint:
        command = f"run_findit.py check {name}=CHECKPOINT --like {like}"
        raise ValueError(f"--like {like}: of which checkpoint? Type: {command}")
    model = row_of_checkpoint(name, checkpoint, like) if checkpoint else find_model(name)
    if model is not None:
        _refuse_unused(given, name, _MODEL)
        checkpoints = model.local.checkpoints if model.local else {}
        path = checkpoint or checkpoints.get(name)
        return plugin_checks.check_model(model, path, parse_dataset(data).name, prompt=prompt)
    sets = published_sets()
    if name in SPACE_KINDS:
        _refuse_unused(given, name, "a coordinate space")
        return plugin_checks.check_space(SPACE_KINDS[name])
    if name in REPRESENTATIONS:
        _refuse_unused(given, name, "a representation")
        return plugin_checks.check_representation(REPRESENTATIONS[name])
    if name in sets:
        _refuse_unused(given, name, _SET)
        return plugin_checks.check_source(sets[name], options["from"])
    refuse_file(name)
    of_this_set = f"_{name}_".casefold()
    listed = (dataset for benchmark in known.values() for dataset in benchmark.variant_names())
    if dataset := next((each for each in listed if of_this_set in f"{each}_".casefold()), None):
        command = as_called(f"python run_findit.py check {dataset}")
        raise ValueError(f"{name!r} is only part of a dataset's name. Type {command}")
    near = suggestion(name, [*known, *MODELS, *SPACE_KINDS, *REPRESENTATIONS, *sets])
    near = near or as_called("; for names type python run_findit.py models, or data list")
    raise ValueError(f"unknown benchmark, model, space, representation or set {name!r}{near}")


def _refuse_unused(given: Iterable[str], name: str, *kinds: str) -> None:
    """Refuse options that change nothing in the check of a name, which is of some kinds."""
    for flag in given:
        if _USED_BY[flag] not in kinds:
            why = f"{name} is {kinds[0]}, and the flag is for {_USED_BY[flag]}"
            raise without_effect(flag, why)


def _first_with_table(benchmark: Benchmark) -> str:
    """Return a benchmark's first dataset with a table on disk, else its first."""
    for name in benchmark.variant_names():
        with suppress(FileNotFoundError):
            load_dataset(name)
            return name
    return benchmark.variant_names()[0]


# --- plugins ---

_WIDTH = 80
_GROUP = 16
_ROW = 24


@click.command(cls=Command)
def plugins() -> int:
    """List the rows that plug-ins add, by table, and what cannot be used.

    docs/how-to/benchmarks.md says how to write a plug-in. Exit status 1: something is broken.
    """
    return list_plugins()


def list_plugins() -> int:
    """Print the rows that plug-ins add; returns 1 if something is broken."""
    with unreported():
        tables = {group.value: table.added() for group, table in plugin_tables().items()}
    rows = [(group, *row) for group, added in tables.items() for row in added.items()]
    for group, name, added in rows:
        plugin = added.plugin
        row = f"{group:<{_GROUP}}{name:<{_ROW}}"
        version = f"{plugin.name} {plugin.version}"
        fits = len(name) < _ROW and len(row) + len(version) <= _WIDTH
        _print_indented(*([row + version] if fits else [row.rstrip(), version]), plugin.origin)
    broken = reported()
    for each in broken:
        plugin = each.plugin
        group = each.group.value if each.group else "file"
        why = wrap(scrub(each.why), _WIDTH - _GROUP, break_long_words=False, break_on_hyphens=False)
        first = f"{group:<{_GROUP}}{f'broken: {each.what}'.rstrip()}"
        _print_indented(first, f"{plugin.name} {plugin.version}".rstrip(), plugin.origin, *why)
    if not rows and not broken:
        say("No plug-in adds a row: docs/how-to/benchmarks.md says how to write a plug-in.")
    return EXIT_SOME_FAILED if broken else 0


def _print_indented(first: str, *rest: str) -> None:
    say("\n".join([first, *(f"{'':<{_GROUP}}{line}" for line in rest)]))
