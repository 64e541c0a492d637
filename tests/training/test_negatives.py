"""Negatives: FindIt-Nano is taught to say that nothing is there, in the format asked for."""

from __future__ import annotations

import re

import numpy as np
import pytest
from grids import grid

pytest.importorskip("cv2", reason="training scenes have marks")

from training import negative_words
from training.negative_images import NEGATIVE_SHOT_SIZES, NEGATIVE_SIZES, negative_image
from training.negative_samples import (
    negative_clip_sample,
    negative_sample,
    negative_shot_sample,
    nothing,
)
from training.questions import RELATIONS
from training.samples import UNIT_ROWS, Sample, Shares, Units
from vlmeval_findit.benchmarks.findit import DATASETS, read_table
from vlmeval_findit.boxes import read
from vlmeval_findit.data import COLOURS, SHAPES, TEXTURES, Rng, demo_tables
from vlmeval_findit.protocol import PartKind
from vlmeval_findit.storage import shipped_table

SHARES = Shares(
    units=Units.THOUSANDTHS,
    representation={"xyxy": 3, "cxcywh": 1, "all": 1, "unconstrained": 1},
    output={"json": 3, "text": 1},
    key={"bbox_2d": 2, "class_name": 1},
    structure={"per_box": 2, "nested": 1, "decomposed": 1},
    task={"detection": 1},
)
TRAIN = 2**21
TABLES = ("Scenes", "Scenes_refexp", "Scenes_described", "Scenes_insdet", "Scenes_video")


# --- replies --------------------------------------------------------------------------------------


def test_an_adherent_reply_may_hold_no_box() -> None:
    """Over frames only a nested reply can: any other that adheres has a box, without extent."""
    variants = list(grid(DATASETS[name] for name in TABLES))
    formats = {row.reads(v.reply) for row in UNIT_ROWS.values() for v in variants}
    assert {reply_format.frames for reply_format in formats} == set(range(1, 9))
    for reply_format in formats:
        reading = read(nothing(reply_format), reply_format)
        assert reading.reason is None, reply_format
        can = reply_format.frames == 1 or reply_format.structure == "nested"
        assert reading.boxes == (() if can else ((0.0, 0.0, 0.0, 0.0),))


def test_training_replies_hold_exactly_what_is_there() -> None:
    mixed = 0
    for seed in range(TRAIN, TRAIN + 60):
        sample = negative_sample(seed, 6, SHARES, NEGATIVE_SIZES[seed % len(NEGATIVE_SIZES)])
        (shown,) = sample.images
        for turn in sample.turns:
            assert turn.reply == "[]" or turn.objects
            if not turn.objects:
                continue
            mixed += 1
            asked = _labels(turn.request)
            there = [t for t in shown.things if t.look.shape in asked]
            assert sorted(box for _, box in turn.objects) == sorted(t.box for t in there)
            assert any(name not in SHAPES for name in asked)
            assert {t.look.shape for t in there} == {s for s in SHAPES if f'{s}"' in turn.reply} | {
                s for s in SHAPES if re.search(rf"^{s}: ", turn.reply, re.MULTILINE)
            }
            assert not any(f'"{name}"' in turn.reply for name in {*asked} - {*SHAPES})
    assert mixed > 20


def test_no_known_object_is_left_out() -> None:
    samples = [negative_sample(TRAIN + s, 6, SHARES, (168, 168)) for s in range(40)]
    samples += [negative_clip_sample(TRAIN + s, 8, SHARES, 2, (168, 168)) for s in range(30)]
    known = 0
    for sample in samples:
        there = {thing.look.shape for shown in sample.images for thing in shown.things}
        for turn in sample.turns:
            if "each of these labels" in turn.request:
                assert bool(there & {*_labels(turn.request)}) == bool(turn.objects)
                continue
            named = turn.request.split('"')[1].split()[-1]
            known += bool(there) and named in SHAPES
            assert named not in there
            assert not turn.objects
    assert known > 3


def test_every_family_is_asked_with_one_label_to_twelve() -> None:
    turns = [t for s in range(80) for t in negative_sample(TRAIN + s, 6, SHARES, (192, 120)).turns]
    reported = [t.request for t in turns]
    for begins in ('Find every instance of "', "Find the one object", "Find every object"):
        assert any(request.startswith(begins) for request in reported)
    counts = {len(_labels(r)) for r in reported if "each of these labels" in r}
    assert counts == {*range(1, 13)}


