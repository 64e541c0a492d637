from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from vlmeval_findit.data.demo import build

cv2 = pytest.importorskip("cv2", reason="the classical detector needs opencv-python")

from vlmeval_findit.benchmarks.findit import detector  # noqa: E402
from vlmeval_findit.benchmarks.findit.detector import Candidate, Pixels  # noqa: E402

needs_cascades = pytest.mark.skipif(
    not (hasattr(cv2, "CascadeClassifier") and hasattr(cv2, "HOGDescriptor")),
    reason="this OpenCV has no cascades: needs opencv-python<5",
)
needs_photos = pytest.mark.skipif(
    importlib.util.find_spec("skimage") is None, reason="not installed: scikit-image"
)

PHOTOS = build.load_photos(build.load_annotations())


def photo(name: str) -> Pixels:
    return build.read_photo(PHOTOS[name])


def words(text: str) -> list[str]:
    return [word for word, _ in detector.find_words(text)]


def disc(size: int, centre: tuple[int, int], radius: int) -> Pixels:
    image = np.full((size, size, 3), 40, dtype=np.uint8)
    return np.asarray(cv2.circle(image, centre, radius, (220, 220, 220), -1))


# --- words --------------------------------------------------------------------------------------


def test_words_come_in_order_of_appearance_and_once_per_concept() -> None:
    assert words("Find the Eyes of the FACE, and every eye.") == ["eyes", "face"]


def test_only_whole_words_count() -> None:
    assert words("surface, category, coinage, ballad") == []


def test_the_longest_entry_wins() -> None:
    assert words("the license plate") == ["license plate"]
    assert words("the plate") == ["plate"]


def test_no_word_belongs_to_two_concepts() -> None:
    entries = [word for concept in detector.VOCABULARY for word in concept.words]
    assert len(entries) == len(set(entries))
    assert all(word == word.lower() for word in entries)


# --- boxes --------------------------------------------------------------------------------------


def test_iou() -> None:
    assert detector.iou((0, 0, 10, 10), (0, 0, 10, 10)) == 1
    assert detector.iou((0, 0, 10, 10), (5, 0, 15, 10)) == pytest.approx(1 / 3)
    assert detector.iou((0, 0, 10, 10), (10, 0, 20, 10)) == 0


def test_suppression_keeps_the_best_of_overlapping_boxes() -> None:
    good = Candidate((0, 0, 10, 10), 2.0)
    worse = Candidate((1, 0, 11, 10), 1.0)
    apart = Candidate((30, 0, 40, 10), 0.5)
    assert detector.suppress([apart, worse, good]) == [good, apart]
    assert detector.suppress([]) == []


def test_suppression_does_not_depend_on_the_order_of_equals() -> None:
    candidates = [Candidate((float(x), 0.0, x + 10.0, 10.0), 1.0) for x in range(0, 30, 4)]
    assert detector.suppress(candidates) == detector.suppress(candidates[::-1])


# --- detection ----------------------------------------------------------------------------------


@needs_cascades
def test_a_text_without_known_words_finds_nothing() -> None:
    image = disc(200, (100, 100), 40)
    assert detector.detect(image, "a gothic cathedral") == []
    assert detector.detect(image, "") == []


@needs_cascades
def test_large_images_are_shrunk_and_boxes_scaled_back() -> None:
    (found,) = detector.detect(disc(3200, (2000, 1200), 400), "the ball")
    assert found.label == "ball"
    assert detector.iou(found.box, (1600, 800, 2400, 1600)) > 0.95


@needs_cascades
@pytest.mark.parametrize("size", [(1, 1), (5, 40), (40, 5), (64, 64)])
def test_tiny_images_are_no_error(size: tuple[int, int]) -> None:
    every_word = " ".join(word for concept in detector.VOCABULARY for word in concept.words)
    image = np.zeros((*size, 3), dtype=np.uint8)
    assert detector.detect(image, every_word) == []


@needs_cascades
@needs_photos
def test_all_coins_are_found() -> None:
    found = detector.detect(photo("coins"), "coin")
    assert len(found) == 24
    assert {d.label for d in found} == {"coin"}


@needs_cascades
@needs_photos
def test_the_face_of_the_astronaut_is_found_and_nothing_else() -> None:
    (found,) = detector.detect(photo("astronaut"), "Where is the face?")
    assert detector.iou(found.box, (178, 77, 280, 190)) > 0.5


@needs_cascades
@needs_photos
def test_labels_are_the_words_of_the_text() -> None:
    found = detector.detect(photo("astronaut"), "person, eyes, helmet")
    assert [d.label for d in found] == ["person", "eyes", "eyes"]


@needs_cascades
@needs_photos
def test_detection_is_deterministic_and_bounded() -> None:
    image = photo("astronaut")
    text = "face, person, eye, smile, cat, coin, wheel, cup, ball, clock, button, plate, circle"
    first = detector.detect(image, text)
    assert first == detector.detect(image, text)
    assert 0 < len(first) <= detector.MAX_BOXES
    for found in first:
        x1, y1, x2, y2 = found.box
        assert 0 <= x1 < x2 <= image.shape[1]
        assert 0 <= y1 < y2 <= image.shape[0]


def test_opencv_without_cascades_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(detector.cv2, "CascadeClassifier", raising=False)
    with pytest.raises(RuntimeError, match=r"pip install 'opencv-python<5'"):
        detector.detect(disc(100, (50, 50), 20), "face")


# --- instances ----------------------------------------------------------------------------------


@needs_photos
def test_an_instance_is_found_in_another_view_and_size() -> None:
    support = detector.resize(photo("motorcycle_left")[122:189, 509:561], 1.5)
    (box,) = detector.find_instance(photo("motorcycle_right"), [support])
    assert detector.iou(box, (455, 122, 506, 189)) > 0.5


@needs_photos
def test_an_instance_that_is_not_there_is_not_found() -> None:
    support = photo("astronaut")[77:190, 178:280]
    assert detector.find_instance(photo("rocket"), [support]) == []


def test_without_supports_there_is_no_instance() -> None:
    image = disc(100, (50, 50), 20)
    assert detector.find_instance(image, []) == []
    assert detector.find_instance(image, [np.full((30, 30, 3), 7, dtype=np.uint8)]) == []
