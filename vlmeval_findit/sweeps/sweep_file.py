"""Read the YAML file of a sweep: errors name line and reason, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from ..benchmarks import baselines, begins_with_prefix, benchmarks, refuse_misnamed
from ..benchmarks.findit import (
    AXIS_VALUES,
    STAGE_WINNER,
    AnnotationTable,
    FindIt,
    FormatAxes,
    Views,
    axes_of,
    axis_from,
    formats,
    release_tables,
    table_called,
)
from ..benchmarks.findit import variants as cells_of
from ..boxes import REPRESENTATIONS
from ..core import (
    Checked,
    Config,
    ConfigError,
    Count,
    MisplacedError,
    Name,
    Several,
    SeveralOrAll,
    TextError,
    YamlText,
    YesNo,
    no_effect,
    read_text,
    refuse_duplicates,
    suggestion,
)
from ..data import parse_dataset, refuse_unmade
from ..models import (
    KEYS_OF_SERVICES,
    MODEL_KEYS,
    MODELS,
    ModelEntry,
    entry_values,
    find_model,
    like_its_checkpoint,
    meant_model,
    row_of_checkpoint,
    same_checkpoint,
    space_or_variable,
)
from ..protocol import DatasetVariant
from ..storage import SWEEP_JOURNAL
from .sweep_cells import Sweep, SweepOptions, cells_by_stage, refuse_race


@dataclass(frozen=True, kw_only=True)
class _AxesFile(Config):
    """The axes of a stage, or of a file without stages."""

    representations: SeveralOrAll[Name] | None = None
    outputs: SeveralOrAll[Name] | None = None
    keys: SeveralOrAll[Name] | None = None
    structures: SeveralOrAll[Name] | None = None
    centres: SeveralOrAll[Name] | None = None
    marks: SeveralOrAll[Name] | None = None
    decodings: SeveralOrAll[Name] | None = None

    def named(self) -> dict[str, Sequence[str]]:
        by_axis = {axis: getattr(self, axis) for axis in AXIS_VALUES}
        return {axis: values for axis, values in by_axis.items() if values is not None}

    def axes(self, *, may_win: bool) -> FormatAxes:
        named = self.named().items()
        return FormatAxes(**{axis: axis_from(axis, of, may_win=may_win) for axis, of in named})


def _model_values(entry: Any) -> Any:
    """Return the values of a model; refuse keys that are of the whole sweep."""
    for key in entry if isinstance(entry, Mapping) else ():
        if key in SweepFile.__dataclass_fields__:
            raise MisplacedError(f"write `{key}` next to `models`, not here", key, is_key=True)
    return entry_values(entry)


@dataclass(frozen=True, kw_only=True)
class SweepFile(_AxesFile, SweepOptions):
    """The keys of a sweep's file."""

    instead_of_secret = KEYS_OF_SERVICES
    belong_elsewhere = dict.fromkeys(MODEL_KEYS, "in each model")

    models: Several[Annotated[ModelEntry, Checked(_model_values, before=True)]]
    datasets: SeveralOrAll[Name]
    stages: Several[_AxesFile] | None = None
    frames: SeveralOrAll[Count] | None = None
    captions: SeveralOrAll[YesNo] | None = None
    work_dir: Name | None = None
    journal: Name | None = None
    skip_missing_images: YesNo | None = None


def read_sweep(path: Path, work_dir: Path | None = None) -> Sweep:
    """Read a sweep file; raises as :func:`parse_sweep`, and OSError."""
    try:
        text = read_text(path)
    except TextError as error:
        raise ConfigError(error.message_for(path)) from None
    return parse_sweep(text, str(path), work_dir)


def parse_sweep(text: str, name: str = "sweep", work_dir: Path | None = None) -> Sweep:
    """Parse the YAML of a sweep; ConfigError has its ``name``, line and reason.

    ``work_dir`` overrides that of the text, and is the default place of the journal.
    """
    read = YamlText(text, name)
    try:
        return _sweep(read, read.read(SweepFile), work_dir)
    except MisplacedError as error:
        raise read.error(str(error), *error.at) from None


