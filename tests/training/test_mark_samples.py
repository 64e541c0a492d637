"""Samples about marks and pairs: asked as the benchmarks ask, and right by what can be seen."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from training import mark_samples, pair_samples  # noqa: E402
from training.mark_samples import MarkQuestions  # noqa: E402
from training.pairs import PLACES, described, scene_pair  # noqa: E402
from training.samples import Shares, Units, scene_sample  # noqa: E402
from training.scenes import SPLITS, Scene, scene  # noqa: E402
from training.vp_questions.wording import ABSENT, NO, YES  # noqa: E402
from vlmeval_findit.benchmarks.selfretrieval import benchmark as pair_prompts  # noqa: E402
from vlmeval_findit.benchmarks.selfretrieval import captions as caption_reading  # noqa: E402
from vlmeval_findit.benchmarks.selfretrieval.image_pairs import ImagePair  # noqa: E402
from vlmeval_findit.benchmarks.selfretrieval.image_pairs import parse as parse_pairs  # noqa: E402
from vlmeval_findit.benchmarks.vpbench.benchmark import scored_row  # noqa: E402
from vlmeval_findit.benchmarks.vpbench.letter_reading import read  # noqa: E402
from vlmeval_findit.benchmarks.vpbench.question_tables import (  # noqa: E402
    message,
    parse,
    read_table,
    write_table,
)
from vlmeval_findit.benchmarks.vpbench.vp_query import QuestionKind  # noqa: E402
from vlmeval_findit.core.question import text  # noqa: E402
from vlmeval_findit.core.replies import Reply  # noqa: E402
from vlmeval_findit.data.rendered.scene import SIZES  # noqa: E402

FIRST = SPLITS["train"].start
SAMPLES = 60


@pytest.fixture(scope="module")
def asked() -> list[MarkQuestions]:
    return [
        mark_samples.marked_questions(FIRST + 100 * i, 8, (3, 5), SIZES[i % 3])
        for i in range(SAMPLES)
    ]


@pytest.fixture(scope="module")
def counted() -> list[MarkQuestions]:
    """Samples whose images have several marks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mark_samples, "_SEVERAL", 1.0)
        seeds = range(FIRST, FIRST + 50 * SAMPLES, 50)
        actual = [mark_samples.marked_questions(seed, 12, (4, 5), (192, 144)) for seed in seeds]
    return [item for item in actual if item.posed[0].amount > 1]


# --- marks ----------------------------------------------------------------------------------------


def test_a_sample_asks_what_a_run_of_the_same_rows_would_ask(tmp_path: Path) -> None:
    sample = mark_samples.mark_sample(FIRST, 8, (3, 5), (192, 144))
    queries = mark_samples.marked_questions(FIRST, 8, (3, 5), (192, 144)).queries
    numbered = [replace(query, index=i) for i, query in enumerate(queries)]
    table = write_table(tmp_path, "VPBench_Lesson", numbered, {"source": "a sample"})
    rows = read_table(table.path)
    question = parse("VPBench_Scenes_mini")
    assert len(rows) == len(sample.turns) == 8
    for row, turn in zip(rows, sample.turns, strict=True):
        assert message(row, question) == (*sample.opening, text(turn.request))
        assert read(turn.reply, dict(row.options)) == row.answer == turn.reply
        assert turn.numbers == 0
    assert len({turn.request for turn in sample.turns}) > 4


def test_a_sample_opens_as_a_scene_s_does() -> None:
    even = Shares(Units.THOUSANDTHS, {"xyxy": 1}, {"text": 1}, {}, {}, {"detection": 1})
    plain = scene_sample(FIRST, 1, even, (3, 5), (168, 168))
    sample = mark_samples.mark_sample(FIRST, 3, (3, 5), (168, 168))
    assert sample.opening == plain.opening
    (shown,) = sample.images
    assert (shown.width, shown.height) == (168, 168)


