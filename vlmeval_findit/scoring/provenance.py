"""What a score rests on: one record, which is written to a file beside the score and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from ..core import (
    Checked,
    JsonObject,
    MisplacedError,
    PlainNumber,
    Text,
    TextError,
    Values,
    Whole,
    file_sha256,
    keys_of,
    quoted_value,
    read_json,
    unsafe_name,
    validate,
)
from ..models import find_model
from ..protocol import GIVEN_SOURCE, DatasetVariant, RunCosts, Scorer, SumName, sum_rows, sum_up
from ..storage import Shown, StoredIdentity, identity_values
from . import answered_by
from .answered_by import AnsweringModel
from .new_identity import plugins_used
from .recorded_reviews import ScoreReviews
from .recorded_scorer import scored_with_now
from .reply_note import reply_note
from .row_scoring import RunScore
from .score_reading import ScoreFileError
from .stated_values import note_on_stated

UNKNOWN_PROMPTS = "unknown"  # The prompt set of a run that did not record what it asked


@dataclass(frozen=True, slots=True)
class _Named:
    name: Text


@dataclass(frozen=True, slots=True)
class _KnownOfSpace:
    kind: Text
    source: Text


@dataclass(frozen=True, slots=True)
class TableFile:
    """The table that a run was asked about."""

    file: Text
    sha256: Text
    meta: Values | None = None  # The facts of its ``.meta.json``


def _file_name(name: str) -> str:
    """Return the name of a file in the same folder, or raise ValueError."""
    why = unsafe_name(name)
    if why is not None:
        raise ValueError(f"{quoted_value(name)} {why}")
    if "/" in name:
        raise ValueError(f"{quoted_value(name)} should be a name without a folder")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionsFile:
    """The predictions that were scored."""

    file: Annotated[Text, Checked(_file_name)]
    sha256: Text
    rows: Whole = 0  # That were scored
    rows_missing: tuple[Whole, ...]


def _with_texts(values: Any) -> Any:
    """Write the settings of a scorer as texts; its versions are needed."""
    if isinstance(values, Mapping) and "versions" not in values:
        raise MisplacedError("versions is missing")
    if not isinstance(values, Mapping) or not isinstance(values.get("settings"), Mapping):
        return values
    return {**values, "settings": {name: str(each) for name, each in values["settings"].items()}}


def _or_unknown(digest: Any) -> Any:
    return UNKNOWN_PROMPTS if digest is None else digest


# Keys that a file has where they say something only
_OPTIONAL = ("scorer", "reviews", "thought_marks", "reads_like", "plugins")
_RECORDS = (Scorer, ScoreReviews, RunCosts, TableFile, PredictionsFile)
_OF_DETAILS = ("rows", "shown")  # What a score's details say, not this file


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a score rests on, as far as its run recorded it: a field a key of its file, in order.

    Keys with a value here are of files that versions before did not write.
    """

    model: Text
    dataset: Text = ""
    benchmark: Text = ""
    variant: Annotated[JsonObject, keys_of(_Named)]  # Its name and fields
    identity: StoredIdentity | None  # As recorded before the first call (None: not recorded)
    digest: Annotated[Text, Checked(_or_unknown, before=True)]  # Short name of the identity
    forced: tuple[Text, ...]  # Conflicts that ``--force`` went over, in the run or its scoring
    # Coordinate spaces in force: ``kind``, settings, and their ``source``
    spaces: tuple[Annotated[JsonObject, keys_of(_KnownOfSpace)], ...]
    coords_doubt: Text | None = None  # Why the declared space is in doubt (None: it is not)
    # What decided besides the benchmark's code
    scorer: Annotated[Scorer, Checked(_with_texts, before=True)] | None = None
    reviews: ScoreReviews | None = None  # Of labels, that it was scored with
    thought_marks: tuple[Text, Text] | None = None  # That the score was told
    reads_like: Text | None = None  # Known model that the score was told
    answered_by: tuple[JsonObject, ...] = ()  # What replies say of their model, with ``rows``
    replies: Mapping[str, PlainNumber] = field(default_factory=dict)  # Of :func:`.count_replies`
    costs: RunCosts = field(default_factory=RunCosts)  # As far as they are known
    table: TableFile
    predictions: PredictionsFile
    totals: Mapping[str, PlainNumber]  # Of the rows as the details have them, each once
    metrics: Values = field(default_factory=dict)  # By key, in percent
    reasons: Mapping[str, PlainNumber] = field(default_factory=dict)  # Why replies do not adhere
    scored_with: Mapping[str, Text]  # Of :func:`.scored_with_now`
    plugins: Mapping[str, Text] = field(default_factory=dict)
    scored_at: Text
    rows: frozenset[int] = frozenset()  # Indices of the rows that were scored
    shown: Mapping[int, Shown] = field(default_factory=dict)  # Images of each row, where recorded

    @property
    def prompts(self) -> str:
        """The prompt set."""
        return (self.identity and self.identity.prompts) or UNKNOWN_PROMPTS

    @property
    def prompt_hash(self) -> str | None:
        """The hash over the prompts of every row of the table."""
        return self.identity.prompt_hash if self.identity else None

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions at inference."""
        return {**self.identity.host, **self.identity.versions} if self.identity else {}

    @property
    def table_sha256(self) -> str:
        return self.table.sha256

    @property
    def made_of(self) -> Mapping[str, Any]:
        """The facts of the table's ``.meta.json``."""
        return self.table.meta or {}

    @property
    def predictions_sha256(self) -> str:
        return self.predictions.sha256

    @property
    def missing(self) -> tuple[int, ...]:
        """The rows that were not scored."""
        return self.predictions.rows_missing

    @property
    def spaces_in_words(self) -> tuple[str, ...]:
        """The spaces, each with its source: ``smart_resize patch=16 (model table: Qwen3-VL)``."""
        return tuple(f"{space_in_words(each)} ({each['source']})" for each in self.spaces)

    @property
    def is_in_given_space(self) -> bool:
        """Whether it was scored in another space than its run recorded."""
        return any(space["source"].startswith(GIVEN_SOURCE) for space in self.spaces)

    @property
    def models(self) -> tuple[AnsweringModel, ...]:
        """The models that say they answered."""
        return answered_by.models_in(self.answered_by)

    @property
    def answered_note(self) -> str | None:
        """Say that several models answered, or another than was asked."""
        return answered_by.answered_note(self.models, self.identity)

    @property
    def reply_note(self) -> str | None:
        """Say what is odd in the replies; None: nothing."""
        return reply_note(self.replies)

    @property
    def stated_note(self) -> str | None:
        """Say what was stated in place of what is known; None: nothing."""
        return note_on_stated(
            self.model, self.identity, self.spaces, self.thought_marks, self.reads_like
        )

    @property
    def voter(self) -> str:
        """The name of the run among voters: its digest, else that of its predictions."""
        return self.digest if self.identity is not None else self.predictions_sha256[:12]

    @property
    def custom_words(self) -> str:
        """Say which words of the user's a run was asked in; "" for the benchmark's."""
        custom = self.identity.custom_prompt if self.identity else {}
        names = {"system": "a system text", "template": "a prompt template"}
        given = [name for key, name in names.items() if custom.get(key)]
        if not given:
            return ""
        return f"asked with {' and '.join(given)} of its user ({self.prompts})"

    @property
    def scored_under(self) -> frozenset[tuple[str, str]]:
        """The settings of the scorer and the reviews: runs with others cannot be compared."""
        settings = dict(self.scorer.settings) if self.scorer else {}
        if self.reviews is not None:
            settings["reviews"] = self.reviews.digest
        return frozenset(settings.items())


