"""FindIt-Nano: what it is taught, how it is trained, and the checkpoint that ships."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grids import grid  # noqa: E402

from training import architecture, lessons, saving, train  # noqa: E402
from training import questions as asking  # noqa: E402
from training.architecture import TOKEN_SIDE  # noqa: E402
from training.batches import IGNORED, MARK_COLOURS, MARK_SHAPES, Room  # noqa: E402
from training.lessons import SPEAKERS, Lesson, Numbers, Shares  # noqa: E402
from training.mark_lessons import mark_lesson  # noqa: E402
from training.optimizers import orthogonal  # noqa: E402
from training.pair_lessons import pair_lesson  # noqa: E402
from training.train import Training, read_recipe  # noqa: E402
from vlmeval_findit.benchmarks.findit.dataset_names import parse  # noqa: E402
from vlmeval_findit.benchmarks.findit.variant import Variant  # noqa: E402
from vlmeval_findit.boxes.reading import reader  # noqa: E402
from vlmeval_findit.core import messages  # noqa: E402
from vlmeval_findit.core.stored_png import png  # noqa: E402
from vlmeval_findit.data.rendered.scene import SPLITS, Stream, clip, rng_of, scene  # noqa: E402
from vlmeval_findit.models.bounds import Bounds  # noqa: E402
from vlmeval_findit.models.local.encoding import MessageEncoder  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("one_thread")]

RECIPE = read_recipe(train.RECIPE)
SMALL = replace(
    RECIPE,
    corpus=30,
    vocabulary=500,
    text={"width": 64, "depth": 2, "heads": 2},
    vision={"width": 32, "depth": 2, "heads": 1},
    warmup=2,
    save_every=2,
    evaluate_every=1000,
    stages=(replace(RECIPE.stages[-1], until=4, rows=2, kinds={"scenes": 1}),),
)
ROOMY = Room(20, 2000)
EVEN = Shares(
    numbers=Numbers.THOUSANDTHS,
    representation=dict.fromkeys(RECIPE.shares.representation, 1),
    output={"text": 1, "json": 2},
    key=dict.fromkeys(RECIPE.shares.key, 1),
    structure=dict.fromkeys(RECIPE.shares.structure, 1),
    task={"detection": 1, "multilabel": 1, "refexp": 1, "described": 1},
)


@pytest.fixture(scope="module")
def untrained() -> Training:
    return Training(SMALL, "cpu")


# --- lessons --------------------------------------------------------------------------------------

ASKED = {
    "Scenes": asking.detection,
    "Scenes_multilabel": asking.several,
    "Scenes_refexp": asking.referring,
    "Scenes_described": asking.described,
}


def rows_of_scenes() -> list[Variant]:
    """Every variant of the rendered image tables, but those of the centre experiment."""
    tables = {*ASKED, "Scenes_insdet"}
    return [v for v in grid() if v.table in tables and v.centre is None]


@pytest.mark.parametrize(("numbers", "step"), [(Numbers.THOUSANDTHS, 10), (Numbers.PIXELS, 1)])
def test_every_reply_that_is_taught_reads_as_its_boxes(numbers: Numbers, step: int) -> None:
    shown = scene(11)
    width, height = shown.width, shown.height
    across, down = (1, 1) if numbers is Numbers.PIXELS else (width / 1000, height / 1000)
    for variant in rows_of_scenes():
        rng = rng_of(Stream.QUESTION, 11)
        if variant.table == "Scenes_insdet":
            found = asking.instance(rng, shown)
            assert found is not None
            asked = found[0]
        else:
            asked = ASKED[variant.table](rng, shown)
        assert asked is not None
        turn = lessons.turn_of(asked, variant, shown, [0] * len(asked.boxes), numbers)
        reading = reader(SPEAKERS[numbers].reads(variant.reply))(turn.reply)
        assert reading.reason is None, (variant.name, turn.reply)
        pixels = [
            (x1 * across, y1 * down, x2 * across, y2 * down) for x1, y1, x2, y2 in reading.boxes
        ]
        right = [box for _, box in turn.objects]
        assert np.allclose(pixels, right, atol=step * max(across, down)), variant.name
        assert sorted(right) == sorted(asked.boxes)
        by_box = dict(zip(asked.boxes, asked.labels, strict=True)) if asked.labels else {}
        assert list(reading.labels) == [by_box[box] for box in right if asked.labels]


def test_a_clip_s_reply_says_the_frame_of_every_box() -> None:
    frames = clip(5, 8)
    asked, places = asking.in_clip(rng_of(Stream.QUESTION, 5), frames)
    variant = parse("FindIt_Scenes_video_f8_xyxy_json_bbox_2d")
    turn = lessons.turn_of(asked, variant, frames[0], places, Numbers.THOUSANDTHS)
    reading = reader(SPEAKERS[Numbers.THOUSANDTHS].reads(variant.reply))(turn.reply)
    assert reading.reason is None
    assert sorted(reading.frames) == sorted(places)
    assert [picture for picture, _ in turn.objects] == list(reading.frames)


def test_formats_come_by_their_shares() -> None:
    rng = rng_of(Stream.BATCH, 0)
    drawn = [lessons.draw_variant(rng, RECIPE.shares, "Scenes") for _ in range(2000)]
    favourite = sum(v.name == "FindIt_Scenes_xyxy_json_bbox_2d" for v in drawn) / len(drawn)
    assert 0.35 < favourite < 0.5
    assert len({v.name for v in drawn}) > 30


def test_training_sees_scenes_of_its_own_split_only() -> None:
    seeds = [lessons.train_seed(1, step, row) for step in range(200) for row in range(4)]
    assert all(seed in SPLITS["train"] for seed in seeds)
    assert len({*seeds}) == len(seeds)


# --- batches --------------------------------------------------------------------------------------


def message_of(lesson: Lesson, request: str, folder: Path) -> messages.Message:
    """A turn as the benchmark would ask it, the lesson's pictures as files."""
    files = []
    for number, shown in enumerate(lesson.pictures):
        files.append(folder / f"{number}.png")
        files[-1].write_bytes(png(shown.pixels))
    names = iter(files)
    opening = tuple(
        messages.image(str(next(names))) if part.kind is messages.PartKind.IMAGE else part
        for part in lesson.opening
    )
    return (*opening, messages.text(request))


