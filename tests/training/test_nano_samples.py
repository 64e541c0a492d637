"""Samples of FindIt-Nano and their batches: what is taught is what the benchmark asks and reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from few_fast import few_fast
from grids import grid
from late import Late
from small_recipes import NANO, small_recipe

from training import questions as asking
from training import samples
from training.mark_samples import mark_sample
from training.pairs import pair_sample
from training.recipe import RECIPES
from training.samples import UNIT_ROWS, Sample, Shares, Units
from training.scenes import SPLITS, clip, scene
from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.boxes import reader
from vlmeval_findit.data import Stream, rng_of
from vlmeval_findit.models import Bounds, ImageSet, MessageEncoder
from vlmeval_findit.protocol import Message, PartKind, image, text
from vlmeval_findit.storage import png

if TYPE_CHECKING:
    from training.nano.batches import RowLimit
    from training.nano.learner import NanoLearner, NanoRecipe

torch = Late("torch")
architecture = Late("training.nano.architecture")
batches = Late("training.nano.batches")
learner = Late("training.nano.learner")


@pytest.fixture(scope="module", autouse=True)
def _needed() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def recipe() -> NanoRecipe:
    return learner.read_nano_recipe(RECIPES / f"{NANO}.yaml")


@pytest.fixture(scope="module")
def even(recipe: NanoRecipe) -> Shares:
    """Return shares in which each format is as frequent as any other."""
    return Shares(
        units=Units.THOUSANDTHS,
        representation=dict.fromkeys(recipe.shares.representation, 1),
        output={"text": 1, "json": 2},
        key=dict.fromkeys(recipe.shares.key, 1),
        structure=dict.fromkeys(recipe.shares.structure, 1),
        task={"detection": 1, "multilabel": 1, "refexp": 1, "described": 1},
    )


@pytest.fixture(scope="module")
def roomy() -> RowLimit:
    return batches.RowLimit(20, 2000)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> NanoLearner:
    path = small_recipe(NANO, tmp_path_factory.mktemp("recipe"))
    return learner.NanoLearner(learner.read_nano_recipe(path))


# --- samples --------------------------------------------------------------------------------------

ASKED = {
    "Scenes": asking.detection,
    "Scenes_multilabel": asking.several,
    "Scenes_refexp": asking.referring,
    "Scenes_described": asking.described,
}


@pytest.mark.parametrize(("units", "step"), [(Units.THOUSANDTHS, 10), (Units.PIXELS, 1)])
def test_every_reply_that_is_taught_reads_as_its_boxes(units: Units, step: int) -> None:
    shown = scene(11)
    width, height = shown.width, shown.height
    across, down = (1, 1) if units is Units.PIXELS else (width / 1000, height / 1000)
    # Every variant of the rendered image tables, but those of the centre experiment
    tables = {*ASKED, "Scenes_insdet"}
    for variant in (v for v in grid() if v.table in tables and v.centre is None):
        rng = rng_of(Stream.QUESTION, 11)
        if variant.table == "Scenes_insdet":
            actual = asking.instance(rng, shown)
            assert actual is not None
            asked = actual[0]
        else:
            asked = ASKED[variant.table](rng, shown)
        assert asked is not None
        turn = samples.turn_of(asked, variant, shown, [0] * len(asked.boxes), units)
        reading = reader(UNIT_ROWS[units].reads(variant.reply))(turn.reply)
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
    turn = samples.turn_of(asked, variant, frames[0], places, Units.THOUSANDTHS)
    reading = reader(UNIT_ROWS[Units.THOUSANDTHS].reads(variant.reply))(turn.reply)
    assert reading.reason is None
    assert sorted(reading.frames) == sorted(places)
    assert [image for image, _ in turn.objects] == list(reading.frames)


def test_formats_are_drawn_by_their_shares(recipe: NanoRecipe) -> None:
    rng = rng_of(Stream.BATCH, 0)
    drawn = [samples.draw_variant(rng, recipe.shares, "Scenes").name for _ in range(2000)]
    assert 0.35 < drawn.count("FindIt_Scenes_xyxy_json_bbox_2d") / len(drawn) < 0.5
    assert len({*drawn}) > 30
    seeds = [samples.train_seed(1, step, row) for step in range(200) for row in range(4)]
    assert all(seed in SPLITS["train"] for seed in seeds)
    assert len({*seeds}) == len(seeds)
    whole, _ = learner.samples_of(recipe, 300)
    parts = [learner.samples_of(recipe, 300, rank, 2)[0] for rank in range(2)]
    shared = [sample for pair in zip(*parts, strict=True) for sample in pair]
    assert [item.turns for item in whole] == [item.turns for item in shared], "of two processes"


# --- batches --------------------------------------------------------------------------------------


def message_of(sample: Sample, request: str, folder: Path) -> Message:
    """Return a turn as the benchmark would ask it, the sample's images as files."""
    parts, shown = [], iter(sample.images)
    for number, part in enumerate(sample.opening):
        if part.kind is PartKind.IMAGE:
            path = folder / f"{number}.png"
            path.write_bytes(png(next(shown).pixels))
            part = image(str(path))
        parts.append(part)
    return (*parts, text(request))


SAMPLES = {
    "scene": lambda even: samples.scene_sample(2**21, 4, even, (3, 5), (192, 144)),
    "instance": lambda even: samples.instance_sample(2**21, 3, even, (3, 5), (144, 192)),
    "clip": lambda even: samples.clip_sample(2**21, 2, even, 3, (1, 3), (168, 168)),
}


