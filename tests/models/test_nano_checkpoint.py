"""The checkpoints that ship: small, real Qwen3-VLs, as good as their cards say, and choosy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from training.nano.learner import evaluate  # noqa: E402
from vlmeval_findit.models import NANO, NANO_PX, SHIPPED  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.slow]

FOLDER = Path(SHIPPED[NANO])
BEST = "xyxy_json_bbox_2d"
LEAST = {
    "": 99.0,
    "_multilabel": 97.0,
    "_refexp": 95.0,
    "_insdet": 99.0,
    "_described": 95.0,
    "_video_f4": 85.0,
    "_video_f8": 75.0,
}
"""F1@0.5 in percent that the shipped checkpoint must reach on 1,000 test scenes."""
PHOTOGRAPHS = ("", "_multilabel", "_refexp", "_described", "_insdet", "_video_f8")
ROOM = 7.0
"""Fifty scenes of another split are a coarser measure."""


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("lmu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(folder))
        yield folder


@pytest.mark.parametrize("name", SHIPPED)
def test_it_is_a_few_megabytes_of_a_real_qwen3_vl(name: str) -> None:
    folder = Path(SHIPPED[name])
    files = [path for path in folder.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 10e6
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["Qwen3VLForConditionalGeneration"]
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as weights:
        sizes = [weights.get_tensor(name).numel() for name in weights.keys()]  # noqa: SIM118
    assert 1e6 <= sum(sizes) <= 4e6


def test_coordinates_are_tokens_in_the_steps_that_its_card_names() -> None:
    tokens = json.loads((FOLDER / "tokenizer.json").read_text())["added_tokens"]
    numbers = {int(token["content"]) for token in tokens if token["content"].isdecimal()}
    assert numbers == {*range(0, 1001, 5), *range(241)}
    assert "thousandths of the image, in steps of 5." in (FOLDER / "README.md").read_text()
    assert "pixels of the image" in (Path(SHIPPED[NANO_PX]) / "README.md").read_text()


@pytest.mark.parametrize("table", LEAST)
def test_it_finds_things(table: str, lmu: Path) -> None:
    (scored,) = evaluate(FOLDER, [f"FindIt_Scenes_mini{table}_{BEST}"], "cpu")
    assert scored.metric_values["F1@0.5"] >= LEAST[table] - ROOM
    assert scored.metric_values["Adherence"] >= 98.0


TAUGHT = ("cxcywh_json_bbox_2d", "all_json_bbox_2d", "xyxy_text")
NEVER_TAUGHT = ("yxhw_json_bbox_2d", "all-labelled_json_bbox_2d")


def test_it_answers_only_the_formats_it_was_taught(lmu: Path) -> None:
    names = [f"FindIt_Scenes_mini_{form}" for form in (BEST, *TAUGHT, *NEVER_TAUGHT)]
    actual = [scored.metric_values["F1@0.5"] for scored in evaluate(FOLDER, names, "cpu")]
    best = actual[0]
    taught = actual[1 : 1 + len(TAUGHT)]
    others = actual[1 + len(TAUGHT) :]
    assert all(figure > 80.0 for figure in taught)
    assert all(best > other + 20.0 for other in others)


def test_it_answers_photographs_with_an_empty_list(lmu: Path) -> None:
    """Unknown words and images, once answered by noise without end (issue: part 13)."""
    names = [f"FindIt_Demo{table}_{BEST}" for table in PHOTOGRAPHS]
    scored = evaluate(FOLDER, names, "cpu")
    adhering = sum(run.metric_values["Adherence"] * len(run.rows) for run in scored)
    assert adhering / sum(len(run.rows) for run in scored) >= 95.0


def test_the_model_of_pixels_was_taught_other_formats(lmu: Path) -> None:
    """What FindIt-Nano answers best in, and four corners, it has forgotten."""
    names = [f"FindIt_Scenes_mini_{form}" for form in ("xywh_json", BEST, "all_json_bbox_2d")]
    scored, elder, corners = evaluate(Path(SHIPPED[NANO_PX]), names, "cpu", model=NANO_PX)
    assert scored.metric_values["F1@0.5"] >= LEAST[""] - ROOM
    assert scored.metric_values["Adherence"] >= 98.0
    assert elder.metric_values["F1@0.5"] < 50.0
    assert elder.metric_values["Adherence"] >= 98.0
    assert corners.metric_values["F1@0.5"] < 50.0
