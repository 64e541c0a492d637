"""Large pictures of local models: resized once by the processor itself, then read from the disk.

"Large" begins at a few pixels here.  Every row of the model table takes the path, with a tiny
checkpoint of its real architecture.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from paths import ROOT
from PIL import Image

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.folders import lmu_data_root
from vlmeval_findit.core.messages import Message, image, text
from vlmeval_findit.models import scene_cache
from vlmeval_findit.models.local.images import ImageSet
from vlmeval_findit.models.local.run_settings import RunSettings
from vlmeval_findit.models.local.runner import LocalRunner, load_local, plan
from vlmeval_findit.models.model_table import MODELS
from vlmeval_findit.models.scene_cache import SceneCache

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import FAMILIES, build  # noqa: E402

from vlmeval_findit.models.local import large_images as large  # noqa: E402
from vlmeval_findit.models.local.encoding import Encoded, MessageEncoder  # noqa: E402
from vlmeval_findit.models.local.transformer import load_processor  # noqa: E402

pytestmark = pytest.mark.host

ROWS = [row for row in FAMILIES if "put_together" in vars(MODELS[row].local.layout)]
VARIANTS = [parse("FindIt_Pascal_xyxy_json"), parse("FindIt_HRInsDet_easy_xyxy_json")]
LARGE = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("large")


@pytest.fixture(autouse=True)
def _cache_of_its_own(
    _own_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.delenv("FINDIT_SCENES_MB", raising=False)
    monkeypatch.setattr(scene_cache, "LARGE", LARGE)


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> Any:
    return cache(lambda row: str(build(row, folder / row.replace(" ", ""))))


@pytest.fixture(scope="module")
def encoder_of(checkpoint: Any) -> Any:
    """The encoder of a row; needs no weights in memory."""

    @cache
    def of(row: str) -> MessageEncoder:
        local = MODELS[row].local
        assert local is not None
        return MessageEncoder(load_processor(checkpoint(row)), local)

    return of


def picture(folder: Path, width: int, height: int, seed: int = 0, kind: str = "png") -> str:
    path = folder / f"{width}x{height}-{seed}.{kind}"
    if not path.exists():
        rng = np.random.default_rng(seed)
        Image.fromarray(rng.integers(0, 255, (height, width, 3), dtype=np.uint8)).save(path)
    return str(path)


def question(folder: Path) -> Message:
    """Three large pictures, two of them of one size, and small ones between and behind them."""
    return (
        text("Reference image 1:"),
        image(picture(folder, 320, 200)),
        text("Scene:"),
        image(picture(folder, 1601, 1203, 1)),
        image(picture(folder, 333, 1000, 2)),
        image(picture(folder, 1601, 1203, 3)),
        image(picture(folder, 900, 3000, 4)),
        text("Find it."),
    )


def encoded(encoder: MessageEncoder, message: Message, variant: Any = VARIANTS[0]) -> Encoded:
    """A message as a run encodes it."""
    bounds = plan(MODELS[encoder_row(encoder)], variant, RunSettings()).bounds
    return encoder.encode(message, encoder.image_set(bounds), bounds)


def decoded_and_encoded(
    encoder: MessageEncoder, message: Message, variant: Any = VARIANTS[0]
) -> Encoded:
    """A message as it would be encoded if nothing were ever kept."""
    bounds = plan(MODELS[encoder_row(encoder)], variant, RunSettings()).bounds
    return encoder.encode(message, ImageSet(bounds), bounds)


def encoder_row(encoder: MessageEncoder) -> str:
    return next(row for row in ROWS if MODELS[row].local is encoder.family)


def assert_same(one: Encoded, other: Encoded) -> None:
    """Texts, tokens and sizes are equal, and features to the last bit."""
    assert (one.text, one.ids, one.types) == (other.text, other.ids, other.types)
    assert one.images == other.images
    assert one.features.keys() == other.features.keys()
    for key, value in one.features.items():
        assert torch.equal(torch.as_tensor(value), torch.as_tensor(other.features[key])), key


@pytest.fixture
def work(watch_decoding: Callable[[ModuleType], list[str]]) -> list[str]:
    """The names of the large files that were decoded and resized, in order."""
    return watch_decoding(large)


def kept_files() -> list[Path]:
    return sorted((lmu_data_root() / "findit_scenes").glob("*.scene"))


# --- what a model is shown is the same ------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS, ids=["chat", "instances"])
@pytest.mark.parametrize("row", ROWS)
def test_pixels_and_sizes_are_those_of_a_run_without_it(
    row: str, variant: Any, folder: Path, encoder_of: Any, work: list[str]
) -> None:
    encoder, message = encoder_of(row), question(folder)
    plain = decoded_and_encoded(encoder, message, variant)
    assert_same(encoded(encoder, message, variant), plain)
    assert work == ["1601x1203-1.png", "1601x1203-3.png", "900x3000-4.png"]
    work.clear()
    assert_same(encoded(encoder, message, variant), plain)
    assert work == [], "all three are kept, for every family"


@pytest.mark.parametrize("row", ["Qwen3-VL", "InternVL3", "Gemma 4"])
def test_replies_and_records_are_those_of_a_run_without_it(
    row: str, folder: Path, checkpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_local(checkpoint(row), MODELS[row], RunSettings(max_new_tokens=8))
    scene = image(picture(folder, 1601, 1203, 1))
    asked = [(scene, text(f"Find {what}.")) for what in ("the cat", "every dog")]

    def answers(model: LocalRunner) -> list[Any]:
        variant = VARIANTS[0]
        return [model.answer_batch(asked, variant), model.answer_variants(asked, variant)]

    first, again = answers(model), answers(model)
    assert len(kept_files()) == 1
    monkeypatch.setenv("FINDIT_SCENES_MB", "0")
    assert first == again == answers(model)


def test_a_picture_that_the_processor_would_enlarge(folder: Path, checkpoint: Any) -> None:
    """Nothing is assumed about the direction of the resize."""
    settings = RunSettings(min_pixels=4_000_000, max_pixels=5_000_000)
    bounds = plan(MODELS["Qwen3-VL"], VARIANTS[0], settings).bounds
    local = MODELS["Qwen3-VL"].local
    assert local is not None
    encoder = MessageEncoder(load_processor(checkpoint("Qwen3-VL")), local)
    message = (image(picture(folder, 1601, 1203, 1)), text("x"))
    plain = encoder.encode(message, ImageSet(bounds), bounds)
    for _ in range(2):
        assert_same(encoder.encode(message, encoder.image_set(bounds), bounds), plain)
    assert len(kept_files()) == 1


# --- once a size that is sent ---------------------------------------------------------------------


def test_once_for_all_queries_and_once_more_for_other_bounds(
    folder: Path, encoder_of: Any, work: list[str]
) -> None:
    encoder = encoder_of("Qwen3-VL")
    path = picture(folder, 1601, 1203, 1)
    for asked in ("the cat", "the dog", "the bicycle"):
        for variant in VARIANTS:
            encoded(encoder, (image(path), text(f"Find {asked}.")), variant)
    assert work == [Path(path).name] * 2
    assert len(kept_files()) == 2


def test_checkpoints_with_one_processor_share_it(
    folder: Path, encoder_of: Any, work: list[str]
) -> None:
    message = (image(picture(folder, 1601, 1203, 1)), text("x"))
    assert_same(
        encoded(encoder_of("Qwen3.5"), message), decoded_and_encoded(encoder_of("Qwen3.5"), message)
    )
    encoded(encoder_of("Qwen3.5-nothink"), message)
    assert len(work) == 1
    encoded(encoder_of("GLM-4.6V"), message)
    assert len(work) == 2


def test_another_version_of_what_resizes_is_asked_anew(
    folder: Path, encoder_of: Any, work: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = (image(picture(folder, 1601, 1203, 1)), text("x"))
    encoded(encoder_of("Qwen3-VL"), message)
    monkeypatch.setattr(large, "_software", lambda: {"torchvision": "another"})
    encoded(encoder_of("Qwen3-VL"), message)
    assert len(work) == 2


def test_a_changed_file_is_decoded_anew(tmp_path: Path, encoder_of: Any, work: list[str]) -> None:
    encoder = encoder_of("Qwen3-VL")
    path = tmp_path / "a.png"
    for colour in ("red", "blue"):
        Image.new("RGB", (1200, 900), colour).save(path)
        os.utime(path, ns=(1, len(colour)))
        message = (image(str(path)), text("x"))
        assert_same(encoded(encoder, message), decoded_and_encoded(encoder, message))
    assert len(work) == 2


def test_small_pictures_pay_nothing(folder: Path, encoder_of: Any, work: list[str]) -> None:
    encoder = encoder_of("Qwen3-VL")
    encoded(encoder, (image(picture(folder, 333, 1000, 2)), text("x")))
    assert work == []
    assert not (lmu_data_root() / "findit_scenes").exists()


def test_it_can_be_switched_off(
    folder: Path, encoder_of: Any, work: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDIT_SCENES_MB", "0")
    encoder, message = encoder_of("Qwen3-VL"), question(folder)
    assert_same(encoded(encoder, message), decoded_and_encoded(encoder, message))
    assert work == []
    assert not (lmu_data_root() / "findit_scenes").exists()


# --- bounds of the folder, other processes, broken things -----------------------------------------


def test_the_limit_holds_and_what_was_not_used_for_longest_goes_first(
    folder: Path, encoder_of: Any, work: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = encoder_of("Qwen3-VL")  # 4.5 MB a picture
    monkeypatch.setenv("FINDIT_SCENES_MB", "10")
    asked = [(image(picture(folder, 1601, 1203, seed)), text("x")) for seed in (1, 3, 5)]
    for at in (0, 1, 0, 2, 0):
        encoded(encoder, asked[at])
        assert SceneCache().size() <= 10 << 20
    assert [name[-5] for name in work] == ["1", "3", "5"], "the second made room for the third"
    encoded(encoder, asked[1])
    assert len(work) == 4


PROCESS = """
import hashlib, json, sys
import torch, torchvision.transforms.v2.functional as functional
from PIL import Image
torch.set_num_threads(1)
done = []
real_convert, real_resize = Image.Image.convert, functional.resize
def convert(self, *args, **kwargs):
    if getattr(self, "filename", ""):
        done.append("decoded")
    return real_convert(self, *args, **kwargs)