LESSONS = {
    "scene": lambda: lessons.scene_lesson(2**21, 4, EVEN, (3, 5), (192, 144)),
    "instance": lambda: lessons.instance_lesson(2**21, 3, EVEN, (3, 5), (144, 192)),
    "clip": lambda: lessons.clip_lesson(2**21, 2, EVEN, 3, (1, 3), (168, 168)),
}


def length(training: Training, turn: lessons.Turn) -> int:
    """Tokens of a turn."""
    return len(training.writer._tokens(turn).ids)


@pytest.mark.parametrize("kind", LESSONS)
def test_turns_that_share_pictures_are_taught_as_if_each_were_alone(
    kind: str, untrained: Training, tmp_path: Path
) -> None:
    """The tokens and the scores of a packed row are those of the package's own encoder."""
    lesson = LESSONS[kind]()
    batch = untrained.writer.batch([lesson], ROOMY)
    model = untrained.model.eval()
    shapes = (SMALL.text, SMALL.vision)
    plain = architecture.build_model(untrained.processor.tokenizer, *shapes).eval()
    plain.load_state_dict(model.state_dict())
    with torch.no_grad():
        packed = model.model(
            input_ids=batch.ids,
            pixel_values=batch.pixels,
            image_grid_thw=batch.grid,
            attention_mask=batch.positions.new_zeros(1, 1, 1, 1),
            position_ids=batch.positions,
            use_cache=False,
            turns=batch.layout,
        ).last_hidden_state[0]
    family = SPEAKERS[Numbers.THOUSANDTHS].local
    assert family is not None
    encoder = MessageEncoder(untrained.processor, family)
    learnt = [i for i in range(batch.ids.shape[1]) if batch.targets[0, i] != IGNORED]
    at = 0
    # A row has its turns in the order of their lengths.
    for turn in sorted(lesson.turns, key=lambda turn: -length(untrained, turn)):
        message = message_of(lesson, turn.request, tmp_path)
        alone = encoder.encode(message, encoder.image_set(Bounds()), Bounds())
        reply = untrained.processor.tokenizer(turn.reply, add_special_tokens=False).input_ids
        ids = torch.tensor([[*alone.ids, *reply]])
        with torch.no_grad():
            hidden = plain.model(
                input_ids=ids,
                mm_token_type_ids=torch.tensor([[*alone.types, *([0] * len(reply))]]),
                use_cache=False,
                **alone.features,
            ).last_hidden_state[0, len(alone.ids) - 1 :]
        places = learnt[at : at + len(reply) + 1]
        at += len(places)
        targets = batch.targets[0, places].tolist()
        assert targets == [*reply, untrained.processor.tokenizer.eos_token_id]
        assert torch.allclose(packed[places], hidden, atol=1e-4)
    assert at == len(learnt)