def _labels(request: str) -> list[str]:
    actual = re.search(r"these labels in the image: (.*?)\. Return", request)
    assert actual is not None
    return actual[1].split(", ")


# --- clips and shots ------------------------------------------------------------------------------


def test_clips_have_their_frames_and_their_replies_no_box() -> None:
    for seed in range(TRAIN, TRAIN + 16):
        frames = 1 + seed % 8
        sample = negative_clip_sample(seed, 2, SHARES, frames, (168, 144))
        assert [(s.width, s.height) for s in sample.images] == [(168, 144)] * frames
        assert _shown(sample) == frames
        assert not any(turn.objects for turn in sample.turns)
    seeds = range(TRAIN, TRAIN + 9)
    clips = [negative_clip_sample(seed, 1, SHARES, 8, (144, 96)).images for seed in seeds]
    wild = [c for c in clips if not any(frame.things for frame in c)]
    assert len(wild) > 3
    assert all((c[0].pixels != c[-1].pixels).any() for c in wild), "a camera moves over a wild clip"


def test_reference_shots_are_of_nothing_on_the_image() -> None:
    for seed in range(TRAIN, TRAIN + 20):
        shots = [(96, 96)] if seed % 2 else [(96, 48), (168, 48)]
        sample = negative_shot_sample(seed, 3, SHARES, (168, 144), shots)
        *references, shown = sample.images
        assert [(s.width, s.height) for s in references] == shots
        assert _shown(sample) == len(shots) + 1
        looks = {thing.look for thing in shown.things}
        assert not looks & {thing.look for shot in references for thing in shot.things}
        assert {turn.reply for turn in sample.turns} == {"[]"}


def _shown(sample: Sample) -> int:
    return sum(part.kind is PartKind.IMAGE for part in sample.opening)


# --- images and words ---------------------------------------------------------------------------


def test_images_are_whole_visual_tokens_within_what_the_processor_leaves() -> None:
    for width, height in (*NEGATIVE_SIZES, *NEGATIVE_SHOT_SIZES):
        assert (width % 24, height % 24) == (0, 0)
        assert 48 * 48 <= width * height <= 168 * 168
        pixels = negative_image(Rng(1), (width, height))
        assert (pixels.shape, pixels.dtype) == ((height, width, 3), np.uint8)


def test_a_seed_is_a_sample() -> None:
    for make in (
        lambda seed: negative_sample(seed, 4, SHARES, (216, 120)),
        lambda seed: negative_clip_sample(seed, 2, SHARES, 4, (168, 144)),
        lambda seed: negative_shot_sample(seed, 2, SHARES, (168, 144)),
    ):
        first = make(TRAIN)
        again = make(TRAIN)
        other = make(TRAIN + 1)
        assert (first.opening, first.turns) == (again.opening, again.turns)
        for item, same in zip(first.images, again.images, strict=True):
            assert (item.pixels == same.pixels).all()
            assert item.things == same.things
        pairs = zip(first.images, other.images, strict=True)
        assert any((a.pixels != b.pixels).any() for a, b in pairs)


# Words of the photographs' questions that any question may use
PLAIN = {"the", "of", "on", "in", "to", "that", "is", "left", "below"}


def test_words_of_the_photographs_are_held_out() -> None:
    held_out: set[str] = set()
    for name in demo_tables():
        for query in read_table(shipped_table(name)):
            held_out.update(query.label.replace(",", " ").split())
    assert {"face", "helmet", "dog", "ribbons", "tripod"} <= held_out
    held_out -= PLAIN | {*COLOURS, *SHAPES, *TEXTURES, *" ".join(RELATIONS).split()}
    lists = (negative_words.NOUNS, negative_words.ADJECTIVES, negative_words.RELATED_BY)
    for word in " ".join(" ".join(names) for names in lists).split():
        assert not {word, f"{word}s"} & held_out, word


def test_unknown_words_are_many_and_expressions_have_two_to_twelve() -> None:
    nouns = negative_words.NOUNS
    assert len(set(nouns)) == len(nouns) >= 300
    assert not {*nouns} & {*SHAPES, "shape"}
    rng = Rng(3)
    expressions = [negative_words.expression(rng) for _ in range(500)]
    assert {len(words.split()) for words in expressions} == set(range(2, 13))
    assert not any(set(',:[]"') & set(words) for words in expressions)