def space_in_words(space: Mapping[str, Any]) -> str:
    """Return a space without its source: ``smart_resize patch=16``."""
    words = [space["kind"]]
    for name, value in space.items():
        if name not in ("kind", "source") and value:
            words.append(f"{name}={value}")
    return " ".join(words)


# --- its file -------------------------------------------------------------------------------------


def read_provenance(path: Path) -> Provenance:
    """Read the provenance of a score, without what its details say.

    Raises:
        ScoreFileError: it is damaged.
        OSError: it cannot be read.
    """
    try:
        return provenance_from(read_json(path))
    except MisplacedError as error:
        raise ScoreFileError(f"{path}: {error.below()}") from None
    except TextError as error:
        raise ScoreFileError(error.message_for(path)) from None


def provenance_from(values: object) -> Provenance:
    """Make a provenance of the values of its file, or raise a MisplacedError."""
    return validate(Provenance, values)


def provenance_values(provenance: Provenance) -> dict[str, Any]:
    """Return the values of the file, as :func:`read_provenance` reads them."""
    values: dict[str, Any] = {}
    for each in fields(provenance):
        value = getattr(provenance, each.name)
        if each.name in _OF_DETAILS or (each.name in _OPTIONAL and not value):
            continue
        values[each.name] = asdict(value) if isinstance(value, _RECORDS) else value
    values["identity"] = provenance.identity and identity_values(provenance.identity)
    values["digest"] = provenance.identity and provenance.digest
    return values


