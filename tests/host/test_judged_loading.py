"""VLMEvalKit's own classes: what they load with transformers is judged, too."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
hf = pytest.importorskip("transformers")
from lacking_weights import Change, damaged, with_more, without  # noqa: E402

from vlmeval_findit.models import SHIPPED  # noqa: E402

NANO = Path(SHIPPED["FindIt-Nano"])

pytestmark = [pytest.mark.host, pytest.mark.slow]


class Wrapper:
    """A class that loads as VLMEvalKit's do: it asks nothing of the loading."""

    INTERLEAVE = True
    is_api = False

    def __init__(self, model_path: str) -> None:
        self.model = hf.AutoModelForImageTextToText.from_pretrained(model_path)


@pytest.fixture
def make(host: SimpleNamespace, tmp_path: Path) -> Iterator[Any]:
    """Return a function that changes weights and returns both ways to make VLMEvalKit's model."""
    from vlmeval_findit.host import HostModel, load_model

    def ways(change: Change) -> list[Callable[[], object]]:
        shutil.rmtree(tmp_path / "ft", ignore_errors=True)
        folder = damaged(NANO, tmp_path / "ft", change)
        host.config.supported_VLM["Theirs"] = partial(Wrapper, model_path=str(folder))
        by_runner = HostModel("Theirs", "Theirs", False, None)
        return [partial(load_model, "Theirs", {}), partial(by_runner.load, {})]

    yield ways
    host.config.supported_VLM.pop("Theirs", None)


def test_their_classes_are_refused_what_lacks_weights(make: Any) -> None:
    plain = vars(hf.PreTrainedModel)["from_pretrained"]
    for load in make(dict):
        load()
    for load in make(with_more(model__visual__merger__norm__scale=torch.ones(3))):
        load()  # Their classes load parts one after the other
    for load in make(without("visual.merger")):
        with pytest.raises(ValueError, match="6 of its 132 weights are missing"):
            load()
    assert vars(hf.PreTrainedModel)["from_pretrained"] is plain
