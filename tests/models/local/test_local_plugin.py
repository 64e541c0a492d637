"""A model that runs here, from a plug-in: its architecture is known to transformers, not to us."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from plugin_package import known_here

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.question import Message, image, text
from vlmeval_findit.models.model_table import MODELS

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import build  # noqa: E402
from tiny_models import picture  # noqa: E402

from vlmeval_findit.models.local.local_runner import load_local  # noqa: E402
from vlmeval_findit.models.local.run_plan import RunSettings  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("one_thread"), pytest.mark.slow]

FILE = r'''
from vlmeval_findit.boxes.spaces import Space
from vlmeval_findit.models.local.layout import ImageLayout
from vlmeval_findit.models.model_row import LocalFamily, ModelRow


class Split(ImageLayout):
    """Square tiles row by row, then the whole image once more."""

    def processed(self, shown, features):
        side = self.image_processor.max_image_size["longest_edge"]
        sizes = [picture.sent for picture in shown]
        grids = [self.image_processor.get_number_of_image_patches(h, w) for w, h in sizes]
        return [(columns * side, rows * side) for _, rows, columns in grids]


def row(name, **family):
    local = LocalFamily({name: "HuggingFaceTB/SmolVLM-500M-Instruct"}, **family)
    return ModelRow(name, name, space=lambda question: Space("unit"), local=local)


MODELS = [row("Ov"), row("SmolVLM-hf", layout=Split, stops=("<end_of_utterance>",))]
'''
QUESTION = parse("FindIt_Demo_xyxy_json")


@pytest.mark.parametrize("row", ["SmolVLM-hf", "Ov"])
def test_batches_and_variants_give_the_replies_of_single_runs(row: str, tmp_path: Path) -> None:
    """Images of different numbers of tiles, several in a message, and none."""
    checkpoint = build("Idefics3", tmp_path / "idefics3")
    (tmp_path / "row.py").write_text(FILE)
    with known_here(files=(tmp_path / "row.py",)):
        model = load_local(str(checkpoint), MODELS[row], RunSettings(max_new_tokens=12))
    alone: Any = cache(lambda message: model.answer_batch([message], QUESTION)[0])
    wide, tall, scene = (picture(*size) for size in ((320, 200), (200, 260), (640, 480)))
    asked: list[Message] = [
        (image(wide), text("Find the cat.")),
        (image(tall), text("Find every instance of the dog. " * 5)),
        (text("Reference:"), image(wide), text("Scene:"), image(scene), text("Find it.")),
        (text("Where?"),),
    ]
    replies = model.answer_batch(asked, QUESTION)
    assert replies == [alone(message) for message in asked]
    assert len({reply.text for reply in replies}) > 2
    known = [["processed" in size for size in reply.recorded.images] for reply in replies]
    assert known == [[row != "Ov"] * count for count in (1, 1, 2, 0)]
    variants = [(image(scene), text(f"Find {what}.")) for what in ("a cat", "the dogs", "it")]
    assert model.answer_variants(variants, QUESTION) == [alone(message) for message in variants]
