"""A sweep's YAML file: read with line numbers, and refused with a reason before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ..benchmarks import baselines, begins_with_prefix, benchmarks, parse
from ..benchmarks.findit.benchmark import FindIt
from ..benchmarks.findit.formats import Format
from ..benchmarks.findit.grid import (
    AXIS_VALUES,
    NONE,
    WINNER,
    Axes,
    Table,
    Views,
    axis_values,
    benchmark,
    formats,
)
from ..benchmarks.findit.grid import variants as cells_of
from ..boxes.reply_format import default_key
from ..boxes.representation import GRID, REPRESENTATIONS
from ..boxes.spaces import SpaceError, space_from
from ..core.model_names import check_model_name
from ..core.prediction_reader import PredictionError
from ..core.question import Question, QuestionError
from ..core.spelling import nearest
from ..models.http.batch.dialects import BatchKind
from ..models.http.providers.table import find_provider
from ..models.prices import Prices, prices_from
from ..models.table import MODELS, find_model
from .config import Inference, ModelEntry, Race, Sweep
from .yaml_lines import YamlValue, compose

Value = TypeVar("Value")


def read_sweep(path: Path, work_dir: Path | None = None) -> Sweep:
    """The sweep of a file; ``work_dir`` is as of :func:`parse_sweep`.

    Raises:
        ConfigError: it cannot be used; the message names file, line and reason.
        OSError: it cannot be read.
    """
    text = path.read_text(encoding="utf-8")
    return replace(parse_sweep(text, str(path), work_dir), source=path)


_AXES = tuple(AXIS_VALUES)


_KEYS = (
    "models",
    "datasets",
    *_AXES,
    "stages",
    "frames",
    "captions",
    "limit",
    "work_dir",
    "journal",
    "skip_missing_images",
    "inference",
    "max_usd",
    "race",
    "confidences",
    "batch",
)


def parse_sweep(text: str, name: str = "sweep", work_dir: Path | None = None) -> Sweep:
    """The sweep of a YAML text.

    Args:
        text: the text.
        name: what messages call it.
        work_dir: overrides ``work_dir`` in the text; a journal that it does not name lies there.

    Raises:
        ConfigError: it cannot be used; the message names file, line and reason.
    """
    top = compose(text, name)
    fields = top.fields(_KEYS)
    for wanted in ("models", "datasets"):
        if wanted not in fields:
            raise top.error(f"{wanted} is missing")
    if "stages" in fields and (both := [axis for axis in _AXES if axis in fields]):
        raise fields[both[0]].error(f"{both[0]} stands in every stage, where there are stages")
    work_dir = work_dir or _path(fields.get("work_dir"), Path("outputs"))
    tables, questions = _datasets(fields["datasets"])
    models = _models(fields["models"])
    if tables or any(question.in_boxes for question in questions):
        _refuse_unknown_spaces(fields["models"], models)
    sweep = Sweep(
        models=models,
        tables=tables,
        questions=questions,
        stages=_stages(fields),
        views=Views(_frames(fields.get("frames")), _captions(fields.get("captions"))),
        limit=_optional(fields.get("limit"), _count),
        work_dir=work_dir,
        journal=_path(fields.get("journal"), work_dir / "calls.jsonl"),
        skip_missing=bool(_optional(fields.get("skip_missing_images"), _yes_or_no)),
        inference=_inference(fields.get("inference")),
        max_usd=_optional(fields.get("max_usd"), _positive),
        race=_optional(fields.get("race"), _race),
        confidences=bool(_optional(fields.get("confidences"), _yes_or_no)),
        batch=_optional(fields.get("batch"), _batch),
    )
    formats_at = ("representations", "stages", "datasets")
    _refuse_several_judgements(sweep, next(fields[at] for at in formats_at if at in fields))
    _refuse_unused(sweep, fields)
    return sweep


_MODEL_KEYS = (
    "name",
    "settings",
    "resources",
    "space",
    "reads_like",
    "checkpoint",
    "row",
    "provider",
    "served",
    "prices",
    "headers",
)


def _models(given: YamlValue) -> tuple[ModelEntry, ...]:
    entries = [_model(entry) for entry in given.entries()]
    _refuse_twice(given, [entry.name for entry in entries])
    return tuple(entries)


def _model(given: YamlValue) -> ModelEntry:
    if not given.is_mapping:
        entry = ModelEntry(_word(given), line=given.line)
        _check_name(given, entry.name)
        return entry
    fields = given.fields(_MODEL_KEYS)
    if "name" not in fields:
        raise given.error("a model needs a name")
    entry = ModelEntry(
        name=_word(fields["name"]),
        settings=_mapping(fields.get("settings")),
        resources=_mapping(fields.get("resources")),
        space=_optional(fields.get("space"), _space),
        reads_like=_optional(fields.get("reads_like"), _model_row),
        checkpoint=_optional(fields.get("checkpoint"), _word),
        row=_optional(fields.get("row"), _model_row),
        provider=_optional(fields.get("provider"), _provider),
        served=_optional(fields.get("served"), _word),
        prices=_optional(fields.get("prices"), _prices),
        headers=_optional(fields.get("headers"), _headers),
        line=fields["name"].line,
    )
    _check_name(fields["name"], entry.name)
    if entry.provider is not None and entry.checkpoint is not None:
        raise fields["checkpoint"].error(
            f"a checkpoint is of a model on this machine, and {entry.provider} is asked "
            "(`served` is its name for the model)"
        )
    return entry


def _check_name(given: YamlValue, name: str) -> None:
    try:
        check_model_name(name)
    except PredictionError as error:
        raise given.error(f"{error} (`served` may have one)") from None


def _refuse_unknown_spaces(given: YamlValue, entries: Iterable[ModelEntry]) -> None:
    """Boxes are scored at the end, so the space must be known at the start."""
    for one, entry in zip(given.entries(), entries, strict=True):
        name, said = entry.name, entry.space is not None or entry.row is not None
        if not said and find_model(name) is None and name not in baselines():
            where = one.fields(_MODEL_KEYS)["name"] if one.is_mapping else one
            raise where.error(
                f"no model {name!r} in the model table{nearest(name, [*MODELS, *baselines()])}; "
                "one that the table does not have needs `row` or `space`"
            )


def _model_row(given: YamlValue) -> str:
    name = _word(given)
    if find_model(name) is None:
        raise given.error(f"no model {name!r} in the model table{nearest(name, MODELS)}")
    return name


def _provider(given: YamlValue) -> str:
    try:
        return find_provider(_word(given)).name
    except ValueError as error:
        raise given.error(str(error)) from None


def _space(given: YamlValue) -> str | Mapping[str, Any]:
    value = given.value
    try:
        space_from(value)
    except (SpaceError, TypeError) as error:
        raise given.error(str(error)) from None
    return value  # type: ignore[no-any-return]


def _datasets(given: YamlValue) -> tuple[tuple[Table, ...], tuple[Question, ...]]:
    """Tables, which are asked in the formats of the axes, and complete names of questions."""
    if given.value == "all":
        return benchmark(), ()
    known = grid_tables()
    tables, questions, names = [], [], []
    for entry in given.entries():
        name = _word(entry)
        if name in known:
            tables.append(known[name])
        elif begins_with_prefix(name):
            questions.append(_question(entry))
            name = questions[-1].name
        else:
            raise entry.error(f"no dataset {name!r}{nearest(name, known)}")
        names.append(name)
    _refuse_twice(given, names)
    if len({table.kind for table in tables}) > 1:
        raise given.error(
            "datasets of several benchmarks have no common best format: make a sweep of each, or "
            "name the questions in full"
        )
    return tuple(tables), tuple(questions)


def grid_tables() -> dict[str, Table]:
    """Every table that is asked in the formats of the grid, of whatever benchmark, by its name."""
    of_the_grid = (one for one in benchmarks() if isinstance(one, FindIt))
    return {name: table for one in of_the_grid for name, table in one.tables().items()}


def _question(given: YamlValue) -> Question:
    try:
        return parse(_word(given))
    except QuestionError as error:
        raise given.error(str(error)) from None


def _stages(fields: Mapping[str, YamlValue]) -> tuple[Axes, ...]:
    if "stages" not in fields:
        return (_axes(fields, may_win=False),)
    stages = fields["stages"].entries()
    return tuple(_axes(stage.fields(_AXES), may_win=at > 0) for at, stage in enumerate(stages))


def _axes(fields: Mapping[str, YamlValue], may_win: bool) -> Axes:
    said = {axis: _axis(axis, fields[axis], may_win) for axis in _AXES if axis in fields}
    return Axes(**said)


def _axis(axis: str, given: YamlValue, may_win: bool) -> tuple[str, ...]:
    if given.value == "all":
        return AXIS_VALUES[axis]
    if given.value == WINNER:
        if not may_win:
            raise given.error(f"{WINNER} is the best format of the stage before: there is none")
        return (WINNER,)
    words = []
    for entry in given.entries():
        word = _word(entry)
        if word not in (known := axis_values(axis, word)):
            what = axis.removesuffix("s")
            raise entry.error(f"no {what} {word!r}{nearest(word, known)}")
        words.append(word)
    _refuse_twice(given, words)
    return tuple(words)


def _frames(given: YamlValue | None) -> tuple[int, ...]:
    if given is None:
        return ()
    if given.value == "all":
        return tuple(range(1, 1 + max(table.data.frames for table in grid_tables().values())))
    counts = [_count(entry) for entry in given.entries()]
    _refuse_twice(given, counts)
    return tuple(counts)


def _captions(given: YamlValue | None) -> tuple[bool, ...]:
    if given is None:
        return (False,)
    if given.value == "all":
        return (False, True)
    return tuple(dict.fromkeys(_yes_or_no(entry) for entry in given.entries()))


def _refuse_several_judgements(sweep: Sweep, given: YamlValue) -> None:
    """Refuse formats that no figure compares: boxes and points."""
    said = [name for axes in sweep.stages for name in axes.representations if name != WINNER]
    ways = {REPRESENTATIONS[name].judged: name for name in reversed(said)}
    if len(ways) > 1:
        each = " and ".join(f"{name} ({way.value})" for way, name in ways.items())
        raise given.error(
            f"{each} are judged otherwise and have no common best format: make a sweep of each, or "
            "name the questions in full"
        )


def _refuse_unused(sweep: Sweep, fields: Mapping[str, YamlValue]) -> None:
    """Refuse a value that was written down but fits no cell: somebody wanted it."""
    if not sweep.tables and any(map(_has_winner, sweep.stages)):
        raise fields["datasets"].error(f"{WINNER}: no table is named whose formats are compared")
    if sweep.race is not None and not _has_several(sweep):
        raise fields["race"].error("there is one format only: nothing to race")
    for table in sweep.tables:
        first = sweep.stages[0]
        if not cells_of([table], formats(first), sweep.views):
            raise fields["datasets"].error(f"no cell of {table.name} fits the axes")
    stages = fields["stages"].entries() if "stages" in fields else [None]
    for axes, stage in zip(sweep.stages, stages, strict=True):
        own = fields if stage is None else stage.fields(_AXES)
        used = cells_of(sweep.tables, formats(_without_winner(axes, sweep)), sweep.views)
        for axis, values in _used_values(used).items():
            if axis not in own or own[axis].value in ("all", WINNER):
                continue
            for entry in own[axis].entries():
                if entry.value not in values:
                    raise entry.error(f"{axis}: {entry.value} fits no cell of this sweep")


def _has_several(sweep: Sweep) -> bool:
    """Whether a table is asked in several formats."""
    found = {
        cell.format
        for axes in sweep.stages
        for cell in cells_of(sweep.tables, formats(_without_winner(axes, sweep)), sweep.views)
    }
    return len(found) > 1


def _without_winner(axes: Axes, sweep: Sweep) -> Axes:
    """Axes with some format in place of the winner: one that is judged as those of the sweep."""
    first = sweep.stages[0].representations[0]
    name = "xyxy" if first in GRID else first
    stand_in = Format(name, "json", default_key(name))
    return axes.after(stand_in) if _has_winner(axes) else axes


def _has_winner(axes: Axes) -> bool:
    return any(WINNER in getattr(axes, axis) for axis in _AXES)


def _used_values(used: Iterable[Any]) -> dict[str, set[Any]]:
    values: dict[str, set[Any]] = {axis: set() for axis in (*_AXES, "frames", "captions")}
    for cell in used:
        values["representations"].add(cell.representation)
        values["outputs"].add(cell.output)
        values["structures"].add(cell.structure)
        values["centres"].add(cell.centre or NONE)
        values["marks"].add(cell.mark or NONE)
        values["frames"].add(cell.frames)
        values["captions"].add(cell.caption)
        # Text has no key and `decomposed` names its own: their default is nobody's wish.
        if cell.output == "json" and cell.structure != "decomposed":
            values["keys"].add(cell.key)
    return values


def _optional(given: YamlValue | None, read: Callable[[YamlValue], Value]) -> Value | None:
    return None if given is None or given.value is None else read(given)


def _word(given: YamlValue) -> str:
    if not isinstance(given.value, str) or not given.value:
        raise given.error(f"{given.value!r} should be a name")
    return given.value


def _count(given: YamlValue) -> int:
    value = given.value
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise given.error(f"{value!r} should be a whole number, at least 1")
    return value


def _yes_or_no(given: YamlValue) -> bool:
    if not isinstance(given.value, bool):
        raise given.error(f"{given.value!r} should be true or false")
    return given.value


def _path(given: YamlValue | None, default: Path) -> Path:
    return default if given is None else Path(_word(given)).expanduser()


def _race(given: YamlValue) -> Race | None:
    """``true``, ``false``, or a mapping with the seed."""
    if not given.is_mapping:
        return Race() if _yes_or_no(given) else None
    seed = given.fields(("seed",)).get("seed")
    if seed is None:
        raise given.error("a race that is a mapping has a seed")
    if not isinstance(seed.value, int) or isinstance(seed.value, bool):
        raise seed.error(f"{seed.value!r} should be a whole number")
    return Race(seed.value)


def _batch(given: YamlValue) -> BatchKind:
    kinds = [kind.value for kind in BatchKind]
    word = _word(given)
    if word not in kinds:
        raise given.error(f"no batch interface {word!r}{nearest(word, kinds)}")
    return BatchKind(word)


def _mapping(given: YamlValue | None) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not given.is_mapping:
        raise given.error("should be a mapping of names to values")
    return given.value  # type: ignore[no-any-return]


def _refuse_twice(given: YamlValue, values: Sequence[Any]) -> None:
    for entry, value in zip(given.entries(), values, strict=True):
        if values.count(value) > 1:
            raise entry.error(f"{value} stands twice")


def _headers(given: YamlValue) -> Mapping[str, str]:
    for name, value in _mapping(given).items():
        if not isinstance(value, str):  # not shown: it may be a key
            raise given.error(f"the header {name!r} should be a text")
    return _mapping(given)


def _prices(given: YamlValue) -> Prices:
    try:
        return prices_from(given.value if isinstance(given.value, str | list) else [given.value])
    except ValueError as error:
        raise given.error(str(error)) from None


def _positive(given: YamlValue) -> float:
    value = given.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise given.error(f"{value!r} should be a number, more than 0")
    return float(value)


_INFERENCE = tuple(Inference.__dataclass_fields__)


_FRACTIONS = ("cpus", "gpus")


def _inference(given: YamlValue | None) -> Inference:
    if given is None:
        return Inference()
    fields = given.fields(_INFERENCE)
    return Inference(**{name: _amount(name, value) for name, value in fields.items()})


def _amount(name: str, given: YamlValue) -> Any:
    if name in ("timeout", "poll"):
        return _positive(given)
    if name not in _FRACTIONS:
        return _count(given)
    value = given.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise given.error(f"{value!r} should be a number, at least 0")
    return float(value)