def test_samples_are_the_same_each_time_and_their_things_those_of_a_scene(
    asked: list[MarkQuestions],
) -> None:
    first = asked[0]
    again = mark_samples.marked_questions(FIRST, 8, (3, 5), SIZES[0])
    assert again.queries == first.queries
    assert (again.shown.pixels == first.shown.pixels).all()
    plain = [scene(FIRST + i, (3, 5), SIZES[0]) for i in range(8)]
    (same,) = [item for item in plain if item.things == first.shown.things]
    changed = (same.pixels != first.shown.pixels).any(axis=2).mean()
    assert 0 < changed < 0.4


def test_marks_are_said_to_cover_what_they_changed(asked: list[MarkQuestions]) -> None:
    changed_somewhere = 0
    for i, item in enumerate(asked):
        plain = (scene(FIRST + 100 * i + j, (3, 5), SIZES[i % 3]) for j in range(100))
        same = next(s for s in plain if s.things == item.shown.things)
        changed = (same.pixels != item.shown.pixels).any(axis=2)
        covered = np.any([mark.cover for mark in item.marks], axis=0)
        assert not (changed & ~covered).any()
        assert (changed & covered).sum() > 0.5 * covered.sum()
        assert {mark.shape for mark in item.marks} == {item.posed[0].slot.style.shape}
        changed_somewhere += int(changed.any())
    assert changed_somewhere == SAMPLES


def test_a_question_is_about_the_marked_objects_that_it_asks_for(
    asked: list[MarkQuestions], counted: list[MarkQuestions]
) -> None:
    checked = Counter[int]()
    for item in (*asked, *counted):
        for posed, query in zip(item.posed, item.queries, strict=True):
            objects = mark_samples.turn(posed, query, item.shown).objects
            boxes = {thing.box for thing in item.shown.things}
            assert all(image == 0 and box in boxes for image, box in objects)
            if query.absent:
                assert objects == ()
            elif posed.right.isdigit():
                assert len(objects) == int(posed.right)
            else:
                assert len(objects) == posed.slot.marks > 0
            checked[len(objects)] += 1
    assert {*checked} == {0, 1, 2, 3, 4}


def test_options_name_what_lies_in_the_image(asked: list[MarkQuestions]) -> None:
    checked = Counter[QuestionKind]()
    for item in asked:
        for posed, query in zip(item.posed, item.queries, strict=True):
            turn = mark_samples.turn(posed, query, item.shown)
            question, *options = turn.phrases
            assert turn.request[: question.end].endswith(posed.question)
            assert (question.objects, question.right) == (turn.objects, None)
            assert len(options) == len(query.options)
            for named in options:
                reported = turn.request[: named.end].rpartition("\n")[2]
                letter, _, words = reported.partition(". ")
                assert dict(query.options)[letter] == words
                assert named.right == (letter == query.answer)
                if named.objects is None:
                    assert words in {ABSENT, YES, NO} or words.isdigit()
                    continue
                places = {centre(box) for _, box in named.objects}
                requested = {centre(box) for _, box in turn.objects}
                if posed.slot.kind is QuestionKind.LOCALISATION:
                    ((_, field),) = named.objects
                    assert named.right == any(lies_in(at, field) for at in requested)
                elif posed.slot.kind is QuestionKind.REFERENCE:
                    alike = {centre(t.box) for t in item.shown.things if t.look.shape == words}
                    assert places == alike
                    assert not named.right or requested <= places
                else:
                    assert places == (requested if named.right else set())
                checked[posed.slot.kind] += 1
    assert {*checked} == {QuestionKind.LOCALISATION, QuestionKind.REFERENCE, QuestionKind.EXISTENCE}


