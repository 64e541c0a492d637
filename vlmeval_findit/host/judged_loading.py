"""Judge what VLMEvalKit's own classes load with transformers, which they do not ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from ..models import checked, report_of


@contextmanager
def judged_loading() -> Iterator[None]:
    """Refuse checkpoints that lack weights, by ValueError, while a model of VLMEvalKit's is made.

    Superfluous weights pass: classes load parts of a model one after the other.  What a class loads
    without transformers is not known.
    """
    if find_spec("transformers") is None:
        yield
        return
    from transformers import PreTrainedModel

    plain = vars(PreTrainedModel)["from_pretrained"]  # Not bound to the class

    def from_pretrained(cls: Any, checkpoint: Any, *arguments: Any, **options: Any) -> Any:
        load = plain.__func__
        if options.get("output_loading_info"):  # Whoever asks, judges
            return load(cls, checkpoint, *arguments, **options)
        options["output_loading_info"] = True
        model, info = load(cls, checkpoint, *arguments, **options)
        lacks = {name: info.get(name, ()) for name in ("missing_keys", "mismatched_keys")}
        checked(str(checkpoint), report_of(lacks, model))
        return model

    PreTrainedModel.from_pretrained = classmethod(from_pretrained)
    try:
        yield
    finally:
        PreTrainedModel.from_pretrained = plain
