"""What can be refused by our tables and files alone: nothing here imports VLMEvalKit or torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from ..benchmarks import baseline_for, baselines, benchmark_of, benchmarks, prefixes
from ..core.config import Count, Dollars, Number, config_from
from ..core.identity import Answering, Described
from ..core.image_files import rows_to_leave_out
from ..core.places import image_folder
from ..core.predictions import check_model_name
from ..core.question import Question
from ..core.settings import Settings
from ..core.spelling import closest, nearest
from ..core.table_files import is_users_table
from ..core.vlmevalkit import (
    dataset_names,
    has_dataset,
    may_have_dataset,
    may_have_model,
    model_names,
)
from ..engine.backend import Inference
from ..engine.tables import Tables
from ..models.entry import ModelEntry
from ..models.http.endpoints import provider_endpoints
from ..models.http.providers.table import OPENROUTER
from ..models.options import ModelOptions
from ..models.revision import refuse_missing
from ..models.table import (
    MODELS,
    check_settings,
    find_model,
    known_model,
    local_names,
    row_of_checkpoint,
)
from ..runs.prediction_names import recorded_file, replay_source
from ..sweeps.config import Sweep, all_questions
from .ways import REPLAY, Way, flag_name

MODEL_COMMAND = "(names: run_findit.py models)"


@dataclass(frozen=True, slots=True)
class _Amounts(Inference):
    """The numbers of flags."""

    limit: Count = 1
    max_usd: Dollars = 1.0
    temperature: Number = 0.0
    api_nproc: Count = 1
    nproc: Count = 1
    retry: Count = 1


def check_amounts(how: ModelOptions, **more: float | None) -> None:
    """Refuse numbers of flags that cannot be; ``more`` are those of one command."""
    of_models = {field.name: getattr(how, field.name, None) for field in fields(_Amounts)}
    said = {**of_models, **more}
    if given := {name: value for name, value in said.items() if value is not None}:
        config_from(_Amounts, given, flag_name)


# --- datasets -------------------------------------------------------------------------------------


def check_hosts_dataset(name: str) -> None:
    """Refuse a dataset that is neither ours nor may be VLMEvalKit's or a table of its user's.

    Raises:
        ValueError: the message names those that were probably meant.
    """
    if has_dataset(name) or is_users_table(name):
        return
    ours = _with_prefix(name)
    if not ours and may_have_dataset(name):
        return
    if ours:
        raise ValueError(f"no dataset {name!r}: did you mean {' or '.join(ours)}?")
    shorter = {
        listed.removeprefix(prefix): listed
        for listed, prefix in ((one, _prefix(one)) for one in _listed())
    }
    words = {**{one: one for one in dataset_names()}, **shorter}
    found = closest(name, words)
    meant = f": did you mean {words[found]}?" if found else f"{_EXAMPLE}"
    raise ValueError(f"no dataset {name!r}{meant}")


_EXAMPLE = ", neither FindIt's (for example FindIt_Scenes_mini_xyxy_json) nor VLMEvalKit's"


def all_datasets() -> list[str]:
    """Return the names that ``--data`` takes: ours as they are listed, and VLMEvalKit's."""
    return [*_listed(), *dataset_names()]


def _listed() -> list[str]:
    return [name for one in benchmarks() for name in one.listed()]


def _prefix(name: str) -> str:
    return next(one for one in prefixes() if name.startswith(one))


def _with_prefix(name: str) -> list[str]:
    """Our datasets that a name without a prefix, or without a format, probably means."""
    found = []
    for one in benchmarks():
        for prefix in dict.fromkeys(map(_prefix, one.listed())):
            begin = f"{prefix.rstrip('_')}_{name}"
            longer = [each for each in one.listed() if f"{each}_".startswith(f"{begin}_")]
            found += longer[:1] or [begin] * _is_one(one.parse, begin)
    return found


def _is_one(parse: Callable[[str], Question], name: str) -> bool:
    try:
        parse(name)
    except ValueError:
        return False
    return True


# --- models ---------------------------------------------------------------------------------------


def check_here(entry: ModelEntry, way: Way) -> None:
    """Refuse a model that is not asked over a network by an address of the command line.

    Raises:
        ValueError: there is none of this name, or its checkpoint is not there.
    """
    check_model_name(entry.name)
    if entry.checkpoint is not None and way in (Way.CHECKPOINT, Way.SERVED):
        row_of_checkpoint(entry.name, entry.checkpoint, entry.like)
        if may_have_model(entry.name):
            near = nearest(entry.name, local_names())
            raise ValueError(
                f"{entry.name}={entry.checkpoint}: {entry.name} is VLMEvalKit's own model{near}"
            )
    elif way is Way.REPLAY:
        replay_source(entry.checkpoint)
    elif way in (Way.LOCAL, Way.SERVED):
        row, checkpoint = local_names()[entry.name]
        refuse_missing(str(row.settings.get("model_path", checkpoint)))
    elif way is Way.HOSTS_OWN and not may_have_model(entry.name):
        raise ValueError(f"no model {entry.name!r}{nearest(entry.name, all_models())}")


def all_models() -> list[str]:
    """Return the names that ``--model`` takes: baselines, ours, and VLMEvalKit's."""
    at_openrouter = [row.entry for row in MODELS.values() if row.api]
    return [*baselines(), REPLAY, *local_names(), *at_openrouter, *model_names()]


def check_answers(entry: ModelEntry, way: Way, question: Question, settings: Settings) -> None:
    """Refuse a model that cannot answer a question, or whose coordinate space nothing says.

    Raises:
        ValueError: the message says what to type.
    """
    check_settings(settings)
    if way is Way.REPLAY:
        recorded_file(replay_source(entry.checkpoint), question.name)
        return
    if way is Way.BASELINE:
        found = Described(Answering(), baseline_for(entry.name, question).space)
    elif way is Way.HOSTS_OWN:
        row = find_model(entry.name)
        space = row.space(question).as_dict() if row else None
        found = Described(Answering(hosts_own=True), space)
    else:
        return
    benchmark_of(question).space(entry.name, question, settings, found)


# --- tables and images ----------------------------------------------------------------------------


def check_rows(questions: Iterable[Question], skip_missing: bool) -> None:
    """Refuse questions whose tables or images are not there.

    Raises:
        OSError, ValueError: the message says what makes them.
    """
    tables = Tables(None)
    looked_at = set()
    for question in questions:
        at = (question.table, question.images, question.frames)
        if at in looked_at:
            continue
        looked_at.add(at)
        task = tables.task(question)
        folder = image_folder(question.images)
        rows_to_leave_out(list(task.queries.values()), folder, skip_missing)


def check_sweep(sweep: Sweep, ways: Sequence[tuple[ModelEntry, Way]]) -> None:
    """Refuse models of a sweep that nobody is going to find, and tables that are not there.

    Raises:
        OSError, ValueError: the message names the file's line, where it is of one.
    """
    for entry, way in ways:
        try:
            if entry.like is not None:
                known_model(entry.like, "like")
            check_here(entry, way)
            if way is Way.OPENROUTER:
                provider_endpoints(OPENROUTER)  # its key has to be there
        except ValueError as error:
            where = f"line {entry.line}: " if entry.line else ""
            raise ValueError(f"{where}{error}") from None
        check_rows(all_questions(sweep, entry.name), sweep.skip_missing)
