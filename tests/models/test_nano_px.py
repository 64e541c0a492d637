"""FindIt-Nano-px answers in pixels of what its processor shows it: read so, and misread."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from perfect_answers import perfect_answer

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.boxes import reference_size, space_from
from vlmeval_findit.coords import SPACES, space_row_of
from vlmeval_findit.data import load_dataset
from vlmeval_findit.models import MODELS, NANO_PX, SHIPPED, RunSettings
from vlmeval_findit.protocol import Reply, Settings
from vlmeval_findit.scoring import check_replies, score_rows

SCENES = "FindIt_Scenes_mini_xywh_json"
PHOTOGRAPHS = "FindIt_Demo_xywh_json"
SPACE = MODELS[NANO_PX].space(parse(SCENES))
RIGHT = "smart24_2304_28224"

SIZES = {
    # A scene is a multiple of 24 and small enough: its pixels are sent.
    (192, 144): (192, 144),
    (144, 192): (144, 192),
    (168, 168): (168, 168),
    # beta = sqrt(640 * 480 / 28224) = 3.2991: 640 / beta = 194.0 -> 8 * 24, 145.5 -> 6 * 24.
    (640, 480): (192, 144),
    # beta = sqrt(400 * 328 / 28224) = 2.1560: 185.5 -> 7 * 24, 152.1 -> 6 * 24.
    (400, 328): (168, 144),
    # A thumbnail of 480 pixels grows: beta = sqrt(2304 / 480) = 2.1909: 52.6 -> 72, 43.8 -> 48.
    (24, 20): (72, 48),
}


@pytest.mark.parametrize("size", SIZES)
def test_what_its_numbers_refer_to(size: tuple[int, int]) -> None:
    assert reference_size(SPACE, *size) == SIZES[size]
    # A run records the whole space; the coordinate check has a row for it.
    assert space_from(json.loads(json.dumps(SPACE.as_dict()))) == SPACE
    assert space_row_of(SPACE) is SPACES[RIGHT]


@pytest.mark.parametrize("name", [SCENES, "FindIt_Scenes_mini_video_f4_xywh_json", PHOTOGRAPHS])
def test_pixels_come_back_as_the_right_boxes(name: str) -> None:
    """Every box as a perfect model would write it, in whole pixels."""
    if name == PHOTOGRAPHS:
        pytest.importorskip("skimage")
        pytest.importorskip("sklearn")
    dataset = load_dataset(name)
    said = [
        Reply(i, perfect_answer(dataset, q, SPACE, digits=0)) for i, q in dataset.queries.items()
    ]
    right = score_rows(check_replies(NANO_PX, dataset, said)).metric_values
    assert right["F1@0.5"] == 100.0
    # Of a photograph, which is shrunk, a whole pixel is several.
    assert (right["mIoU"] or 0.0) > (99.9 if name == SCENES else 85.0)
    as_grid = check_replies(NANO_PX, dataset, said, Settings("grid1000", force=True))
    assert (score_rows(as_grid).metric_values["F1@0.5"] or 0.0) < 1.0


@pytest.mark.parametrize("size", [*SIZES, (1200, 91), (333, 517), (4600, 1500)])
def test_its_processor_shows_the_very_size_that_is_read(
    size: tuple[int, int], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from PIL import Image

    from vlmeval_findit.models import ImageSet, MessageEncoder, plan_generation
    from vlmeval_findit.protocol import image, text

    Image.new("RGB", size).save(tmp_path / "a.png")
    how = plan_generation(MODELS[NANO_PX], parse(SCENES), RunSettings())
    processor = transformers.AutoProcessor.from_pretrained(SHIPPED[NANO_PX])
    encoder = MessageEncoder(processor, how.family)
    message = (image(str(tmp_path / "a.png")), text("x"))
    (sizes,) = encoder.encode(message, ImageSet(how.bounds)).images
    assert reference_size(space_from(how.space), *size) == tuple(sizes["processed"])
    # Said or left to it, its bounds are the same: who serves it sees what is seen here.
    image_processor = json.loads(Path(SHIPPED[NANO_PX], "processor_config.json").read_text())
    settings = image_processor["image_processor"]
    assert settings["patch_size"] * settings["merge_size"] == SPACE.factor
    assert settings["size"] == {"shortest_edge": SPACE.min_pixels, "longest_edge": SPACE.max_pixels}
