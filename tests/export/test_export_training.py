"""Training sets of runs: what is chosen, that answers are right, and that trainers read them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from custom_data import data_folder
from few_fast import every_nth_fast, few_fast
from jsonl_data import LINES, import_lines
from PIL import Image, ImageOps
from scored_runs import World, failing, scored_outputs

import vlmeval_findit as findit
from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.boxes import reply_extent, space_from
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.export import TRAINERS
from vlmeval_findit.models import SHIPPED
from vlmeval_findit.protocol import Answering, CustomPrompt, Settings, prompt_set
from vlmeval_findit.scoring import run_identity, score_file, write_score
from vlmeval_findit.storage import RunFiles, meta_path, write_identity

GRID = {"kind": "grid1000"}
SPACES: Sequence[dict[str, Any]] = (
    GRID,
    {"kind": "unit_rescale"},
    {"kind": "no_rescale"},
    {"kind": "smart_resize", "min_pixels": 3136, "max_pixels": 50176},
    {"kind": "letterbox", "side": 1000},
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data_folder(tmp_path, monkeypatch)
    return tmp_path


def run(
    name: str,
    reply: Callable[[int], str] | str,
    space: Any = GRID,
    prompt: CustomPrompt | None = None,
) -> Path:
    """Return a scored run of custom data with these answers in a space."""
    dataset = load_dataset(name)
    of = reply if callable(reply) else lambda index: reply
    rows = [{"index": index, "prediction": of(index)} for index in dataset.queries]
    path = Path("runs", f"M_{name}.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rows))
    words = prompt_set(benchmark_of(dataset.variant), prompt)
    identity = run_identity(
        dataset, "M", Answering("Test"), list(dataset.queries), space, prompts=words
    )
    if prompt is not None:
        identity = replace(identity, custom_prompt=asdict(prompt))
    write_identity(RunFiles(path).identity, identity)
    write_score(score_file(path, Settings()), path)
    return path


def export(path: Path, *flags: str) -> list[dict[str, Any]]:
    assert main(["export", str(path), "--to", "training", "--out", "set", *flags]) == 0
    lines = Path("set", "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def refused(path: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    assert main(["export", str(path), "--to", "training", "--out", "none", *flags]) == 2
    assert not Path("none").exists()
    return capsys.readouterr().err


def rewards(rows: Sequence[dict[str, Any]], by: Any = "f1") -> list[float]:
    """Return the reader's boxes of the answers, as a trainer would ask."""
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    values: list[float] = findit.reward_function("trl", by)(
        completions=columns.pop("completion"), prompts=columns.pop("prompt"), **columns
    )
    return values


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, in one line."""
    return " ".join(capsys.readouterr().out.split())


def answers(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [row["completion"][0]["content"] for row in rows]


FORMATS_OF = {
    "objdet": ("xyxy_json", "multilabel_cxcywh_text", "multilabel_all_json_class_name_nested"),
    "refexp": ("yxhw_text", "xywh_json_decomposed", "point_json_point_2d"),
    "refexp_all": ("xyxy_text", "caption_all-labelled_text"),
    "insdet": ("yxyx_json_bbox_2d", "xyxy_json_vp-oval"),
    "objdet_video": ("f4_xyxy_json", "f2_xyxy_text", "multilabel_f4_xywh_json"),
    "insdet_video": ("f4_cxcywh_json",),
}


@pytest.mark.parametrize("family", few_fast(FORMATS_OF, 2))
def test_answers_are_read_back_with_the_full_score(folder: Path, family: str) -> None:
    assert import_lines(folder, LINES[family]) == 0
    for name in FORMATS_OF[family]:
        for space in SPACES:
            rows = export(run(f"FindIt_Mine_{name}", "Nothing there.", space))
            by = "pointing" if "point" in name else "f1"
            assert rewards(rows, by) == [1.0] * len(rows)
            if by == "f1":
                assert min(rewards(rows, "iou")) > 0.9
            if "[]" not in answers(rows):
                assert rewards(rows, "adherence") == [1.0] * len(rows)
            for row in rows:
                # The very prompt, image by image.
                asked = row["prompt"][0]["content"]
                assert [p["type"] for p in asked].count("image") == len(row["images"])
                assert all(Path(each).is_absolute() and Image.open(each) for each in row["images"])


def test_what_is_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"image": f"{at}.png", "label": label, "boxes": [[0, 0, 48, 32]] * (at < 2)}
        for at in range(3)
        for label in ("cat", "dog")
    ]
    assert import_lines(folder, lines) == 0
    replies = ["[0, 0, 500, 500]", "[]", "[0, 0, 200, 500]", "[500, 500, 900, 900]", "[]", "hm [1]"]
    path = run("FindIt_Mine_xyxy_text", dict(enumerate(replies)).__getitem__)
    rows = export(path)
    assert "3 samples for trl" in capsys.readouterr().out
    asked = [(row["images"][0][-5:], row["prompt"][0]["content"][1]["text"]) for row in rows]
    expected = [("0.png", "dog"), ("1.png", "cat"), ("1.png", "dog")]
    for (image, text), (name, label) in zip(asked, expected, strict=True):
        assert image == name
        assert text.startswith(f'Find every instance of "{label}"')
    assert answers(rows) == ["[0, 0, 500, 500]"] * 3
    assert len(export(path, "--errors", "localisation")) == 1
    assert len(export(path, "--errors", "localisation", "--errors", "nothing found")) == 2
    # Where there is nothing to find, "[]" is right, and what cannot be read costs nothing.
    assert len(export(path, "--right")) == 6
    assert "no error: 3" in capsys.readouterr().out
    error = refused(path, capsys, "--errors", "wrong label")
    assert "no query has an error of wrong label" in error
    error = refused(path, capsys, "--errors", "refuse")
    assert "unknown type 'refuse': did you mean refused" in error


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_samples_are_counted_not_runs(
    folder: Path, runs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Models with equal answers have the samples of one; what one got right, another may miss."""
    lines = [{"image": f"{at}.png", "label": "cat", "boxes": [[0, 0, 48, 32]]} for at in range(3)]
    assert import_lines(folder, lines) == 0
    missed, right = "[500, 500, 900, 900]", "[0, 0, 500, 500]"
    paths = []
    for at in range(runs):
        replies = [missed, missed, missed if at == 0 else right]
        path = run("FindIt_Mine_xyxy_text", dict(enumerate(replies)).__getitem__)
        copy = folder / f"model{at}" / path.name
        copy.parent.mkdir()
        for file in path.parent.glob(f"{path.stem}*"):
            file.rename(copy.parent / file.name)
        paths.append(copy)
    for flags, samples in (([], 3), (["--right"], 3)):
        capsys.readouterr()
        assert len(export(paths[0], *map(str, paths[1:]), *flags)) == samples
        said = capsys.readouterr().out
        assert f"{samples} samples for trl" in said
        assert "missed: 3" in said
        assert "no error" not in said