def test_a_token_before_a_coordinate_is_told_where_its_object_lies(untrained: Training) -> None:
    lesson = LESSONS["scene"]()
    batch = untrained.writer.batch([lesson], ROOMY)
    assert torch.allclose(batch.covers.sum(-1), torch.ones(len(batch.covers)))
    # Four corners say two sides again, which are copied from the reply and not looked for.
    coordinates = sum(len(turn.objects) * min(turn.numbers, 4) for turn in lesson.turns)
    assert len(batch.looks) == coordinates


def test_at_a_request_s_end_it_is_told_what_is_meant(untrained: Training) -> None:
    lesson = lessons.scene_lesson(2**21, 40, EVEN, (3, 5), (192, 144))
    batch = untrained.writer.batch([lesson], Room(40, 2000))
    said = {tuple(one) for one in batch.asks.tolist()}
    first = batch.targets[0] != IGNORED
    first[1:] &= batch.targets[0, :-1] == IGNORED
    assert said == {(0, place) for place in first.nonzero().flatten().tolist()}
    # The longest turns come first; of those that are about nothing nothing is meant.
    nothing = sum(not turn.objects for turn in lesson.turns)
    assert 0 < nothing < 40
    assert (batch.meant.sum(-1) == 0).sum() == nothing
    names = batch.cells[0, :, 4:].sum(-1) > 0
    assert not batch.meant[:, ~names].any()


def test_words_that_name_something_end_with_a_token(untrained: Training) -> None:
    lesson = mark_lesson(2**21, 6, (3, 5), (192, 144))
    for turn in lesson.turns:
        tokens = untrained.writer._tokens(turn)
        assert len(tokens.named) == len(turn.named) > 0
        for place, named in zip(tokens.named, turn.named, strict=True):
            said = untrained.processor.tokenizer.decode(tokens.ids[: place + 1])
            assert said == turn.request[: named.end]
    batch = untrained.writer.batch([lesson], ROOMY)
    named = [one for turn in lesson.turns for one in turn.named]
    placed = [one for one in named if one.objects is not None]
    assert len(batch.asks) == len(lesson.turns) + len(placed)
    assert len(batch.options) == sum(one.right is not None for one in named)
    assert batch.right.sum() == len(lesson.turns)


def test_words_of_a_caption_look_at_what_they_describe(untrained: Training) -> None:
    lesson = pair_lesson(2**21, 1, (192, 144))
    batch = untrained.writer.batch([lesson], ROOMY)
    (turn,) = lesson.turns
    tokens = untrained.writer._tokens(turn)
    words = {"left": "", "right": ""}
    half = len(batch.visual) // 2
    for (_, place), cover in zip(batch.looks.tolist(), batch.covers, strict=True):
        side = "left" if cover[:half].any() else "right"
        assert cover[half:].any() == (side == "right")
        words[side] += untrained.processor.tokenizer.decode([int(batch.targets[0, place])])
    said = [turn.reply[one.start : one.end] for one in turn.spoken]
    for caption, word in zip(said, words.values(), strict=True):
        assert caption in word
    assert len(batch.looks) == len(tokens.objects) > 4


