"""Models without weights as VLMEvalKit's: a reply and its record."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from vlmeval.vlm.base import BaseModel

from ..benchmarks import baseline_for, baseline_named, baselines, parse, resembles_dataset_name
from ..engine import BaselineClient, describe_baseline
from ..models import HostMessage, from_host_message
from ..protocol import CallResult, DatasetVariant, Described, ModelClient, text_of_failure
from ..storage import record_text
from .free_questions import refused_by_baseline


def recorded_reply(answer: CallResult) -> RecordedReply:
    """Return an answer as the host stores it: two columns, and its words for a failed call."""
    text = answer.text if answer.error is None else text_of_failure(answer.error)
    return {"prediction": text, "extra_records": record_text(answer.record)}


RecordedReply = dict[str, str]


class FindItModel(BaseModel):  # type: ignore[misc]
    """A model of FindIt: it takes images at their places and states its coordinate space."""

    INTERLEAVE = True

    def client(self) -> ModelClient:
        """Return the model as the engine asks it about FindIt's datasets."""
        raise NotImplementedError


class FindItBaseline(FindItModel):
    """A baseline of a benchmark, by name; ValueError if there is none."""

    def __init__(self, baseline: str = "FullImage") -> None:
        super().__init__()
        self._name = baseline
        baseline_named(baseline)

    @classmethod
    def describe(cls, variant: DatasetVariant, baseline: str = "FullImage") -> Described:
        """Describe a run with the constructor's arguments."""
        return describe_baseline(variant, baseline)

    def client(self) -> ModelClient:
        return BaselineClient(self._name)

    def generate_inner(self, message: HostMessage, dataset: str | None = None) -> RecordedReply:
        """Return the reply to a message of a dataset of its benchmark; ValueError for others."""
        variant = variant_of(dataset)
        if variant is None:
            raise refused_by_baseline(self._name)
        row = baseline_for(self._name, variant)
        return recorded_reply(CallResult(*row.answer(from_host_message(message), variant)))


def variant_of(dataset: str | None) -> DatasetVariant | None:
    """Return the variant that a name means; None if it is not FindIt's.

    Raises ValueError for a name that seems to be FindIt's and is not.
    """
    if dataset is None or not resembles_dataset_name(dataset):
        return None
    return parse(dataset)


def models() -> dict[str, Callable[..., Any]]:
    """Return the entries of ``supported_VLM`` for models without weights."""
    return {name: partial(FindItBaseline, baseline=name) for name in baselines()}