def test_numbers_are_whole_where_this_scores(folder: Path) -> None:
    boxes = [[0.3, 7, 13.1, 22], [5.1, 5.1, 5.3, 5.3]]
    lines = [{"image": f"{at}.png", "label": "cat", "boxes": [box]} for at, box in enumerate(boxes)]
    assert import_lines(folder, lines) == 0
    rows = export(run("FindIt_Mine_xyxy_text", "[]"))
    assert rewards(rows) == [1.0, 1.0]
    whole, fine = answers(rows)
    assert re.fullmatch(r"\[\d+, \d+, \d+, \d+\]", whole)
    assert "." in fine


# Numbers of a model's 40 replies, its space, and what the right answers are multiples of
NUMBERS: dict[str, tuple[Callable[[int], list[float]], dict[str, Any], float]] = {
    "multiples of 5": (lambda at: [5 * at, 10, 15 * at, 995], GRID, 5),
    "multiples of 10": (lambda at: [10 * at, 10, 20 * at + 10, 990], GRID, 10),
    "whole": (lambda at: [at, 10, 3 * at, 999], GRID, 1),
    "decimals": (lambda at: [at + 0.5, 10, 3 * at + 0.1, 999.5], GRID, 1),
    "the same box": (lambda at: [0, 0, 1000, 1000], GRID, 1),
    "a few others": (lambda at: [5 * at, 10, 15 * at, 995 + (at == 3)], GRID, 5),
    "many others": (lambda at: [5 * at, 10, 15 * at, 995 + (at % 10 == 3)], GRID, 1),
    "hundredths": (lambda at: [at / 100, 0.1, 0.5, 0.99], {"kind": "unit_rescale"}, 0.01),
    "thousandths": (lambda at: [at / 1000, 0.1, 0.5, 0.99], {"kind": "unit_rescale"}, 0.001),
}