# --- of a score that was just made ----------------------------------------------------------------


def provenance_of(run: RunScore, predictions: Path) -> Provenance:
    """Return what a score depends on."""
    meta = run.dataset.table.with_suffix(".meta.json")
    benchmark = run.benchmark
    identity = run.identity
    scored = frozenset(row.index for row in run.rows)
    metrics = (*benchmark.metrics, benchmark.headline_counting_failures)
    values = run.values(metrics)
    marks = run.thought_marks
    return Provenance(
        model=run.model,
        dataset=run.dataset.name,
        benchmark=benchmark.name,
        variant=_variant_values(run.dataset.variant),
        identity=identity,
        digest=identity.digest if identity is not None else UNKNOWN_PROMPTS,
        forced=(*(identity.forced if identity else ()), *run.forced),
        spaces=tuple(dict(space) for space in run.spaces),
        coords_doubt=run.coords_doubt,
        scorer=run.scorer,
        reviews=run.reviews,
        thought_marks=(marks.opens, marks.closes) if marks else None,
        reads_like=run.reads_like,
        answered_by=tuple(answered_by.as_values(run.answered_by)),
        replies=dict(run.reply_counts),
        costs=sum_up(run.costs),
        table=TableFile(
            file=run.dataset.table.name,
            sha256=file_sha256(run.dataset.table),
            meta=read_json(meta) if meta.is_file() else None,
        ),
        predictions=PredictionsFile(
            file=predictions.name,
            sha256=file_sha256(predictions),
            rows=len(run.rows),
            rows_missing=tuple(sorted(set(run.dataset.queries) - scored)),
        ),
        totals={key: total for key, total in _totals(run).items() if isinstance(key, str)},
        metrics={metric.key or metric.name: values[metric.name] for metric in metrics},
        reasons=dict(run.reasons),
        # Versions of inference are in the run's identity.
        scored_with=scored_with_now(run.dataset.variant, _row_of(run), _kinds(run)),
        plugins=_plugins(run),
        scored_at=datetime.now(UTC).isoformat(timespec="seconds"),
        rows=scored,
    )


def _totals(run: RunScore) -> Mapping[SumName, float]:
    return run.sums if run.reviews is None else sum_rows(run.rows)


def _variant_values(variant: DatasetVariant) -> dict[str, Any]:
    """Return a variant's name and fields; an enum as its value."""
    values: dict[str, Any] = {"name": variant.name}
    if is_dataclass(variant):
        for name, value in asdict(variant).items():
            values[name] = getattr(value, "value", value)
    return values


def _plugins(run: RunScore) -> dict[str, str]:
    """Return the versions of the plug-ins that the run and its scoring used."""
    recorded = run.identity.plugins if run.identity is not None else {}
    return {**plugins_used(run.dataset.variant, _row_of(run), _kinds(run)), **recorded}


def _row_of(run: RunScore) -> str | None:
    """Return the name of the model's row; None if no row is known."""
    if run.identity is not None and run.identity.answering.row:
        return run.identity.answering.row
    known = find_model(run.model)
    return known.name if known is not None else None


def _kinds(run: RunScore) -> list[str]:
    return [space["kind"] for space in run.spaces]
