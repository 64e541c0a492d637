"""A sweep's YAML file, refused with line and reason before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from ..benchmarks import baselines, begins_with_prefix, benchmarks, parse
from ..benchmarks.findit.benchmark import FindIt
from ..benchmarks.findit.grid import (
    AXIS_VALUES,
    WINNER,
    Axes,
    Table,
    Views,
    axes_of,
    axis_from,
    benchmark,
    formats,
)
from ..benchmarks.findit.grid import variants as cells_of
from ..benchmarks.findit.variant import Variant
from ..boxes.representation import REPRESENTATIONS
from ..core.config import (
    Checked,
    Config,
    Count,
    Dollars,
    MisplacedError,
    Name,
    Several,
    SeveralOrAll,
    YesNo,
    refuse_twice,
)
from ..core.question import Question
from ..core.spelling import nearest
from ..core.yaml_text import YamlText
from ..models.http.batch.records import BatchKind
from ..models.table import MODELS, find_model
from .config import Inference, ModelEntry, Race, Sweep
from .server_programs import Serving

# --- the keys -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _AxesFile(Config):
    """The axes that a stage names, or a file without stages."""

    representations: SeveralOrAll[Name] | None = None
    outputs: SeveralOrAll[Name] | None = None
    keys: SeveralOrAll[Name] | None = None
    structures: SeveralOrAll[Name] | None = None
    centres: SeveralOrAll[Name] | None = None
    marks: SeveralOrAll[Name] | None = None
    decodings: SeveralOrAll[Name] | None = None

    def named(self) -> dict[str, Sequence[str]]:
        """The values of every axis that is named: ``all``, or a list."""
        said = {axis: getattr(self, axis) for axis in AXIS_VALUES}
        return {axis: values for axis, values in said.items() if values is not None}

    def axes(self, *, may_win: bool) -> Axes:
        """The axes; ``may_win``: there is a stage before, which has a winner."""
        return Axes(
            **{axis: axis_from(axis, said, may_win=may_win) for axis, said in self.named().items()}
        )


def _model(said: Any) -> Any:
    return {"name": said} if isinstance(said, str) else said


def _serve(said: Any) -> Any:
    return {"program": said} if isinstance(said, str) else said


def _race(said: Any) -> Any:
    if said is None or isinstance(said, dict):
        return said
    if not isinstance(said, bool):
        raise ValueError(f"race: {said!r} should be true or false, or have a seed")
    return {} if said else None


def _batch(said: Any) -> Any:
    kinds = [kind.value for kind in BatchKind]
    if said is not None and said not in kinds:
        raise ValueError(f"no batch interface {said!r}{nearest(str(said), kinds)}")
    return said


@dataclass(frozen=True, slots=True, kw_only=True)
class _SweepFile(_AxesFile):
    """The keys of a sweep's file."""

    models: Several[Annotated[ModelEntry, Checked(_model, before=True)]]
    datasets: SeveralOrAll[Name]
    stages: Several[_AxesFile] | None = None
    frames: SeveralOrAll[Count] | None = None
    captions: SeveralOrAll[YesNo] | None = None
    limit: Count | None = None
    work_dir: Name | None = None
    journal: Name | None = None
    skip_missing_images: YesNo | None = None
    inference: Inference = field(default_factory=Inference)
    max_usd: Dollars | None = None
    race: Annotated[Race | None, Checked(_race, before=True)] = None
    confidences: YesNo | None = None
    batch: Annotated[BatchKind | None, Checked(_batch, before=True)] = None
    serve: Annotated[Serving | None, Checked(_serve, before=True)] = None


# --- reading --------------------------------------------------------------------------------------


def read_sweep(path: Path, work_dir: Path | None = None) -> Sweep:
    """The sweep of a file, with the errors of :func:`parse_sweep`, and OSError."""
    return parse_sweep(path.read_text(encoding="utf-8"), str(path), work_dir)


def parse_sweep(text: str, name: str = "sweep", work_dir: Path | None = None) -> Sweep:
    """The sweep of a YAML text, which messages call ``name``.

    ``work_dir`` overrides that of the text; a journal that it does not name lies there.

    Raises:
        ConfigError: it cannot be used; the message names file, line and reason.
    """
    read = YamlText(text, name)
    try:
        return _sweep(read, read.read(_SweepFile), work_dir)
    except MisplacedError as error:
        raise read.error(str(error), *error.at) from None


def _sweep(text: YamlText, file: _SweepFile, work_dir: Path | None) -> Sweep:
    if file.stages is not None and (both := [*file.named()]):
        raise MisplacedError(f"{both[0]} stands in every stage, where there are stages", both[0])
    work_dir = work_dir or Path(file.work_dir or "outputs").expanduser()
    tables, questions = _datasets(file.datasets)
    models = tuple(
        replace(entry, line=text.line("models", at, "name")) for at, entry in enumerate(file.models)
    )
    _refuse_models(
        models, in_boxes=bool(tables) or any(question.in_boxes for question in questions)
    )
    sweep = Sweep(
        models=models,
        tables=tables,
        questions=questions,
        stages=_stages(file),
        views=_views(file),
        limit=file.limit,
        work_dir=work_dir,
        journal=Path(file.journal).expanduser() if file.journal else work_dir / "calls.jsonl",
        skip_missing=bool(file.skip_missing_images),
        inference=file.inference,
        max_usd=file.max_usd,
        race=file.race,
        confidences=bool(file.confidences),
        batch=file.batch,
        serve=file.serve,
    )
    _refuse_several_judgements(sweep, file)
    _refuse_unused(sweep, file)
    return sweep