@pytest.mark.parametrize("kind", every_nth_fast(NUMBERS, 3))
def test_answers_are_as_coarse_as_the_model(
    folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, space, step = NUMBERS[kind]
    lines = [
        {"image": "0.png", "label": f"thing {at}", "boxes": [[1 + at, 7, 31 + at, 62]]}
        for at in range(40)
    ]
    lines.append({"image": "1.png", "label": "speck", "boxes": [[5.1, 5.1, 5.3, 5.3]]})
    assert import_lines(folder, lines) == 0
    path = run("FindIt_Mine_xyxy_text", lambda at: str(numbers(at)), space)
    rows = export(path, "--right")
    out = printed(capsys)
    *usual, speck = answers(rows)
    assert len(usual) == 40
    values = [value for text in usual for value in json.loads(text)]
    for value in values:
        assert value / step == pytest.approx(round(value / step), abs=1e-6), (value, step)
    for coarser in (step * 10, step * 5):
        rounded = [value / coarser == pytest.approx(round(value / coarser)) for value in values]
        assert not all(rounded)
    assert len(set(map(str, json.loads(speck)))) > 1, "too small for it: finer"
    assert rewards(rows) == [1.0] * len(rows)
    is_coarse = step not in (1, 0.001)
    assert (f"Numbers are multiples of {step:g}, as those of M." in out) is is_coarse
    assert ("Numbers are multiples" in Path("set/README.md").read_text()) is is_coarse


@pytest.mark.slow
def test_a_model_knows_the_answers_that_it_gave(folder: Path) -> None:
    """Else a training on them unlearns what the model can do."""
    torch = pytest.importorskip("torch")
    datasets = pytest.importorskip("datasets")
    sft = pytest.importorskip("trl.trainer.sft_trainer")
    hf = pytest.importorskip("transformers")
    asked = ["--data", "FindIt_Scenes_train_xyxy_json_bbox_2d", "--limit", "24"]
    assert main(["run", "--model", "FindIt-Nano", *asked, "--work-dir", "nano"]) == 0
    export(Path("nano"), "--right")
    rows = datasets.load_dataset("set", split="train", cache_dir=str(folder / "cache"))
    nano = SHIPPED["FindIt-Nano"]
    processor = hf.AutoProcessor.from_pretrained(nano)
    batch = sft.DataCollatorForVisionLanguageModeling(processor, completion_only_loss=True)(
        list(rows)
    )
    model = hf.AutoModelForImageTextToText.from_pretrained(nano, dtype="float32")
    with torch.no_grad():
        loss = model(**batch).loss.item()
    assert loss < 3  # Of other numbers than the model's it is 11


def test_best_formats(folder: Path) -> None:
    assert import_lines(folder, LINES["refexp"]) == 0
    Path("best.yaml").write_text("models: {M: {FindIt: {winner: cxcywh_json_bbox_2d}}}\n")
    rows = export(run("FindIt_Mine_xyxy_text", "[]"), "--formats", "best.yaml")
    assert {row["format"] for row in rows} == {"cxcywh_json_bbox_2d"}
    assert all("[cx, cy, width, height]" in row["prompt"][0]["content"][1]["text"] for row in rows)
    assert rewards(rows) == [1.0] * len(rows) == rewards(rows, "adherence")


# --- trainers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_prompt_of_the_users_is_asked_again(folder: Path, trainer: str) -> None:
    """Messages have marks where images are, and LLaMA-Factory a description."""
    lines = [{**line, "references": ["r0.png"]} for line in LINES["insdet"]]
    assert import_lines(folder, lines) == 0
    prompt = CustomPrompt("You find things.", "In {{ images[-1] }}, where is {{ images[0] }}?")
    row = export(run("FindIt_Mine_xyxy_json", "hm", prompt=prompt), "--trainer", trainer)[0]
    system, user, *rest = row.get("messages") or row["prompt"]
    assert system["role"] == "system"
    assert [Path(image).name for image in row["images"]] == ["0.png", "r0.png"]
    info = Path("set/dataset_info.json")
    assert info.exists() is (trainer == "llama-factory")
    if trainer == "trl":
        assert system["content"] == [{"type": "text", "text": "You find things."}]
        texts = [part.get("text") for part in user["content"]]
        assert texts == ["In ", None, ", where is ", None, "?"]
        return
    assert system["content"] == "You find things."
    assert user["content"] == "In <image>, where is <image>?"
    assert json.loads(rest[0]["content"])
    if info.exists():
        (described,) = json.loads(info.read_text()).values()
        assert (Path("set") / described["file_name"]).is_file()
        assert set(described["columns"].values()) <= set(row)


@pytest.mark.slow
def test_trl_reads_it(folder: Path) -> None:
    """With the real ``datasets``, and the processing of data of the real SFTTrainer."""
    datasets = pytest.importorskip("datasets")
    sft = pytest.importorskip("trl.trainer.sft_trainer")
    hf = pytest.importorskip("transformers")
    assert import_lines(folder, LINES["insdet"]) == 0
    rows = export(run("FindIt_Mine_xyxy_json", "hm"))
    loaded = datasets.load_dataset("set", split="train", cache_dir=str(folder / "cache"))
    assert loaded[0]["images"][0].size == (96, 64)
    assert rewards([{**row} for row in loaded]) == [1.0] * len(rows)
    nano = SHIPPED["FindIt-Nano"]
    processor = hf.AutoProcessor.from_pretrained(nano)
    collate = sft.DataCollatorForVisionLanguageModeling(processor, completion_only_loss=True)
    batch = collate(list(loaded))
    for row, ids, labels in zip(rows, batch["input_ids"], batch["labels"], strict=True):
        answer = processor.tokenizer.decode(labels[labels != -100]).removesuffix("\n")
        assert [answer.removesuffix("<|im_end|>")] == answers([row])
        asked = processor.tokenizer.decode(ids)
        assert asked.count("<|vision_start|>") == len(row["images"])
        assert row["prompt"][0]["content"][-1]["text"] in asked
    # Another set in the same folder is not that of the cache.
    assert len(export(Path("runs"), "--right")) == 3
    assert len(datasets.load_dataset("set", split="train", cache_dir=str(folder / "cache"))) == 3


# --- images ---------------------------------------------------------------------------------------

EVERY_SPACE: Sequence[dict[str, Any]] = (
    *SPACES,
    {"kind": "percent"},
    {"kind": "file_pixels"},
    {"kind": "no_rescale", "scene_max_size": 300},
    {"kind": "openai_high"},
    {"kind": "claude_standard"},
    {"kind": "claude_highres"},
    {"kind": "smart_resize", "min_pixels": 3136, "max_pixels": 90000, "factor": 32},
    {"kind": "smart_resize", "min_pixels": 400_000, "max_pixels": 900_000, "two_step": True},
)

# What is done with a white image with a dark patch before it is saved: mode, name, EXIF orientation
FILES = {
    "plain": ("RGB", "a.png", 1),
    "turned": ("RGB", "b.jpg", 6),
    "mirrored": ("RGB", "c.jpg", 5),
    "upside down": ("RGB", "d.png", 3),
    "clear": ("RGBA", "e.png", 1),
    "grey": ("L", "f.jpg", 1),
    "print": ("CMYK", "g.jpg", 1),
    "palette": ("P", "i.png", 1),
}


def make_file(name: str, size: tuple[int, int], box: Sequence[int]) -> None:
    """Make a white image with a dark patch at a box of the stored pixels."""
    mode, stem, orientation = FILES[name]
    file = Path("images", stem)
    file.parent.mkdir(exist_ok=True)
    image = Image.new("L", size, 255)
    image.paste(20, tuple(box))
    if mode == "RGBA":
        clear = Image.new("RGBA", size, (0, 0, 0, 0))
        clear.paste((20, 20, 20, 255), tuple(box))
        image = clear
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.convert(mode).save(file, exif=exif)


def as_trainers_see(path: str) -> list[Image.Image]:
    """Decode a file as ``datasets`` does, which turns it, and as others, which do not."""
    image = Image.open(path)
    return [ImageOps.exif_transpose(image).convert("RGB"), image.convert("RGB")]


def is_dark(image: Image.Image, x: float, y: float) -> bool:
    pixel: Any = image.getpixel((int(x), int(y)))
    return max(pixel) < 120


@pytest.mark.parametrize(
    ("trainer", "size"),
    # The last is larger than what senders of pixels shrink images to.
    few_fast([*((trainer, (200, 120)) for trainer in TRAINERS), ("trl", (4300, 500))], 1),
)
def test_answers_hold_for_the_image_of_the_trainer(
    folder: Path, trainer: str, size: tuple[int, int]
) -> None:
    width, height = size
    box = [width // 10, height // 5, width // 2, height * 3 // 5]
    lines = [{"image": FILES[name][1], "label": "cat", "boxes": [box]} for name in FILES]
    for name in FILES:
        make_file(name, size, box)
    assert import_lines(folder, lines, "--exif", "stored") == 0
    for space in EVERY_SPACE:
        path = run("FindIt_Mine_xyxy_json", "[]", space)
        rows = export(path, "--trainer", trainer)
        assert len(rows) == len(FILES)
        card = Path("set/README.md").read_text(encoding="utf-8")
        for row in rows:
            turns = row.get("messages") or row["completion"]
            ((x1, y1, x2, y2),) = [each["bbox"] for each in json.loads(turns[-1]["content"])]
            (name,) = row["images"]
            for image in as_trainers_see(name):
                extent = reply_extent(space_from(space), *size)
                is_of_pixels = "count pixels of these images" in card
                if is_of_pixels:
                    assert image.size == (round(extent.width), round(extent.height)), space
                across = 1 if is_of_pixels else image.width / extent.width
                down = 1 if is_of_pixels else image.height / extent.height
                left = (x1 - extent.left * (not is_of_pixels)) * across
                top = (y1 - extent.top * (not is_of_pixels)) * down
                wide = (x2 - x1) * across
                high = (y2 - y1) * down
                for part in (0.1, 0.5, 0.9):
                    inside = (left + part * wide, top + part * high)
                    assert is_dark(image, *inside), (space, name, inside)
                for x, y in ((-0.1, 0.5), (1.1, 0.5), (0.5, -0.15), (0.5, 1.15)):
                    assert not is_dark(image, left + x * wide, top + y * high), (space, name)


def test_only_what_a_trainer_would_change_is_copied(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    box = [20, 24, 100, 72]
    lines = [{"image": FILES[name][1], "label": "cat", "boxes": [box]} for name in FILES]
    for name in FILES:
        make_file(name, (200, 120), box)
    assert import_lines(folder, lines, "--exif", "stored") == 0
    rows = export(run("FindIt_Mine_xyxy_json", "[]"))
    out = printed(capsys)
    assert "7 images copied to `images/`" in out
    assert "count pixels" not in out
    copied = [Path(row["images"][0]).is_relative_to(Path("set").absolute()) for row in rows]
    assert copied.count(True) == 7
    export(run("FindIt_Mine_xyxy_json", "[]", SPACES[3]), "--trainer", "ms-swift")
    sides = "`MAX_PIXELS` at least 21,952, `MIN_PIXELS` at most 21,952"
    assert sides in printed(capsys)
    assert sides in Path("set/README.md").read_text(encoding="utf-8")
    assert "Qwen's processors" not in Path("set/README.md").read_text(encoding="utf-8")
    export(run("FindIt_Mine_xyxy_json", "[]", {"kind": "file_pixels"}))
    assert "Qwen's processors resize them all the same" in printed(capsys)
    export(run("FindIt_Mine_xyxy_json", "[]", {"kind": "letterbox", "side": 640}))
    assert "Answers are in the space letterbox {'side': 640}" in printed(capsys)
    # Once more: the copies of the last export are replaced.
    export(run("FindIt_Mine_xyxy_json", "[]"))
    assert len(list(Path("set/images").iterdir())) == 7


def test_an_image_that_cannot_be_read_is_left_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_lines(folder, LINES["refexp"]) == 0
    path = run("FindIt_Mine_xyxy_text", "[]")
    for file in folder.rglob("0.png"):
        file.write_bytes(file.read_bytes()[:90])
    assert len(export(path)) == 1
    assert "left out: 1 whose image is not there, or cannot be read" in printed(capsys)


# --- refusals -------------------------------------------------------------------------------------


def test_test_data_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scored_outputs(tmp_path, monkeypatch)
    assert "FindIt, Pascal: test data" in refused(Path("outputs"), capsys)
    assert export(Path("outputs"), "--yes-test-data")
    card = Path("set/README.md").read_text()
    assert "**Test data** (`--yes-test-data`): FindIt, Pascal." in card


def test_published_sets_are_refused_as_training_data(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_lines(folder, LINES["refexp"]) == 0
    meta = meta_path(load_dataset("FindIt_Mine_xyxy_text").table)
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "set": "ODinW13"}))
    path = run("FindIt_Mine_xyxy_text", "[]")
    assert "ODinW13, Mine: test data" in refused(path, capsys)
    assert export(path, "--yes-test-data")
    identity = RunFiles(path).identity
    identity.write_text(identity.read_text().replace("findit", "mine"))
    write_score(score_file(path, Settings(force=True)), path)
    error = refused(path, capsys, "--yes-test-data")
    assert "A training set asks what the run asked" in error


def test_failed_calls_are_no_fault_of_the_model(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third of twelve calls failed, and nothing was found in the others."""
    monkeypatch.chdir(world.folder)
    path = world.predict("M", "FindIt_Pascal_xyxy_text", failing)
    assert len(export(path, "--yes-test-data")) == 8
    assert len(export(path, "--yes-test-data", "--errors", "failed call")) == 4