@pytest.mark.parametrize("kind", few_fast(SAMPLES, 1))
def test_turns_sharing_images_are_taught_independently(
    kind: str, untrained: NanoLearner, even: Shares, roomy: RowLimit, tmp_path: Path
) -> None:
    """The tokens and the scores of a packed row are those of the package's encoder."""
    sample = SAMPLES[kind](even)
    batch = untrained.writer.batch([sample], roomy)
    model = untrained.model.eval()
    shapes = (untrained.recipe.text, untrained.recipe.vision)
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
    family = UNIT_ROWS[Units.THOUSANDTHS].local
    assert family is not None
    encoder = MessageEncoder(untrained.processor, family)
    learnt = [i for i in range(batch.ids.shape[1]) if batch.targets[0, i] != batches.IGNORED]
    at = 0
    # A row has its turns in the order of their lengths.
    for turn in sorted(sample.turns, key=lambda turn: -len(untrained.writer._tokens(turn).ids)):
        message = message_of(sample, turn.request, tmp_path)
        alone = encoder.encode(message, ImageSet(Bounds()))
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


def test_training_tokens_name_their_object_and_place(untrained: NanoLearner, even: Shares) -> None:
    sample = samples.scene_sample(2**21, 40, even, (3, 5), (192, 144))
    batch = untrained.writer.batch([sample], batches.RowLimit(40, 2000))
    # Turns that do not fit are left out.
    short = untrained.writer.batch([sample], batches.RowLimit(1, 2000))
    assert short.ids.shape[1] < batch.ids.shape[1]
    assert torch.allclose(batch.pointer_maps.sum(-1), torch.ones(len(batch.pointer_maps)))
    # Four corners say two sides again, which are copied from the reply and not looked for.
    coordinates = sum(len(turn.objects) * min(turn.numbers, 4) for turn in sample.turns)
    assert len(batch.pointers) == coordinates

    ends = {tuple(item) for item in batch.phrases.tolist()}
    first = batch.targets[0] != batches.IGNORED
    first[1:] &= batch.targets[0, :-1] == batches.IGNORED
    assert ends == {(0, place) for place in first.nonzero().flatten().tolist()}
    # Of turns that are about nothing nothing is meant.
    nothing = sum(not turn.objects for turn in sample.turns)
    assert 0 < nothing < 40
    assert (batch.phrase_maps.sum(-1) == 0).sum() == nothing
    names = batch.cells[0, :, 4:].sum(-1) > 0
    assert not batch.phrase_maps[:, ~names].any()


def test_phrases_are_taught_their_marks(
    untrained: NanoLearner, even: Shares, roomy: RowLimit
) -> None:
    sample = mark_sample(2**21, 6, (3, 5), (192, 144))
    for turn in sample.turns:
        tokens = untrained.writer._tokens(turn)
        assert len(tokens.phrases) == len(turn.phrases) > 0
        for place, named in zip(tokens.phrases, turn.phrases, strict=True):
            reported = untrained.processor.tokenizer.decode(tokens.ids[: place + 1])
            assert reported == turn.request[: named.end]
    batch = untrained.writer.batch([sample], roomy)
    named = [item for turn in sample.turns for item in turn.phrases]
    placed = [item for item in named if item.objects is not None]
    assert len(batch.phrases) == len(sample.turns) + len(placed)
    assert len(batch.options) == sum(item.right is not None for item in named)
    assert batch.options_right.sum() == len(sample.turns)

    (mark, *_) = sample.marks
    counts = [len(batches.MARK_SHAPES), len(batches.MARK_COLOURS)]
    shapes, colours = batch.marks[0].split(counts, -1)
    side = architecture.TOKEN_SIDE
    there = shapes.any(-1).reshape(144 // side, 192 // side)
    rows, columns = mark.cover.nonzero()
    assert there[int(rows.mean()) // side].any()
    assert there.sum() <= len({*zip(rows // side, columns // side, strict=True)})
    assert {batches.MARK_SHAPES[i] for i in shapes.nonzero()[:, 1]} == {mark.shape}
    drawn = {item.colour for item in sample.marks}
    assert {batches.MARK_COLOURS[i] for i in colours.nonzero()[:, 1]} == drawn
    assert not untrained.writer.batch([SAMPLES["scene"](even)], roomy).marks.any()


def test_words_of_a_caption_look_at_what_they_describe(
    untrained: NanoLearner, roomy: RowLimit
) -> None:
    sample = pair_sample(2**21, (192, 144))
    batch = untrained.writer.batch([sample], roomy)
    (turn,) = sample.turns
    tokens = untrained.writer._tokens(turn)
    words = {"left": "", "right": ""}
    half = len(batch.visual) // 2
    for (_, place), cover in zip(batch.pointers.tolist(), batch.pointer_maps, strict=True):
        side = "left" if cover[:half].any() else "right"
        assert cover[half:].any() == (side == "right")
        words[side] += untrained.processor.tokenizer.decode([int(batch.targets[0, place])])
    reported = [turn.reply[item.start : item.end] for item in turn.reply_spans]
    for caption, word in zip(reported, words.values(), strict=True):
        assert caption in word
    assert len(batch.pointers) == len(tokens.objects) > 4