def _refuse_models(entries: Sequence[ModelEntry], *, in_boxes: bool) -> None:
    refuse_twice([entry.name for entry in entries], "models")
    for at, entry in enumerate(entries):
        name = entry.name
        if entry.provider is not None and entry.checkpoint is not None:
            raise MisplacedError(
                f"a checkpoint is of a model on this machine, and {entry.provider} is asked "
                "(`served` is its name for the model)",
                *("models", at, "checkpoint"),
            )
        # Boxes are scored at the end, so the space must be known at the start.
        said = entry.space is not None or entry.row is not None or not in_boxes
        if not said and find_model(name) is None and name not in baselines():
            raise MisplacedError(
                f"no model {name!r} in the model table{nearest(name, [*MODELS, *baselines()])}; "
                "one that the table does not have needs `row` or `space`",
                *("models", at, "name"),
            )


def _datasets(said: Sequence[str]) -> tuple[tuple[Table, ...], tuple[Question, ...]]:
    """Tables, which are asked in the formats of the axes, and complete names of questions."""
    if said == "all":
        return benchmark(), ()
    known, found = grid_tables(), list[Table | Question]()
    for at, name in enumerate(said):
        if name not in known and not begins_with_prefix(name):
            raise MisplacedError(f"no dataset {name!r}{nearest(name, known)}", "datasets", at)
        try:
            found.append(known.get(name) or parse(name))
        except ValueError as error:
            raise MisplacedError(str(error), "datasets", at) from None
    refuse_twice([one.name for one in found], "datasets")
    tables = tuple(one for one in found if isinstance(one, Table))
    if len({table.kind for table in tables}) > 1:
        raise MisplacedError(
            "datasets of several benchmarks have no common best format: make a sweep of each, or "
            "name the questions in full",
            "datasets",
        )
    return tables, tuple(one for one in found if not isinstance(one, Table))


def grid_tables() -> dict[str, Table]:
    """Every table that is asked in the formats of the grid, of whatever benchmark, by its name."""
    of_the_grid = (one for one in benchmarks() if isinstance(one, FindIt))
    return {name: table for one in of_the_grid for name, table in one.tables().items()}


def _stages(file: _SweepFile) -> tuple[Axes, ...]:
    if file.stages is None:
        return (file.axes(may_win=False),)
    found = []
    for at, stage in enumerate(file.stages):
        try:
            found.append(stage.axes(may_win=at > 0))
        except MisplacedError as error:
            raise MisplacedError(str(error), "stages", at, *error.at) from None
    return tuple(found)


def _views(file: _SweepFile) -> Views:
    frames, captions = file.frames or (), file.captions or (False,)
    if frames == "all":
        frames = tuple(range(1, 1 + max(table.data.frames for table in grid_tables().values())))
    refuse_twice(frames, "frames")
    return Views(frames, (False, True) if captions == "all" else tuple(dict.fromkeys(captions)))


def _refuse_several_judgements(sweep: Sweep, file: _SweepFile) -> None:
    """Refuse formats that no figure compares: boxes and points."""
    said = [name for axes in sweep.stages for name in axes.representations if name != WINNER]
    ways = {REPRESENTATIONS[name].judged: name for name in reversed(said)}
    if len(ways) > 1:
        each = " and ".join(f"{name} ({way.value})" for way, name in ways.items())
        named = (name for name in ("representations", "stages") if getattr(file, name))
        raise MisplacedError(
            f"{each} are judged otherwise and have no common best format: make a sweep of each, or "
            "name the questions in full",
            next(named, "datasets"),
        )


def _refuse_unused(sweep: Sweep, file: _SweepFile) -> None:
    """Refuse a value that was written down but fits no cell: somebody wanted it."""
    if not sweep.tables and any(axes.has_winner for axes in sweep.stages):
        raise MisplacedError(f"{WINNER}: no table is named whose formats are compared", "datasets")
    cells = _cells_by_stage(sweep)
    if sweep.race is not None and len({cell.format for used in cells for cell in used}) < 2:
        raise MisplacedError("there is one format only: nothing to race", "race")
    for table in sweep.tables:
        if not cells_of([table], formats(sweep.stages[0]), sweep.views):
            raise MisplacedError(f"no cell of {table.name} fits the axes", "datasets")
    for at, used in enumerate(cells):
        fits = axes_of(used)
        stage, where = (file.stages[at], ("stages", at)) if file.stages else (file, ())
        views = {} if file.stages else {"frames": file.frames, "captions": file.captions}
        for axis, said in {**stage.named(), **views}.items():
            if said is None or said in ("all", (WINNER,)):
                continue
            for place, value in enumerate(said):
                if value not in fits[axis]:
                    raise MisplacedError(
                        f"{axis}: {value} fits no cell of this sweep", *where, axis, place
                    )


def _cells_by_stage(sweep: Sweep) -> list[list[Variant]]:
    """The cells of every stage, as if some format had won before."""
    some = [axes.after_some(sweep.stages[0]) for axes in sweep.stages]
    return [cells_of(sweep.tables, formats(axes), sweep.views) for axes in some]
