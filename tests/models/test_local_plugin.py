"""A model that runs here, from a plug-in.

Its architecture is known to transformers and not to us; so is LLaVA-OneVision, a row without more.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_runs import RUN_FINDIT, STOCK, environment, predictions, require_host, run
from PIL import Image
from plugin_package import known_here

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.messages import Message, image, text
from vlmeval_findit.models.model_table import MODELS

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import build  # noqa: E402

from vlmeval_findit.models.local.runner import RunSettings, load_local  # noqa: E402

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


MODELS = ModelRow(
    "SmolVLM-hf",
    r"SmolVLM-\w+-hf",
    space=lambda question: Space("unit"),
    local=LocalFamily(
        checkpoints={"SmolVLM-500M-hf": "HuggingFaceTB/SmolVLM-500M-Instruct"},
        layout=Split,
        stops=("<end_of_utterance>",),
    ),
)
'''
PLUGIN = ["--plugin", "smolvlm.py"]
HUB = "HuggingFaceTB/SmolVLM-500M-Instruct"
NAME, DATA = "SmolVLM-500M-hf", "FindIt_Demo_xyxy_json"
PLAIN = """
from vlmeval_findit.boxes.spaces import Space
from vlmeval_findit.models.model_row import LocalFamily, ModelRow

MODELS = ModelRow("Ov", "Ov", lambda question: Space("unit"), local=LocalFamily({"Ov": "a/b"}))
"""
QUESTION = parse(DATA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file, whose checkpoint is a tiny one on this disk."""
    folder = tmp_path_factory.mktemp("plugin")
    build("Idefics3", folder / "idefics3")
    build("LLaVA-OneVision", folder / "ov")
    assert FILE.count(HUB) == 1
    (folder / "smolvlm.py").write_text(FILE.replace(HUB, str(folder / "idefics3")))
    (folder / "ov.py").write_text(PLAIN)
    return folder


def test_it_runs_under_both_runners(folder: Path) -> None:
    require_host()
    env = environment(folder / "lmu")
    asked = [*PLUGIN, "--data", DATA, "--model", NAME, "--work-dir", "runs"]
    done = run(RUN_FINDIT, ["check", NAME, *PLUGIN], folder, env)
    assert done.returncode == 0, done.stdout
    assert "<|im_start|>user:<image>Find every" in done.stdout
    assert "processed 224 x 224" in done.stdout
    done = run(RUN_FINDIT, [*asked, "--limit", "3"], folder, env)
    assert done.returncode == 0, done.stdout[-2000:]
    config = {
        "model": {NAME: {"class": "FindItLocalModel", "model_path": str(folder / "idefics3"),
                         "like": "SmolVLM-hf", "batch_size": 1}},
        "data": {DATA: {"class": "FindItObjectDetection", "dataset": DATA}},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    env["FINDIT_PLUGINS"] = str(folder / "smolvlm.py")
    words = ["--config", "config.json", "--limit", "3", "--work-dir", "theirs"]
    assert run(STOCK, words, folder, env).returncode == 0
    files = [predictions(folder / work, NAME, DATA) for work in ("runs", "theirs")]
    ours, theirs = (json.loads(file.read_text()) for file in files)
    assert ours == theirs
    records = [json.loads(one["extra_records"])["findit"] for one in ours]
    for record in records:
        assert record["tokens"]["reply"]
        assert record["space"] == {"kind": "unit"}
        (sizes,) = record["images"]
        width, height = sizes["processed"]
        assert (width % 56, height % 56) == (0, 0)
        # A tile and the whole are 4 features each.
        assert record["tokens"]["prompt"] > 4 * ((width // 56) * (height // 56) + 1)


@pytest.mark.parametrize(("file", "row"), [("smolvlm.py", "SmolVLM-hf"), ("ov.py", "Ov")])
def test_batches_and_variants_give_the_replies_of_single_runs(
    file: str, row: str, folder: Path
) -> None:
    """Images of different numbers of tiles, several in a message, and none."""
    with known_here(files=(folder / file,)):
        checkpoint = str(folder / ("ov" if row == "Ov" else "idefics3"))
        model = load_local(checkpoint, MODELS[row], RunSettings(max_new_tokens=12))
    alone: Any = cache(lambda message: model.answer_batch([message], QUESTION)[0])
    wide, tall, scene = (noise(folder, *size) for size in ((320, 200), (200, 260), (640, 480)))
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


def noise(folder: Path, width: int, height: int) -> str:
    path = folder / f"{width}.png"
    pixels = np.random.default_rng(width).integers(0, 255, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return str(path)
