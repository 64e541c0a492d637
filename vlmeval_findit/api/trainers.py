"""What trainers call: the reward for TRL, verl and OpenRLHF, and a callback for transformers.

None of them is imported before it is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..benchmarks import parse
from ..boxes import Ignored, Space, Truth, stated_space
from ..core import counted, parse_json, quoted_value, suggestion
from ..protocol import is_assistant, messages_in, opened_by, thought_marks
from .custom_variants import ReplyLike, ReplyMarks, replies_of, variant_of
from .generated_texts import EndMarks, FirstRewards, marks_of_ends, reply_in
from .inputs import Size, plain, sizes_of, truth, truths_of
from .rewards import Rewarded, RewardMetric, metric_of, rewards_of

if TYPE_CHECKING:
    from transformers import TrainerCallback

_LOG = logging.getLogger(__name__)

Trainer = Literal["trl", "verl", "openrlhf"]
Query = Mapping[str, Any]
"""The columns of a query."""

NEEDED = ("truth", "size", "format", "space")
DEFAULTS: Query = {
    "frames": 1,
    "multilabel": False,
    "thought_marks": None,
    "thought_opened": False,
    "answer_marks": None,
}
COLUMNS = (*NEEDED, *DEFAULTS)


def reward_function(
    trainer: Trainer, by: RewardMetric = "f1", end_marks: Any = (), **fixed: Any
) -> RewardFunction:
    """Return the reward as a function that a trainer calls. It can be pickled.

    >>> rewards = reward_function("trl", format="xyxy_text", space="grid1000")
    >>> rewards(prompts=["", ""], completions=["[0, 0, 500, 500]", "[]"], trainer_state=None,
    ...         truth=[[[0, 0, 320, 240]]] * 2, size=[(640, 480)] * 2)
    [1.0, 0.0]

    What a query needs are columns of the data set, so the queries of a batch may differ in all:

    * ``truth``: boxes in pixels of the original image; or the arguments of :func:`.truth` as an
      object, ``{"boxes": …, "labels": …, "frames": …, "ignored": …}``;
    * ``size``: (width, height) in pixels of the original image;
    * ``format`` and ``space``: as for :func:`.reward`;
    * ``frames`` (1), ``multilabel`` (False), ``thought_marks`` (None: the usual ones),
      ``thought_opened`` (False) and ``answer_marks`` (None): as for :func:`.read`.

    Every column may be JSON. TRL passes them as keywords, verl in ``extra_info`` (and the truth as
    ``ground_truth``, what is the same for all as ``reward_kwargs``), OpenRLHF as the label, an
    object or its JSON. Functions may be called from several threads.

    Where a trainer passes the text of its prompt (OpenRLHF; TRL without a chat), a thought that it
    opens is known. Else say ``thought_opened``: a thought that is cut would be read as an answer.

    If the first 200 replies all earn 0 for one reason, it is logged, once.

    Args:
        trainer: ``"trl"``: for ``reward_funcs``; returns a list. ``"verl"``: a
            ``custom_reward_function`` for one reply or, where a reward manager has them together,
            many; returns a number or a list. ``"openrlhf"``: a ``reward_func``; returns ``rewards``
            and ``scores`` as tensors.
        by: as for :func:`.reward`.
        end_marks: texts that end replies and are no part of them, or the tokenizer. OpenRLHF leaves
            such tokens in the text: there a last token like ``<|im_end|>`` is taken off in any
            case, if it marks no box, thought or answer.
        fixed: columns that are the same for all queries; they override the data set's.

    Raises:
        ValueError: the trainer, reward, column, format or space does not exist; later, when it is
            called, a query lacks a column, has one that cannot be used, or two of one name that
            differ.
    """
    if trainer not in _FUNCTIONS:
        raise ValueError(f"unknown trainer {trainer!r}{suggestion(trainer, _FUNCTIONS)}")
    for column in fixed:
        if column not in COLUMNS:
            raise ValueError(f"unknown column {column!r}{suggestion(column, COLUMNS)}")
    stated = {name: _COLUMN_TYPES[name](fixed[name]) for name in fixed}
    example = {"format": "point_text" if by == "pointing" else "xyxy_text", **DEFAULTS, **stated}
    variant = variant_of(example["format"], example["frames"], example["multilabel"])
    metric_of(by, variant)
    replies_of([], _marks_of(example))
    return _FUNCTIONS[trainer](trainer, by, marks_of_ends(end_marks), fixed)


# --- columns --------------------------------------------------------------------------------------


def _parsed(value: Any) -> Any:
    """Return a value that may be JSON, an array or a number of another library."""
    return plain(parse_json(value) if isinstance(value, str) else value)


def _space(value: Any) -> Space:
    """Return a space: its name, or its settings, perhaps as JSON."""
    known = plain(value)
    if isinstance(known, str) and known.lstrip().startswith("{"):
        known = parse_json(known)
    if isinstance(known, Mapping):
        known = {key: plain(each) for key, each in _stated(known).items()}
    return stated_space(known)


def _truth(value: Any) -> Any:
    """Return a truth, its boxes, or either from JSON."""
    known = _parsed(value)
    if not isinstance(known, Mapping):
        return known
    arguments = {key: plain(each) for key, each in _stated(known).items()}
    ignored = [
        Ignored(**_stated(each)) if isinstance(each, Mapping) else each
        for each in arguments.pop("ignored", ())
    ]
    if {"boxes"} == {*arguments} and not ignored:
        return arguments["boxes"]  # So that nobody takes them for boxes with frames
    try:
        return truth(**arguments, ignored=ignored)
    except TypeError as error:
        raise ValueError(f"{quoted_value(known, 100)} is no truth: {error}") from None


def _size(value: Any) -> Size:
    return sizes_of([_parsed(value)], 1)[0]


def _format(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{quoted_value(value, 80)} should be a text, as 'xyxy_json_bbox_2d'")
    return value


def _frames(value: Any) -> int:
    number = _parsed(value)
    # Tables turn whole numbers into others where a row has none.
    if isinstance(number, bool) or not isinstance(number, (int, float)) or number != int(number):
        raise ValueError(f"{quoted_value(value, 80)} should be a whole number")
    return int(number)


def _boolean(value: Any) -> bool:
    known = plain(value)
    if not isinstance(known, (bool, int, str)) or known not in _BOOLEANS:
        raise ValueError(f"{quoted_value(value, 80)} should be true or false")
    return _BOOLEANS[known]


# Tables of other programs have numbers or texts.
_BOOLEANS: Mapping[Any, bool] = {
    True: True,
    False: False,
    "true": True,
    "false": False,
    "True": True,
    "False": False,
}


def _pair_of_marks(value: Any) -> Any:
    known = plain(value)
    if isinstance(known, str) and known.lstrip().startswith('["'):
        known = parse_json(known)
    return None if known is None else tuple(known) if isinstance(known, list) else known


_COLUMN_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "truth": _truth,
    "size": _size,
    "format": _format,
    "space": _space,
    "frames": _frames,
    "multilabel": _boolean,
    "thought_marks": _pair_of_marks,
    "thought_opened": _boolean,
    "answer_marks": _pair_of_marks,
}
"""What makes a value of a column; a ValueError says why it cannot."""


def _stated(values: Query) -> dict[str, Any]:
    """Leave out values that are None: ``datasets`` gives all objects of a column the same keys."""
    return {key: each for key, each in values.items() if each is not None}


def _marks_of(query: Query) -> ReplyMarks:
    return ReplyMarks(query["thought_marks"], query["thought_opened"], query["answer_marks"])


def _query(at: int, columns: Query, fixed: Query) -> dict[str, Any]:
    """Return the values of all columns of a query.

    Raises:
        ValueError: one is missing or cannot be used; the message names query and column.
    """
    stated = {**_stated(columns), **fixed}
    query = dict(DEFAULTS)
    for name in COLUMNS:
        if name in stated:
            try:
                query[name] = _COLUMN_TYPES[name](stated[name])
            except ValueError as error:
                raise ValueError(f"query {at}, column {name}: {error}") from None
        elif name in NEEDED:
            raise ValueError(f"query {at}: {name} is missing; a query needs {', '.join(NEEDED)}")
    return query


def _check_columns(columns: Mapping[str, Any], count: int, of: str) -> None:
    """Raise ValueError unless every column has a value for each reply."""
    for name, values in columns.items():
        if isinstance(values, (str, Mapping)) or not hasattr(values, "__len__"):
            raise ValueError(
                f"column {name}: {quoted_value(values, 80)} is one value, not a list of {count}. "
                f"The same for all: reward_function(…, {name}=…)"
            )
        if len(values) != count:
            raise ValueError(f"column {name}: {counted(len(values), 'value')} for {count} {of}")


# --- rewards --------------------------------------------------------------------------------------


class RewardFunction:
    """A reward that a trainer calls; its name is that of the reward."""

    def __init__(self, trainer: Trainer, by: RewardMetric, ends: EndMarks, fixed: Query) -> None:
        self._arguments = (trainer, by, ends.named)
        self._by = by
        self._ends = ends
        self._fixed = fixed
        self._first = FirstRewards()
        self.__name__ = self.__qualname__ = f"findit_{by}"  # TRL logs it by this name

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the lock and the counts of this process
        return partial(reward_function, *self._arguments, **self._fixed), ()

    def _rewards(self, replies: Sequence[ReplyLike], columns: Sequence[Query]) -> list[float]:
        """Reward the replies to queries; those that are read in the same way are one batch."""
        queries = [_query(at, each, self._fixed) for at, each in enumerate(columns)]
        whole = [self._without_end(reply) for reply in replies]
        read_alike: dict[str, list[int]] = {}
        for at, query in enumerate(queries):
            reading = repr([query[name] for name in ("format", "space", *DEFAULTS)])
            read_alike.setdefault(reading, []).append(at)
        values = [0.0] * len(whole)
        reasons: list[str] = [""] * len(whole)
        for places in read_alike.values():
            rewarded = self._rewarded(places, whole, queries)
            for at, value, reason in zip(places, rewarded.values, rewarded.reasons, strict=True):
                values[at] = float(value)
                reasons[at] = reason.value if reason else ""
        for warning in self._first.seen(whole, values, reasons):
            _LOG.warning("%s: %s", self.__name__, warning)
        return values

    def _without_end(self, reply: ReplyLike) -> ReplyLike:
        return self._ends.without_end(reply) if isinstance(reply, str) else reply

    def _rewarded(
        self, places: Sequence[int], replies: Sequence[ReplyLike], queries: Sequence[Query]
    ) -> Rewarded:
        """Reward the replies at places whose queries are read in the same way."""
        first = queries[places[0]]
        variant = variant_of(first["format"], first["frames"], first["multilabel"])
        sizes = [queries[at]["size"] for at in places]
        truths = [queries[at]["truth"] for at in places]
        return rewards_of(
            replies_of([replies[at] for at in places], _marks_of(first)),
            truths_of(truths, variant, sizes, places),
            sizes,
            first["space"],
            variant,
            metric_of(self._by, variant),
        )


class _TrlReward(RewardFunction):
    # ms-swift calls reward functions with completions and columns, too.
    def __call__(
        self,
        completions: Sequence[ReplyLike],
        prompts: Sequence[Any] | None = None,
        **columns: Any,
    ) -> list[float]:
        there = {name: columns[name] for name in COLUMNS if columns.get(name) is not None}
        _check_columns(there, len(completions), "completions")
        queries = [{name: there[name][at] for name in there} for at in range(len(completions))]
        for query, prompt in zip(queries, prompts or (), strict=False):
            if _opens_thought(_text_of_prompt(prompt), {**query, **self._fixed}):
                query["thought_opened"] = True
        return self._rewards(completions, queries)


class _VerlReward(RewardFunction):
    def __call__(
        self,
        data_source: str = "",
        solution_str: str = "",
        ground_truth: Any = None,
        extra_info: Query | None = None,
        *,
        solution_strs: Sequence[str] | None = None,
        ground_truths: Sequence[Any] = (),
        extra_infos: Sequence[Query | None] = (),
        **options: Any,
    ) -> float | list[float]:
        if solution_strs is None:
            query = _of_verl(0, extra_info, ground_truth, options)
            return self._rewards([solution_str], [query])[0]
        there = {"ground_truths": ground_truths, "extra_infos": extra_infos}
        _check_columns(there, len(solution_strs), "solution_strs")
        pairs = zip(extra_infos, ground_truths, strict=True)
        queries = [_of_verl(at, *pair, options) for at, pair in enumerate(pairs)]
        return self._rewards(solution_strs, queries)


def _of_verl(at: int, extra_info: Query | None, ground_truth: Any, options: Query) -> Query:
    """Return the columns of a query; ``options`` are the ``reward_kwargs`` of the configuration."""
    places = {
        "reward_model.ground_truth": {"truth": ground_truth},
        "extra_info": extra_info or {},
        "reward_kwargs": options,
    }
    return _joined(at, places)


def _joined(at: int, places: Mapping[str, Query]) -> Query:
    """Join the columns of a query that stand in several places.

    Raises:
        ValueError: two places state a column differently.
    """
    stated: dict[str, Any] = {}
    first_place: dict[str, str] = {}
    for place, query in places.items():
        for name, value in _stated(query).items():
            if name not in COLUMNS:
                continue
            if name in stated and not _is_same(name, stated[name], value):
                raise ValueError(
                    f"query {at}, column {name}: {first_place[name]} has "
                    f"{quoted_value(stated[name], 60)}, and {place} has {quoted_value(value, 60)}. "
                    "Keep the right one"
                )
            stated.setdefault(name, value)
            first_place.setdefault(name, place)
    return stated


def _is_same(name: str, one: Any, other: Any) -> bool:
    """Return whether two values of a column mean the same, however they are written."""
    try:
        meant = [_COLUMN_TYPES[name](value) for value in (one, other)]
        if name == "truth":
            meant = [each if isinstance(each, Truth) else truth(each) for each in meant]
        elif name in _MARKS:
            meant = [thought_marks(each, name) for each in meant]
    except ValueError:
        return repr(one) == repr(other)  # What cannot be used is refused later, by its name
    return bool(meant[0] == meant[1])


_MARKS = ("thought_marks", "answer_marks")


class _OpenRlhfReward(RewardFunction):
    def __call__(
        self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **options: Any
    ) -> dict[str, Any]:
        import torch

        _check_columns({"prompts": prompts, "labels": labels}, len(queries), "queries")
        for name, texts in (("queries", queries), ("prompts", prompts)):
            for at, text in enumerate(texts):
                if not isinstance(text, str):
                    raise ValueError(f"{name} {at}: {quoted_value(text, 80)} is no text")
        columns = []
        for at, (label, prompt) in enumerate(zip(labels, prompts, strict=True)):
            query = _of_label(at, label)
            if _opens_thought(prompt, {**query, **self._fixed}):
                query["thought_opened"] = True
            columns.append(query)
        replies = [reply_in(*pair) for pair in zip(queries, prompts, strict=True)]
        values = torch.tensor(self._rewards(replies, columns))
        return {"rewards": values, "scores": values, "extra_logs": {}}

    def _without_end(self, reply: ReplyLike) -> ReplyLike:
        return self._ends.without_any_end(str(reply))


def _of_label(at: int, label: Any) -> dict[str, Any]:
    query = _parsed(label)
    if isinstance(query, Mapping):
        return dict(query)
    raise ValueError(
        f"query {at}: its label is {quoted_value(label, 80)}, not an object with the columns "
        f"{', '.join(NEEDED)}, or its JSON"
    )


def _text_of_prompt(prompt: Any) -> str:
    """Return the text after which the model writes; "" if a chat template adds to it."""
    messages = [] if isinstance(prompt, str) else messages_in(prompt)
    if messages and is_assistant(messages[-1]):
        content = messages[-1].get("content")
        return content if isinstance(content, str) else ""
    return prompt if isinstance(prompt, str) else ""


def _opens_thought(prompt: str, query: Query) -> bool:
    """Return whether a prompt ends in a mark that opens a thought."""
    marks = ReplyMarks(_pair_of_marks(query.get("thought_marks")))
    return bool(opened_by(prompt, marks.rule))


_FUNCTIONS: Mapping[str, Callable[..., RewardFunction]] = {
    "trl": _TrlReward,
    "verl": _VerlReward,
    "openrlhf": _OpenRlhfReward,
}


# --- checkpoints ----------------------------------------------------------------------------------


def checkpoint_callback(
    data: str | Sequence[str],
    *,
    name: str,
    like: str | None = None,
    work_dir: str | Path = "outputs",
    flags: Sequence[str] = (),
) -> TrainerCallback:
    """Make a callback of ``transformers.Trainer`` that evaluates each checkpoint it saves.

    A checkpoint is evaluated by ``findit run`` in a separate process, as the model
    ``NAME-step-STEP``, while the training waits. Its score is added to ``state.log_history`` as
    ``findit/<dataset>``, in percent, and to the curve that ``findit report`` draws.  Scores of the
    history differ by chance too: the report shows which checkpoint is significantly better,
    corrected for a look after every checkpoint.  Processes but the first do nothing.

    Args:
        data: names of datasets, as of ``run --data``: queries that the training does not see.
        name: name of the training.
        like: the known model whose prompts and coordinates the checkpoints share.
        work_dir: folder of the results.
        flags: more flags of ``run``, as ``["--limit", "100", "--device", "cuda:1"]``.

    Raises:
        ValueError: a dataset is unknown.
    """
    from transformers import TrainerCallback

    # They import scipy, which rewards do not need.
    from ..leaderboard import group_comparable, learning_curves
    from ..scoring import RowData, load_runs
    from ..sweeps import Checkpoint, evaluate_checkpoint

    datasets = [data] if isinstance(data, str) else list(data)
    words = [word for dataset in datasets for word in ("--data", parse(dataset).name)]
    words += ["--work-dir", str(work_dir), *(["--like", like] if like else []), *flags]

    class CheckpointCallback(TrainerCallback):  # type: ignore[misc]
        """Evaluates each checkpoint when it is saved."""

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not state.is_world_process_zero:
                return
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            checkpoint = Checkpoint(state.global_step, folder)
            if status := evaluate_checkpoint(checkpoint, name, words):
                # A failed evaluation must not end the training.
                _LOG.warning(
                    "%s: findit run ended with status %s; findit watch-checkpoints %s evaluates "
                    "it again", folder, status, args.output_dir,
                )  # fmt: skip
                return
            runs = load_runs([Path(work_dir) / checkpoint.model(name)], keep=RowData.SUMS)
            comparable, _left_out = group_comparable(runs)
            curves = learning_curves(comparable)
            values = {f"findit/{curve.dataset}": curve.best.value for curve in curves}
            state.log_history.append({"step": state.global_step, **values})

    return CheckpointCallback()