def _sweep(text: YamlText, file: SweepFile, work_dir: Path | None) -> Sweep:
    if file.stages is not None and (both := [*file.named()]):
        raise MisplacedError(f"write {both[0]} in each stage, not outside of `stages`", both[0])
    work_dir = work_dir or Path(file.work_dir or "outputs").expanduser()
    tables, variants = _datasets(file.datasets)
    models = tuple(
        replace(like_its_checkpoint(entry), where=text.place("models", at, "name"))
        for at, entry in enumerate(file.models)
    )
    _refuse_models(models, in_boxes=bool(tables) or any(each.in_boxes for each in variants))
    sweep = Sweep(
        **{option.name: getattr(file, option.name) for option in fields(SweepOptions)},
        models=models,
        tables=tables,
        variants=variants,
        stages=_stages(file),
        views=_views(file),
        work_dir=work_dir,
        journal=Path(file.journal).expanduser() if file.journal else work_dir / SWEEP_JOURNAL,
        skip_missing=bool(file.skip_missing_images),
        places=_places(text, file),
    )
    _refuse_serving_elsewhere(sweep)
    _refuse_several_judgements(sweep, file)
    _refuse_unused(sweep, file)
    refuse_race(sweep)
    return sweep


def _places(text: YamlText, file: SweepFile) -> dict[str, str]:
    """Return file and line of the options that are not as they are without a file's key."""
    usual = SweepOptions()
    places = dict[str, str]()
    for option in fields(SweepOptions):
        value = getattr(file, option.name)
        if option.name == "inference":
            set_here = [
                each.name
                for each in fields(value)
                if getattr(value, each.name) != getattr(usual.inference, each.name)
            ]
            places |= {name: text.place("inference", name, is_key=True) for name in set_here}
        elif value != getattr(usual, option.name):
            places[option.name] = text.place(option.name, is_key=True)
    return places


_NO_BEST = "have no common best format: make a sweep of each, or name the variants in full"


def _refuse_models(entries: Sequence[ModelEntry], *, in_boxes: bool) -> None:
    for at, entry in enumerate(entries):
        name = entry.name
        if entry.provider is not None and entry.checkpoint is not None:
            raise MisplacedError(
                f"a checkpoint is of a local model, but {entry.provider} is asked; `served` is its "
                "name for the model",
                "models",
                at,
                "checkpoint",
            )
        # Boxes are scored at the end, but the space must be known at the start.
        states_space = entry.like is not None or space_or_variable(entry.space, None) is not None
        has_space = states_space or not in_boxes
        if not has_space and find_model(name) is None and name not in baselines():
            if entry.checkpoint is not None:
                _refuse_checkpoint(entry, at)
            meant = meant_model(name, [*MODELS, *baselines()])
            if ours := same_checkpoint(name):
                meant = f" ({' or '.join(ours)} is the same checkpoint, asked as the protocol says)"
            raise MisplacedError(
                f"unknown model {name!r}{meant} (other models need `like` or `space`)",
                "models",
                at,
                "name",
            )


def _refuse_checkpoint(entry: ModelEntry, at: int) -> None:
    """Say why a checkpoint does not decide for a row of the model table."""
    assert entry.checkpoint is not None
    try:
        row_of_checkpoint(entry.name, entry.checkpoint)
    except ValueError as error:
        raise MisplacedError(str(error), "models", at, "checkpoint") from None


def _datasets(
    names: Sequence[str],
) -> tuple[tuple[AnnotationTable, ...], tuple[DatasetVariant, ...]]:
    """Split names into tables, asked in the formats of the axes, and complete variants."""
    if names == "all":
        return release_tables(), ()
    known = grid_tables()
    chosen = list[AnnotationTable | DatasetVariant]()
    for at, typed in enumerate(names):
        name = typed if begins_with_prefix(typed) else table_called(typed)
        try:
            chosen.append(known.get(name) or _variant(name, known))
        except ValueError as error:
            raise MisplacedError(str(error), "datasets", at) from None
    refuse_duplicates([item.name for item in chosen], "datasets")
    tables = tuple(item for item in chosen if isinstance(item, AnnotationTable))
    if len({table.variant_class for table in tables}) > 1:
        raise MisplacedError(f"datasets of several benchmarks {_NO_BEST}", "datasets")
    return tables, tuple(item for item in chosen if not isinstance(item, AnnotationTable))


