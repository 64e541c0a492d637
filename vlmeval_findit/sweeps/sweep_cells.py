"""A sweep, and the cells that it asks of each model, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from ..analysis import BestFormats
from ..benchmarks import benchmark_of
from ..benchmarks.findit import AnnotationTable, FindItVariant, FormatAxes, Views, formats
from ..benchmarks.findit import variants as cells_of
from ..core import Checked, Config, Count, Dollars, MisplacedError, YesNo
from ..engine import CallOptions, Cell, CellBuilder, Deployment
from ..models import BatchKind, ModelEntry, refuse_same_names
from ..protocol import Better, DatasetVariant, PictureSample, Settings, settings_from
from ..serving import ServeOptions


def _serving(value: Any) -> Any:
    return {"program": value} if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions(Config):
    """Options of a sweep that its file has under the same names."""

    limit: Count | None = None  # rows of every table; None: all
    samples: Count = 1  # replies to each query
    logprobs: YesNo = False  # record log-probabilities of the replies' tokens
    inference: CallOptions = field(default_factory=CallOptions)
    max_usd: Dollars | None = None
    race: YesNo = False  # drop formats early that can hardly be the best
    batch: BatchKind | None = None  # the batch service to use; None: single calls
    serve: Annotated[ServeOptions | None, Checked(_serving, before=True)] = None
    """How to serve this machine's models; None: in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep(SweepOptions):
    """Models x tables x formats, in stages."""

    models: tuple[ModelEntry, ...]
    tables: tuple[AnnotationTable, ...] = ()
    variants: tuple[DatasetVariant, ...] = ()  # asked as they are, besides the tables
    variants_by_model: Mapping[str, Sequence[DatasetVariant]] = field(default_factory=dict)
    """In place of tables and variants, each model's in its best format."""
    stages: tuple[FormatAxes, ...] = (FormatAxes(),)
    views: Views = field(default_factory=Views)
    work_dir: Path = Path("outputs")
    journal: Path = Path("outputs/calls.jsonl")
    mark: Path | None = None
    """File that says of its folder: commands over other runs leave these out, as a probe's."""
    pictures: PictureSample | None = None  # Of each table; None: all its pictures
    skip_missing: bool = False
    force: bool = False  # override what runs recorded
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Of each option that its file sets, also in ``inference``: what begins messages about it."""

    def __post_init__(self) -> None:
        refuse_same_names(self.models)


def stage_variants(
    sweep: Sweep, model: str, stage: int, winner: Any = None
) -> list[DatasetVariant]:
    """Return a model's variants in a stage; ``winner`` has the best format of the stage before."""
    if sweep.variants_by_model:
        return list(sweep.variants_by_model[model])
    cells = cells_of(sweep.tables, formats(sweep.stages[stage].after(winner)), sweep.views)
    return list(dict.fromkeys([*cells, *sweep.variants]))


def all_variants(sweep: Sweep, model: str) -> list[DatasetVariant]:
    """Return a model's variants of all stages, as if the first format won: as many calls."""
    variants: dict[DatasetVariant, None] = {}
    winner = None
    for stage in range(len(sweep.stages)):
        asked = stage_variants(sweep, model, stage, winner)
        variants |= dict.fromkeys(asked)
        winner = next(iter(asked), None)
    return list(variants)


def cells_to_ask(
    sweep: Sweep,
    deployment: Deployment,
    variants: Iterable[DatasetVariant],
    tables: CellBuilder,
) -> Iterator[Cell]:
    """Yield a model's cells: every sample of some variants."""
    options: Any = {
        "logprobs": sweep.logprobs,
        "prompt": deployment.entry.prompt,
        "pictures": sweep.pictures,
    }
    for variant in variants:
        asked = deployment.name, variant, sweep.limit, deployment.key(variant)
        for sample in range(1, sweep.samples + 1):
            yield tables.cell(*asked, sample=sample, **options)


def scoring_settings(sweep: Sweep, entry: ModelEntry) -> Settings:
    """Return how the replies of a model are scored."""
    given = {
        "space": entry.space,
        "reads_like": entry.reads_like,
        "thought_marks": entry.thought_marks,
        "force": sweep.force,
    }
    return settings_from(given)


def extra_variants(sweep: Sweep) -> dict[DatasetVariant, bool]:
    """Return the variants named besides tables, and whether their formats are compared, as those
    of another benchmark than the tables' are.
    """
    cells = cells_of(sweep.tables, formats(sweep.stages[0]), sweep.views)
    of_tables = {benchmark_of(cell).name for cell in cells}
    extra = [variant for variant in sweep.variants if sweep.tables and variant not in cells]
    return {variant: benchmark_of(variant).name not in of_tables for variant in extra}


def in_best_formats(sweep: Sweep, formats_by_model: BestFormats) -> Sweep:
    """Ask every model in its best format; ValueError if a model has none, or it fits no table."""

    def variants(model: str) -> tuple[DatasetVariant, ...]:
        asked = stage_variants(sweep, model, 0)
        return tuple(dict.fromkeys(formats_by_model.variant(model, each) for each in asked))

    by_model = {entry.name: variants(entry.name) for entry in sweep.models}
    return replace(sweep, variants_by_model=by_model, stages=sweep.stages[:1])


def refuse_race(sweep: Sweep) -> None:
    """Refuse a race that could drop no format, or has no metric to decide it."""
    if not sweep.race:
        return
    raced = [cell for used in cells_by_stage(sweep) for cell in used] or sweep.variants
    if len({variant.format for variant in raced}) < 2:
        raise MisplacedError("a race needs several formats, and this sweep has one", "race")
    first, *others = {each.name: each for each in map(benchmark_of, raced)}.values()
    if others:
        names = " and ".join(each.name for each in (first, *others))
        raise MisplacedError(f"{names} cannot race each other: make a sweep of each", "race")
    (metric,) = first.ranking[:1]
    if not metric.share or metric.better is Better.LOWER:
        why = f"only shares race, and {metric.title} is none: ask all formats, without a race"
        raise MisplacedError(why, "race")


def refuse_samples(sweep: Sweep) -> None:
    """Refuse several samples of models that answer greedily, or where formats are chosen.

    Raises:
        ValueError: the message names the model.
    """
    if sweep.samples == 1:
        return
    if sweep.race or len(sweep.stages) > 1:
        raise ValueError(
            "samples: formats are chosen by greedy replies. Leave `race` and `stages` out"
        )
    for entry in sweep.models:
        if not entry.settings.get("temperature"):
            or_in_file = ", or write temperature: 0.7 in its entry" if entry.where else ""
            raise ValueError(
                f"{entry.where}samples: {sweep.samples} greedy replies of {entry.name} would be "
                f"equal: type --temperature 0.7{or_in_file}"
            )
        if "seed" in entry.settings:
            raise ValueError(
                f"{entry.where}samples: {entry.name} has the seed of every sample in its settings: "
                "leave `seed` out, each sample has another"
            )


def cells_by_stage(sweep: Sweep) -> list[list[FindItVariant]]:
    """Return the cells of each stage in any format that may win the stage before."""
    some = [axes.after_some(sweep.stages[0]) for axes in sweep.stages]
    return [cells_of(sweep.tables, formats(axes), sweep.views) for axes in some]