def resize(pixels, size, *args, **kwargs):
    if list(pixels.shape[-2:]) != list(size):
        done.append("resized {1}x{0}".format(*pixels.shape[-2:]))
    return real_resize(pixels, size, *args, **kwargs)
Image.Image.convert, functional.resize = convert, resize
from vlmeval_findit.models import scene_cache
scene_cache.LARGE = 1_000_000
from vlmeval_findit.models.local.encoding import MessageEncoder
from vlmeval_findit.models.local.run_settings import RunSettings
from vlmeval_findit.models.local.runner import plan
from vlmeval_findit.models.model_table import MODELS
from vlmeval_findit.models.local.transformer import load_processor
from vlmeval_findit.core.messages import image, text
from vlmeval_findit.benchmarks.findit.dataset_names import parse
hashes = []
for row, checkpoint in json.loads(sys.argv[1]).items():
    encoder = MessageEncoder(load_processor(checkpoint), MODELS[row].local)
    bounds = plan(MODELS[row], parse("FindIt_HRInsDet_easy_xyxy_json"), RunSettings()).bounds
    for path in sys.argv[2:]:
        one = encoder.encode((image(path), text("x")), encoder.image_set(bounds), bounds)
        values = one.features["pixel_values"].numpy()
        hashes.append([hashlib.sha256(values.tobytes()).hexdigest(), one.images])
