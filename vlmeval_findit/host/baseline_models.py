"""Models without weights as VLMEvalKit's: a reply and its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from vlmeval.vlm.base import BaseModel

from ..benchmarks import (
    baseline_for,
    baseline_named,
    baselines,
    benchmark_of,
    load,
    name_after_model,
    parse,
)
from ..boxes.spaces import space_from
from ..core.files import file_sha256
from ..core.identity import Answering, Described, read_identity
from ..core.predictions import PredictionError, read_predictions
from ..core.question import Message, Question
from ..core.replies import Recorded
from ..core.settings import Settings
from ..engine.calls import prompts_of
from ..models.model_client import HostMessage, from_host_message
from ..models.revision import fingerprint
from ..runs.prediction_names import recorded_file, replay_source


def recorded_reply(text: str, record: Recorded) -> RecordedReply:
    """Return a reply and its record as the host stores them: two columns."""
    return {"prediction": text, "extra_records": record.as_json()}


RecordedReply = dict[str, str]


class FindItModel(BaseModel):  # type: ignore[misc]
    """A model of FindIt: it takes images at their places and states its coordinate space."""

    INTERLEAVE = True
    takes_system = True


class FindItBaseline(FindItModel):
    """A baseline of a benchmark, by name; ValueError if there is none."""

    def __init__(self, baseline: str = "FullImage") -> None:
        super().__init__()
        self._name = baseline
        baseline_named(baseline)

    @classmethod
    def describe(cls, question: Question, baseline: str = "FullImage") -> Described:
        """Describe a run with the constructor's arguments."""
        row = baseline_for(baseline, question)
        settings = {"baseline": row.answer.__name__}
        return Described(Answering(cls.__name__, settings=settings), row.space)

    @classmethod
    def key_settings(cls, baseline: str = "FullImage") -> dict[str, Any]:
        """Return the constructor's arguments that are part of every call's key."""
        return {"baseline": baseline_named(baseline).answer.__name__}

    def generate_inner(self, message: HostMessage, dataset: str | None = None) -> RecordedReply:
        """Return the reply to a message of a dataset of its benchmark."""
        question = question_of(dataset)
        row = baseline_for(self._name, question)
        return recorded_reply(*row.answer(from_host_message(message), question))


REPLAY = "Replay"


class FindItReplay(FindItModel):
    """Answers from a recorded prediction file: the same message gets the same reply.

    Args:
        predictions: a file ``<model>_<dataset>.<json|tsv|xlsx>`` or a folder of them
            (default: FINDIT_REPLAY).
        space: the coordinate space, if neither the files nor the model table state it.
    """

    def __init__(
        self, predictions: str | None = None, space: str | Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self._source = replay_source(predictions)
        self._settings = Settings(space=space)
        self._replies = cache(self._load)

    @classmethod
    def describe(
        cls,
        question: Question,
        predictions: str | None = None,
        space: str | Mapping[str, Any] | None = None,
    ) -> Described:
        """Describe a run with the constructor's arguments, by the content of the file."""
        path = recorded_file(replay_source(predictions), question.name)
        known_space = _space(path, question, Settings(space=space))
        settings = {"predictions": path.name, "SHA-256": file_sha256(path)}
        return Described(Answering(cls.__name__, settings=settings), known_space)

    @classmethod
    def key_settings(cls, predictions: str | None = None, **_: Any) -> dict[str, Any]:
        """Return the part of every call's key: the content that is replayed."""
        source = replay_source(predictions)
        return {"replays": fingerprint(source) if source.is_dir() else file_sha256(source)}

    def generate_inner(self, message: HostMessage, dataset: str | None = None) -> RecordedReply:
        """Return the recorded reply to a message; PredictionError if there is none."""
        asked = from_host_message(message)
        replies = self._replies(question_of(dataset).name if dataset is None else dataset)
        if asked not in replies:
            raise PredictionError(f"{self._source}: no reply to this message of {dataset}")
        return replies[asked]

    def _load(self, dataset: str) -> dict[Message, RecordedReply]:
        path = recorded_file(self._source, dataset)
        task = load(dataset)
        space = _space(path, task.question, self._settings)
        prompts = prompts_of(benchmark_of(dataset).for_model(task, REPLAY))
        return {
            prompts.message(reply.index): recorded_reply(
                reply.text, replace(reply.recorded, space=reply.recorded.space or space)
            )
            for reply in read_predictions(path)
            if reply.index in task.queries and not reply.failed
        }


def _space(path: Path, question: Question, settings: Settings) -> Mapping[str, Any] | None:
    """Return the space of the recorded run, of its first reply with a space, or of the model."""
    run = read_identity(path)
    named = name_after_model(path.stem)
    model = run.model if run is not None else named[0] if named else path.stem
    spaces = (reply.recorded.space for reply in read_predictions(path))
    recorded = run.space if run is not None and run.space else next(filter(None, spaces), None)
    if recorded is not None:
        return space_from(recorded).as_dict()
    unknown = Described(Answering(), None)
    return benchmark_of(question).space(model, question, settings, unknown)


def question_of(dataset: str | None) -> Question:
    """Return the question of a dataset; ValueError if the host names none."""
    if dataset is None:
        raise ValueError("this model answers FindIt's datasets only: name the dataset")
    return parse(dataset)


MODEL_CLASSES: tuple[type[FindItModel], ...] = (FindItBaseline, FindItReplay)


def models() -> dict[str, Callable[..., Any]]:
    """Return the entries of ``supported_VLM`` for models without weights."""
    baseline_makers = {name: partial(FindItBaseline, baseline=name) for name in baselines()}
    return {**baseline_makers, REPLAY: partial(FindItReplay)}