def centre(box: tuple[float, float, float, float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def lies_in(point: tuple[float, float], box: tuple[float, float, float, float]) -> bool:
    return box[0] <= point[0] < box[2] and box[1] <= point[1] < box[3]


def test_everything_is_asked_and_letters_are_balanced(asked: list[MarkQuestions]) -> None:
    queries = [query for item in asked for query in item.queries]
    assert len(queries) > 7.5 * SAMPLES
    kinds = Counter(query.kind for query in queries)
    assert all(
        kinds[kind] > 0.12 * len(queries)
        for kind in QuestionKind
        if kind is not QuestionKind.UNKNOWN
    )
    four = Counter(query.answer for query in queries if len(query.options) == 4)
    two = Counter(query.answer for query in queries if len(query.options) == 2)
    assert all(0.19 < four[letter] / four.total() < 0.31 for letter in "ABCD")
    assert {*two} == {*"AB"}
    assert 0.4 < two["A"] / two.total() < 0.6
    assert 0.08 < sum(query.absent for query in queries) / len(queries) < 0.25
    assert len({item.posed[0].slot.style.shape for item in asked}) >= 7
    counted = {
        p.right for item in asked for p in item.posed if p.slot.kind is QuestionKind.COUNTING
    }
    assert counted == {"1", "2", "3", "4", ABSENT}


def test_marks_beside_those_that_are_counted_are_asked_for_too(
    counted: list[MarkQuestions],
) -> None:
    beside = [item for item in counted if len(colours_asked_for(item)) > 1]
    assert len(beside) > 3


def colours_asked_for(item: MarkQuestions) -> set[str]:
    """Return the colours in questions about marks that are drawn."""
    return {
        actual[0]
        for query in item.queries
        if not query.absent and (actual := re.search("black|red|green|blue", query.question))
    }


def test_right_letters_are_read_and_score_as_right(asked: list[MarkQuestions]) -> None:
    for query in (query for item in asked for query in item.queries):
        row = scored_row(query, Reply(query.index, query.answer))
        assert (row.sums["right"], row.sums["right_as_published"]) == (1, 1)


# --- pairs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_captions_of_a_pair_are_true_of_their_own_image_only(size: tuple[int, int]) -> None:
    for seed in range(FIRST, FIRST + 25):
        sample = pair_samples.pair_sample(seed, size)
        (turn,) = sample.turns
        reported = caption_reading.captions_in(Reply(0, turn.reply))
        left, right = sample.images
        assert {(s.width, s.height) for s in (left, right)} == {size}
        (item, box), (two, other_box) = turn.objects
        assert (item, two, turn.numbers) == (0, 1, 0)
        assert [turn.reply[item.start : item.end] for item in turn.reply_spans] == [
            reported.left.caption,
            reported.right.caption,
        ]
        assert [item.which for item in turn.reply_spans] == [0, 1]
        assert box in {t.box for t in left.things}
        assert other_box in {t.box for t in right.things}
        for described_scene, other, item in (
            (left, right, reported.left),
            (right, left, reported.right),
        ):
            assert item.caption is not None
            first = described(described_scene.things[0], described_scene)
            assert is_true(item.caption, described_scene), (item.caption, first)
            assert not is_true(item.caption, other), item.caption


def is_true(caption: str, shown: Scene) -> bool:
    """Return whether a scene has an object of which every word of a caption is true."""
    where = next((w for row in PLACES for w in row if caption.endswith(f" {w}")), "")
    words = {*caption.removesuffix(where).split()} - {"a", "an"}
    return any(
        told.endswith(f" {where}".rstrip()) and words <= {*told.split()}
        for told in (described(thing, shown) for thing in shown.things)
    )


def test_captions_say_no_more_than_they_must() -> None:
    many = [len(item.split()) for s in range(60) for item in pair_samples.captions(scene_pair(s))]
    assert min(many) == 3
    assert sum(many) / len(many) < 5


def test_a_pair_is_asked_as_its_table_asks_it() -> None:
    sample = pair_samples.pair_sample(FIRST, (192, 144))
    question = parse_pairs("SelfRetrieval_Scenes_mini")
    requested = pair_prompts.message(ImagePair(7, "7", ("0", "1")), question)
    assert (*sample.opening, text(sample.turns[0].request)) == requested


def test_the_samples_need_no_torch() -> None:
    code = (
        "import sys\nfrom training import mark_samples, pair_samples\n"
        f"mark_samples.mark_sample({FIRST}, 4, (3, 5), (192, 144))\n"
        f"pair_samples.pair_sample({FIRST}, (192, 144))\n"
        "assert not {'torch', 'vlmeval', 'transformers'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
