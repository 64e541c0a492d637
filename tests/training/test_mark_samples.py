"""Samples about marks and pairs: asked as the benchmarks ask, and right by what can be seen."""

from __future__ import annotations

import re
from collections import Counter

import pytest

pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from training import mark_samples, pairs  # noqa: E402
from training.mark_samples import MarkQuestions  # noqa: E402
from training.pairs import PLACES, described, scene_pair  # noqa: E402
from training.scenes import SPLITS, Scene, scene  # noqa: E402
from training.vp_questions.wording import ABSENT, NO, YES  # noqa: E402
from vlmeval_findit.benchmarks.selfretrieval import (  # noqa: E402
    ImagePair,
    read_captions,
)
from vlmeval_findit.benchmarks.selfretrieval import benchmark as pair_prompts  # noqa: E402
from vlmeval_findit.benchmarks.selfretrieval import parse as parse_pairs  # noqa: E402
from vlmeval_findit.benchmarks.vpbench import (  # noqa: E402
    QuestionKind,
    message,
    parse,
    read_letter,
)
from vlmeval_findit.data import SCENE_SIZES  # noqa: E402
from vlmeval_findit.protocol import (  # noqa: E402
    Reply,
    text,
)

FIRST = SPLITS["train"].start
SAMPLES = 60


@pytest.fixture(scope="module")
def asked() -> list[MarkQuestions]:
    sizes = [SCENE_SIZES[i % 3] for i in range(SAMPLES)]
    make = mark_samples.marked_questions
    return [make(FIRST + 100 * i, 8, (3, 5), size) for i, size in enumerate(sizes)]