def grid_tables() -> dict[str, AnnotationTable]:
    """Return all tables that are asked in the formats of the grid, by name."""
    of_the_grid = (each for each in benchmarks() if isinstance(each, FindIt))
    return {name: table for each in of_the_grid for name, table in each.tables().items()}


def _stages(file: SweepFile) -> tuple[FormatAxes, ...]:
    if file.stages is None:
        return (file.axes(may_win=False),)
    axes_by_stage = []
    for at, stage in enumerate(file.stages):
        try:
            axes_by_stage.append(stage.axes(may_win=at > 0))
        except MisplacedError as error:
            raise MisplacedError(str(error), "stages", at, *error.at) from None
    return tuple(axes_by_stage)


def _variant(name: str, tables: Iterable[str]) -> DatasetVariant:
    """Parse the complete name of a variant; a ValueError for what is no name, and no table."""
    if not begins_with_prefix(name):
        refuse_misnamed(name)
        refuse_unmade(name, takes_tables=True)
        raise ValueError(f"unknown dataset {name!r}{suggestion(name, tables)}")
    return parse_dataset(name)


def _views(file: SweepFile) -> Views:
    frames = file.frames or ()
    captions = file.captions or (False,)
    if frames == "all":
        frames = tuple(range(1, 1 + max(table.data.frames for table in grid_tables().values())))
    refuse_duplicates(frames, "frames")
    return Views(frames, (False, True) if captions == "all" else tuple(dict.fromkeys(captions)))


def _refuse_serving_elsewhere(sweep: Sweep) -> None:
    """Refuse to serve models here that are all asked elsewhere."""
    first = sweep.models[0]
    if sweep.serve is not None and all(each.base_url or each.provider for each in sweep.models):
        where = "base_url" if first.base_url else "provider"
        raise MisplacedError(
            no_effect("serve", f"{first.name} is asked elsewhere ({where})", "Leave one out"),
            "serve",
            is_key=True,
        )


def _refuse_several_judgements(sweep: Sweep, file: SweepFile) -> None:
    """Refuse to compare boxes with points: they have no common metric."""
    names = [name for axes in sweep.stages for name in axes.representations if name != STAGE_WINNER]
    rules = {REPRESENTATIONS[name].match_rule: name for name in reversed(names)}
    if len(rules) > 1:
        clashing = " and ".join(f"{name} ({rule.value})" for rule, name in rules.items())
        where = "stages" if file.stages else "representations"
        raise MisplacedError(f"{clashing} are matched by different rules and {_NO_BEST}", where)


def _refuse_unused(sweep: Sweep, file: SweepFile) -> None:
    if not sweep.tables and any(axes.has_winner for axes in sweep.stages):
        raise MisplacedError(
            f"{STAGE_WINNER}: `datasets` names no table whose formats are compared", "datasets"
        )
    shaping = [
        key
        for key in ("stages", *AXIS_VALUES, "frames", "captions")
        if getattr(file, key) is not None
    ]
    if not sweep.tables and shaping:
        raise MisplacedError(
            no_effect(shaping[0], "`datasets` names no table whose formats it chooses"),
            shaping[0],
            is_key=True,
        )
    cells = cells_by_stage(sweep)
    for table in sweep.tables:
        if not cells_of([table], formats(sweep.stages[0]), sweep.views):
            raise MisplacedError(f"no cell of {table.name} fits the axes", "datasets")
    for at, used in enumerate(cells):
        fits = axes_of(used)
        where: tuple[str | int, ...] = ()
        if file.stages:
            where = ("stages", at)
            stated: Mapping[str, Any] = file.stages[at].named()
        else:
            stated = {**file.named(), "frames": file.frames, "captions": file.captions}
        for axis, values in stated.items():
            if values is None or values in ("all", (STAGE_WINNER,)):
                continue
            for place, value in enumerate(values):
                if value not in fits[axis]:
                    raise MisplacedError(
                        f"{axis}: no cell of this sweep has {value}", *where, axis, place
                    )