print(json.dumps({"done": done, "hashes": hashes}))
"""


def process(checkpoints: Mapping[str, str], *paths: str) -> subprocess.Popen[str]:
    env: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROCESS, json.dumps(checkpoints), *paths]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(env))


def said(running: subprocess.Popen[str]) -> dict[str, Any]:
    output = running.communicate(timeout=200)[0]
    assert running.returncode == 0
    return json.loads(output.splitlines()[-1])


def test_processes_make_each_picture_once_and_later_ones_do_nothing(
    folder: Path, checkpoint: Any
) -> None:
    """Two at the same moment, then a third, which is only handed what those have made."""
    checkpoints = {row: checkpoint(row) for row in ("Qwen3-VL", "InternVL3")}
    paths = [picture(folder, 1601, 1203, seed) for seed in (1, 3)]
    both = [said(one) for one in [process(checkpoints, *paths) for _ in range(2)]]
    done = both[0]["done"] + both[1]["done"]
    assert done.count("decoded") == 4, "two pictures, two processors"
    assert done.count("resized 1601x1203") == 2 + 2 * 2, "InternVL's tiles and its thumbnail"
    assert len(kept_files()) == 4
    later = said(process(checkpoints, *paths))
    # InternVL's processor makes a thumbnail of what it is handed; the kept one takes its place.
    assert later["done"] == ["resized 896x672"] * 2
    assert both[0]["hashes"] == both[1]["hashes"] == later["hashes"]


def test_what_is_damaged_on_disk_is_made_anew(
    folder: Path, encoder_of: Any, work: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    encoder, message = encoder_of("Qwen3-VL"), (image(picture(folder, 1601, 1203, 1)), text("x"))
    encoded(encoder, message)
    (file,) = kept_files()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    for broken in (bytes(data), bytes(data[:1000]), b""):
        file.write_bytes(broken)
        assert_same(encoded(encoder, message), decoded_and_encoded(encoder, message))
    assert len(work) == 4
    assert "is damaged, and made anew" in caplog.text


def test_a_full_disk_costs_nothing_but_time(
    folder: Path, encoder_of: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*names: object) -> None:
        raise OSError(28, "No space left on device")

    encoder, message = encoder_of("Qwen3-VL"), (image(picture(folder, 1601, 1203, 1)), text("x"))
    monkeypatch.setattr(scene_cache.os, "replace", full)
    assert_same(encoded(encoder, message), decoded_and_encoded(encoder, message))
    assert "cannot be kept" in caplog.text
    assert list((lmu_data_root() / "findit_scenes").glob("*.*")) == []


def test_a_processor_that_resizes_again_is_handed_the_whole_picture(
    folder: Path,
    encoder_of: Any,
    work: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As one would that cannot be told to stop after its resize, or adds something to it."""
    encoder, message = encoder_of("Qwen3-VL"), (image(picture(folder, 1601, 1203, 1)), text("x"))
    kind = type(encoder.processor.image_processor)
    real = kind.resize

    def restless(self: Any, images: Any, **arguments: Any) -> Any:
        return real(self, images=images, **arguments).flip(-1)

    monkeypatch.setattr(kind, "resize", restless)
    plain = decoded_and_encoded(encoder, message)
    for _ in range(2):
        assert_same(encoded(encoder, message), plain)
    assert len(work) == 1, "that it cannot be kept is kept"
    assert "is decoded and resized again" in caplog.text
    assert kept_files()[0].stat().st_size < 1000


def test_a_missing_or_broken_file_is_an_os_error(tmp_path: Path, encoder_of: Any) -> None:
    encoder = encoder_of("Qwen3-VL")
    whole = Path(picture(tmp_path, 1601, 1203, 1)).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    for name in ("cut.png", "none.png"):
        with pytest.raises(OSError, match=r"truncated|none\.png"):
            encoded(encoder, (image(str(tmp_path / name)), text("x")))
    assert kept_files() == []