@pytest.fixture(scope="module")
def counted() -> list[MarkQuestions]:
    """Samples whose images have several marks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mark_samples, "_SEVERAL", 1.0)
        seeds = range(FIRST, FIRST + 50 * SAMPLES, 50)
        actual = [mark_samples.marked_questions(seed, 12, (4, 5), (192, 144)) for seed in seeds]
    return [item for item in actual if item.posed[0].amount > 1]


# --- marks ----------------------------------------------------------------------------------------


def test_a_sample_asks_the_same_as_a_run() -> None:
    sample = mark_samples.mark_sample(FIRST, 8, (3, 5), (192, 144))
    queries = mark_samples.marked_questions(FIRST, 8, (3, 5), (192, 144)).queries
    question = parse("VPBench_Scenes_mini")
    assert len(queries) == len(sample.turns) == 8
    for row, turn in zip(queries, sample.turns, strict=True):
        assert message(row, question) == (*sample.opening, text(turn.request))
        assert read_letter(turn.reply, dict(row.options)) == row.answer == turn.reply
        assert turn.numbers == 0
    assert len({turn.request for turn in sample.turns}) > 4
    again = mark_samples.mark_sample(FIRST, 8, (3, 5), (192, 144))
    assert again.turns == sample.turns
    assert (again.images[0].pixels == sample.images[0].pixels).all()


def test_marks_cover_what_they_changed(asked: list[MarkQuestions]) -> None:
    for i, item in enumerate(asked):
        plain = (scene(FIRST + 100 * i + j, (3, 5), SCENE_SIZES[i % 3]) for j in range(100))
        same = next(s for s in plain if s.things == item.shown.things)
        changed = (same.pixels != item.shown.pixels).any(axis=2)
        covered = np.any([mark.cover for mark in item.marks], axis=0)
        assert 0 < changed.mean() < 0.4
        assert not (changed & ~covered).any()
        assert (changed & covered).sum() > 0.5 * covered.sum()
        assert {mark.shape for mark in item.marks} == {item.posed[0].slot.style.shape}


def test_a_question_asks_about_its_marked_objects(
    asked: list[MarkQuestions], counted: list[MarkQuestions]
) -> None:
    numbers = set()
    for item in (*asked, *counted):
        boxes = {thing.box for thing in item.shown.things}
        for posed, query in zip(item.posed, item.queries, strict=True):
            objects = mark_samples.turn(posed, query, item.shown).objects
            assert all(image == 0 and box in boxes for image, box in objects)
            if query.absent:
                assert objects == ()
            else:
                right = int(posed.right) if posed.right.isdigit() else posed.slot.marks
                assert len(objects) == right > 0
            numbers.add(len(objects))
    assert numbers == {0, 1, 2, 3, 4}


def test_options_name_what_lies_in_the_image(asked: list[MarkQuestions]) -> None:
    checked = set()
    for item in asked:
        for posed, query in zip(item.posed, item.queries, strict=True):
            turn = mark_samples.turn(posed, query, item.shown)
            kind = posed.slot.kind
            question, *options = turn.phrases
            assert turn.request[: question.end].endswith(posed.question)
            assert (question.objects, question.right) == (turn.objects, None)
            assert len(options) == len(query.options)
            for named in options:
                letter, _, words = turn.request[: named.end].rpartition("\n")[2].partition(". ")
                assert dict(query.options)[letter] == words
                assert named.right == (letter == query.answer)
                if named.objects is None:
                    assert words in {ABSENT, YES, NO} or words.isdigit()
                    continue
                places = {centre(box) for _, box in named.objects}
                requested = {centre(box) for _, box in turn.objects}
                if kind is QuestionKind.LOCALISATION:
                    ((_, (x1, y1, x2, y2)),) = named.objects
                    lie_in = any(x1 <= x < x2 and y1 <= y < y2 for x, y in requested)
                    assert named.right == lie_in
                elif kind is QuestionKind.REFERENCE:
                    alike = {centre(t.box) for t in item.shown.things if t.look.shape == words}
                    assert places == alike
                    assert not named.right or requested <= places
                else:
                    assert places == (requested if named.right else set())
                checked.add(kind)
    assert checked == {QuestionKind.LOCALISATION, QuestionKind.REFERENCE, QuestionKind.EXISTENCE}


def centre(box: tuple[float, float, float, float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def test_everything_is_asked_and_letters_are_balanced(asked: list[MarkQuestions]) -> None:
    queries = [query for item in asked for query in item.queries]
    assert len(queries) > 7.5 * SAMPLES
    kinds = Counter(query.kind for query in queries)
    least = 0.12 * len(queries)
    assert all(kinds[kind] > least for kind in {*QuestionKind} - {QuestionKind.UNKNOWN})
    four = Counter(query.answer for query in queries if len(query.options) == 4)
    two = Counter(query.answer for query in queries if len(query.options) == 2)
    assert all(0.19 < four[letter] / four.total() < 0.31 for letter in "ABCD")
    assert 0.4 < two["A"] / two.total() < 0.6
    assert 0.08 < sum(query.absent for query in queries) / len(queries) < 0.25
    assert len({item.posed[0].slot.style.shape for item in asked}) >= 7
    posed = (p for item in asked for p in item.posed)
    counts = {p.right for p in posed if p.slot.kind is QuestionKind.COUNTING}
    assert counts == {"1", "2", "3", "4", ABSENT}


def test_marks_of_another_colour_are_asked_for_too(counted: list[MarkQuestions]) -> None:
    several = 0
    for item in counted:
        asked_for = " ".join(query.question for query in item.queries if not query.absent)
        several += len(set(re.findall("black|red|green|blue", asked_for))) > 1
    assert several > 3


# --- pairs ----------------------------------------------------------------------------------------


def test_captions_of_a_pair_are_true_of_their_image_only() -> None:
    for seed in range(FIRST, FIRST + 50):
        size = SCENE_SIZES[seed % len(SCENE_SIZES)]
        sample = pairs.pair_sample(seed, size)
        (turn,) = sample.turns
        captions = read_captions(Reply(0, turn.reply))
        texts = [captions.left.caption, captions.right.caption]
        assert [(image.width, image.height) for image in sample.images] == [size, size]
        assert [turn.reply[span.start : span.end] for span in turn.reply_spans] == texts
        assert [span.which for span in turn.reply_spans] == [0, 1]
        for at, (caption, (image, box)) in enumerate(zip(texts, turn.objects, strict=True)):
            shown = sample.images[at]
            other = sample.images[1 - at]
            assert image == at
            assert box in {thing.box for thing in shown.things}
            assert is_true(caption or "", shown), caption
            assert not is_true(caption or "", other), caption


def is_true(caption: str, shown: Scene) -> bool:
    """Return whether a scene has an object of which every word of a caption is true."""
    where = next((w for row in PLACES for w in row if caption.endswith(f" {w}")), "")
    words = {*caption.removesuffix(where).split()} - {"a", "an"}
    return any(
        told.endswith(f" {where}".rstrip()) and words <= {*told.split()}
        for told in (described(thing, shown) for thing in shown.things)
    )


def test_captions_say_no_more_than_they_must() -> None:
    many = [len(item.split()) for s in range(60) for item in pairs.shortest_captions(scene_pair(s))]
    assert min(many) == 3
    assert sum(many) / len(many) < 5


def test_a_pair_is_asked_as_its_table_asks_it() -> None:
    sample = pairs.pair_sample(FIRST, (192, 144))
    question = parse_pairs("SelfRetrieval_Scenes_mini")
    requested = pair_prompts.message(ImagePair(7, "7", ("0", "1")), question)
    assert (*sample.opening, text(sample.turns[0].request)) == requested