def test_of_a_visual_token_it_is_told_which_mark_lies_on_it(untrained: Training) -> None:
    lesson = mark_lesson(2**21, 3, (3, 5), (192, 144))
    batch = untrained.writer.batch([lesson], ROOMY)
    (mark, *_) = lesson.marks
    shapes, colours = batch.marks[0].split([len(MARK_SHAPES), len(MARK_COLOURS)], -1)
    there = shapes.any(-1).reshape(144 // TOKEN_SIDE, 192 // TOKEN_SIDE)
    rows, columns = mark.cover.nonzero()
    assert there[int(rows.mean()) // TOKEN_SIDE].any()
    assert there.sum() <= len({*zip(rows // TOKEN_SIDE, columns // TOKEN_SIDE, strict=True)})
    assert {MARK_SHAPES[i] for i in shapes.nonzero()[:, 1]} == {mark.shape}
    drawn = {one.colour for one in lesson.marks}
    assert {MARK_COLOURS[i] for i in colours.nonzero()[:, 1]} == drawn
    plain = untrained.writer.batch([LESSONS["scene"]()], ROOMY)
    assert not plain.marks.any()


def test_turns_that_do_not_fit_are_left_out(untrained: Training) -> None:
    lesson = LESSONS["scene"]()
    batch = untrained.writer.batch([lesson], Room(1, 2000))
    assert batch.ids.shape[1] < untrained.writer.batch([lesson], ROOMY).ids.shape[1]


# --- training -------------------------------------------------------------------------------------


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def plain(recipe: dict[str, Any]) -> Any:
    """A recipe as YAML has it: without tuples and enums."""
    return json.loads(json.dumps(recipe, default=lambda value: value.value))


@pytest.fixture(scope="module")
def recipe_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SMALL as a file."""
    path = tmp_path_factory.mktemp("recipe") / "small.yaml"
    path.write_text(yaml.safe_dump(plain(asdict(SMALL)), sort_keys=False))
    assert read_recipe(path) == SMALL
    return path


@pytest.fixture
def quick_validation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Validation over ten clips' first frames, with short replies."""
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    (tmp_path / "lmu").mkdir()
    few = ("FindIt_Scenes_mini_video_f1_xyxy_json",)
    monkeypatch.setattr(train, "validation", lambda asked: few)
    monkeypatch.setattr(train, "_LONGEST", 4)


def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(
    recipe_file: Path,
    quick_validation: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train.train(recipe_file, tmp_path / "whole", "cpu", report_every=2)
    stopped = Training(SMALL, "cpu")
    for _ in range(2):
        stopped.advance(stopped.batch())
    saving.save(stopped, tmp_path / "stopped")
    # A tokenizer that is made anew may be another one, once a prompt was reworded.
    monkeypatch.setattr(architecture, "build_tokenizer", None)
    (tmp_path / "stopped" / "curve.jsonl").write_text('{"step": 2}\n{"step": 3}\n')
    train.train(recipe_file, tmp_path / "stopped", "cpu", report_every=2)
    whole, other = (weights(tmp_path / name / "checkpoint") for name in ("whole", "stopped"))
    assert all(torch.equal(whole[name], other[name]) for name in whole)
    curve = (tmp_path / "stopped" / "curve.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in curve] == [2, 4]


def test_a_training_leaves_a_folder_that_says_how_it_came_about(
    recipe_file: Path, quick_validation: None, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    train.main(["--config", str(recipe_file), "--out", str(out), "--report-every", "2"])
    curve = [json.loads(line) for line in (out / "curve.jsonl").read_text().splitlines()]
    assert [line["step"] for line in curve] == [2, 4]
    (scored,) = (out / "validation.jsonl").read_text().splitlines()
    assert json.loads(scored).keys() == {"step", "Scenes_mini_video"}
    checkpoint = out / "checkpoint"
    assert {path.name for path in checkpoint.iterdir()} == {
        "README.md",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "processor_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    card = (checkpoint / "README.md").read_text()
    assert recipe_file.read_text().strip() in card
    assert f"| {curve[-1]['step']} | {curve[-1]['seconds']:.4g} |" in card
    with pytest.raises(ValueError, match="begun with another recipe"):
        train.main(["--out", str(out)])


def test_importing_the_host_does_not_stop_a_training() -> None:
    """``import vlmeval`` calls ``torch.set_grad_enabled(False)`` for the whole process."""
    training = Training(SMALL, "cpu")
    was = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        assert training.advance(training.batch())["norm"] > 0
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(was)


def test_the_losses_fall(untrained: Training) -> None:
    training = Training(replace(SMALL, warmup=5, stages=(replace(SMALL.stages[0], rows=4),)), "cpu")
    batch = training.batch()
    first = training.advance(batch)
    for _ in range(12):
        training.step = 1
        last = training.advance(batch)
    assert last["reply"] < first["reply"]
    assert last["cells"] < first["cells"]
    assert last["looks"] < first["looks"]
    assert last["meant"] < first["meant"]


def test_two_processes_share_a_step_s_scenes() -> None:
    whole, _ = train.lessons_of(SMALL, 3)
    parts = [train.lessons_of(SMALL, 3, rank, 2)[0] for rank in range(2)]
    assert [lesson.turns for lesson in whole] == [
        lesson.turns for pair in zip(*parts, strict=True) for lesson in pair
    ]


@pytest.mark.parametrize(
    ("right", "wrong"), [("warmup", "warm_up"), ("formats: {output", "formats: {out_put")]
)
def test_a_recipe_that_is_misspelt_is_refused(right: str, wrong: str, tmp_path: Path) -> None:
    path, text = tmp_path / "recipe.yaml", train.RECIPE.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    with pytest.raises(ValueError, match=rf"recipe\.yaml.*{wrong.split()[-1].lstrip('{')}"):
        read_recipe(path)


def test_orthogonal_makes_all_directions_alike() -> None:
    torch.manual_seed(0)
    for shape in ((20, 50), (50, 20)):
        sizes = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
        assert sizes.min() > 0.5
        assert sizes.max() < 1.4
