"""What trainers call: the reward for TRL, verl and OpenRLHF, and a callback for transformers.

None of them is imported before it is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..benchmarks import parse
from ..boxes import Ignored, Space, stated_space
from ..core import parse_json, quoted_value, suggestion
from .custom_variants import ReplyLike, replies_of, variant_of
from .inputs import plain, sizes_of, truth
from .rewards import RewardMetric, metric_of, rewards_of

if TYPE_CHECKING:
    from transformers import TrainerCallback

_LOG = logging.getLogger(__name__)

Trainer = Literal["trl", "verl", "openrlhf"]
RewardFunction = Callable[..., Any]
Query = Mapping[str, Any]
"""The columns of a query."""

NEEDED = ("truth", "size", "format", "space")
DEFAULTS: Query = {"frames": 1, "multilabel": False, "thought_marks": None}
COLUMNS = (*NEEDED, *DEFAULTS)


def reward_function(trainer: Trainer, by: RewardMetric = "f1", **fixed: Any) -> RewardFunction:
    """Return the reward as a function that a trainer calls.

    >>> rewards = reward_function("trl", format="xyxy_text", space="grid1000")
    >>> rewards(prompts=["", ""], completions=["[0, 0, 500, 500]", "[]"], trainer_state=None,
    ...         truth=[[[0, 0, 320, 240]]] * 2, size=[(640, 480)] * 2)
    [1.0, 0.0]

    What a query needs are columns of the data set, so the queries of a batch may differ in all:

    * ``truth``: boxes in pixels of the original image; or the arguments of :func:`.truth` as an
      object, ``{"boxes": …, "labels": …, "frames": …, "ignored": …}``; or either as JSON;
    * ``size``: (width, height) in pixels of the original image;
    * ``format`` and ``space``: as for :func:`.reward`, the settings of a space perhaps as JSON;
    * ``frames`` (1), ``multilabel`` (False) and ``thought_marks`` (None: the usual ones).

    TRL passes them as keywords, verl in ``extra_info`` (and the truth as ``ground_truth``),
    OpenRLHF as the label, an object or its JSON. Functions may be called from several threads.

    Args:
        trainer: ``"trl"``: for ``reward_funcs``; returns a list. ``"verl"``: a
            ``custom_reward_function`` for one reply or, with verl's batch manager, many; returns a
            number or a list. ``"openrlhf"``: a ``reward_func``; returns ``rewards`` and ``scores``
            as tensors.
        by: as for :func:`.reward`.
        fixed: columns that are the same for all queries; they override the data set's.

    Raises:
        ValueError: the trainer, reward, column, format or space does not exist; later, when it is
            called, a query lacks a column or has one that cannot be used.
    """
    if trainer not in _SIGNATURES:
        raise ValueError(f"unknown trainer {trainer!r}{suggestion(trainer, _SIGNATURES)}")
    for column in fixed:
        if column not in COLUMNS:
            raise ValueError(f"unknown column {column!r}{suggestion(column, COLUMNS)}")
    example = {"format": "point_text" if by == "pointing" else "xyxy_text", **DEFAULTS, **fixed}
    metric_of(by, variant_of(example["format"], example["frames"], example["multilabel"]))
    _space(fixed.get("space", "grid1000"))
    replies_of([], example["thought_marks"])
    function = _SIGNATURES[trainer](by, fixed)
    # TRL logs it by this name.
    function.__name__ = function.__qualname__ = f"findit_{by}"
    return function


# --- signatures -----------------------------------------------------------------------------------


def _trl(by: RewardMetric, fixed: Query) -> RewardFunction:
    # ms-swift calls reward functions with completions and columns, too.
    def function(completions: Sequence[ReplyLike], **columns: Any) -> list[float]:
        there = [name for name in COLUMNS if name in columns]
        places = range(len(completions))
        queries = [{name: columns[name][at] for name in there} for at in places]
        return _rewards(completions, queries, by, fixed)

    return function


def _verl(by: RewardMetric, fixed: Query) -> RewardFunction:
    def function(
        data_source: str = "",
        solution_str: str = "",
        ground_truth: Any = None,
        extra_info: Query | None = None,
        *,
        solution_strs: Sequence[str] | None = None,
        ground_truths: Sequence[Any] = (),
        extra_infos: Sequence[Query] = (),
        **options: Any,
    ) -> float | list[float]:
        if solution_strs is None:
            query = {**(extra_info or {}), "truth": ground_truth}
            return _rewards([solution_str], [query], by, fixed)[0]
        pairs = zip(extra_infos, ground_truths, strict=True)
        return _rewards(solution_strs, [{**each, "truth": true} for each, true in pairs], by, fixed)

    return function


def _openrlhf(by: RewardMetric, fixed: Query) -> RewardFunction:
    def function(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **options: Any
    ) -> dict[str, Any]:
        import torch

        replies = [_reply_in(*pair) for pair in zip(queries, prompts, strict=True)]
        values = torch.tensor(_rewards(replies, list(map(_parsed, labels)), by, fixed))
        return {"rewards": values, "scores": values, "extra_logs": {}}

    return function


_SIGNATURES: Mapping[str, Callable[[RewardMetric, Query], RewardFunction]] = {
    "trl": _trl,
    "verl": _verl,
    "openrlhf": _openrlhf,
}

# OpenRLHF decodes the token that ended a reply. GLM's marks of boxes must stay.
_ENDS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|user|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<turn|>",
)
_PROMPT_END = 40  # Characters


def _reply_in(query: str, prompt: str) -> str:
    """Return the reply in a query, which is prompt and reply, decoded.

    A decoded prompt may differ from the prompt, for images are many tokens, but not at its end.
    """
    end = prompt if query.startswith(prompt) else prompt[-_PROMPT_END:]
    parts = query.split(end, times := prompt.count(end))
    if not prompt or len(parts) <= times:
        raise ValueError(
            f"the prompt does not end in its query: {end!r} is not in {quoted_value(query, 200)}"
        )
    reply = parts[-1].rstrip()
    while ended := next(filter(reply.endswith, _ENDS), None):
        reply = reply.removesuffix(ended).rstrip()
    return reply


# --- rewards --------------------------------------------------------------------------------------


def _rewards(
    replies: Sequence[ReplyLike], queries: Sequence[Query], by: RewardMetric, fixed: Query
) -> list[float]:
    """Reward the replies to queries; those that are read in the same way are one batch."""
    asked = [{**DEFAULTS, **_stated(query), **fixed} for query in queries]
    read_alike: dict[str, list[int]] = {}
    for at, query in enumerate(asked):
        for name in NEEDED:
            if name not in query:
                raise ValueError(
                    f"query {at}: {name} is missing; a query needs {', '.join(NEEDED)}"
                )
        reading = [query[name] for name in ("format", "space", *DEFAULTS)]
        read_alike.setdefault(repr(reading), []).append(at)
    values = [0.0] * len(replies)
    for places in read_alike.values():
        batch = [asked[at] for at in places]
        first = batch[0]
        variant = variant_of(first["format"], int(first["frames"]), bool(first["multilabel"]))
        rewards = rewards_of(
            replies_of([replies[at] for at in places], first["thought_marks"]),
            [_truth(query["truth"]) for query in batch],
            sizes_of([query["size"] for query in batch], len(batch)),
            _space(first["space"]),
            variant,
            metric_of(by, variant),
        )
        for at, value in zip(places, rewards.tolist(), strict=True):
            values[at] = value
    return values


def _space(value: Any) -> Space:
    if isinstance(value, str) and value.startswith("{"):
        value = parse_json(value)
    if isinstance(value, Mapping):
        value = {key: plain(each) for key, each in _stated(value).items()}
    return stated_space(value)


def _truth(value: Any) -> Any:
    # Most truths are lists of boxes.
    if isinstance(value, list) or not isinstance(value := _parsed(value), Mapping):
        return value
    arguments = {key: plain(each) for key, each in _stated(value).items()}
    ignored = [
        Ignored(**_stated(each)) if isinstance(each, Mapping) else each
        for each in arguments.pop("ignored", ())
    ]
    return truth(**arguments, ignored=ignored)


def _parsed(value: Any) -> Any:
    return parse_json(value) if isinstance(value, str) else value


def _stated(values: Query) -> dict[str, Any]:
    """Leave out values that are None: ``datasets`` gives all objects of a column the same keys."""
    return {key: each for key, each in values.items() if each is not None}


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
