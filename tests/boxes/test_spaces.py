"""Coordinate spaces: sizes computed by hand from protocol section 4, and what must always hold."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from few_fast import every_nth_fast
from hypothesis import example, given
from hypothesis import strategies as st

from vlmeval_findit.boxes import (
    FILE_PIXELS,
    SPACE_KINDS,
    BoxToWrite,
    ReplyFormat,
    Space,
    SpaceError,
    Truth,
    chat_resize,
    match,
    read,
    reference_size,
    reply_extent,
    smart_resize,
    space_from,
    stated_space,
    to_pixels,
    write,
)

XYXY = ReplyFormat("text", "xyxy")
CHAT = Space("smart_resize", min_pixels=200_704, max_pixels=1_605_632, two_step=True)
SIMPLE = Space("smart_resize", min_pixels=200_704, max_pixels=12_845_056)
YOLO = Space("letterbox", side=640)


def space(kind: str, scene_max_size: int | None = None) -> Space:
    return Space(kind, scene_max_size=scene_max_size)


@pytest.mark.parametrize(
    ("space", "size", "expected"),
    [
        # Whatever the image.
        (space("grid1000"), (500, 375), (1000, 1000)),
        (space("grid1000", 4096), (8192, 6144), (1000, 1000)),
        (space("unit"), (500, 375), (1, 1)),
        # The image itself up to 4096, then 8192 -> 4096 and 6144 / 2; 5000 x 4096/5000 and
        # 333 x 0.8192 = 272.79, truncated.
        (space("pixels"), (500, 375), (500, 375)),
        (space("pixels"), (4096, 10), (4096, 10)),
        (space("pixels"), (8192, 6144), (4096, 3072)),
        (space("pixels"), (5000, 333), (4096, 272)),
        # Scenes to 1824: 6144 x 1824/8192 = 1368; 333 x 1824/5000 = 121.48, rounded.
        # The file itself, however large.
        (space("file_pixels"), (8192, 6144), (8192, 6144)),
        (space("file_pixels"), (1, 5000), (1, 5000)),
        (space("pixels", 1824), (8192, 6144), (1824, 1368)),
        (space("pixels", 1824), (5000, 333), (1824, 121)),
        (space("pixels", 1824), (1824, 1000), (1824, 1000)),
        (space("pixels", 2048), (6144, 8192), (1536, 2048)),
        (space("pixels", 1824), (4000, 1006), (1824, 459)),
        # 1 pixel stays 1 pixel.
        (space("pixels", 1824), (9000, 1), (1824, 1)),
        # 64 x 40 patches = 2560 > 2500: s = sqrt(2560000 / (2048 x 1280)) = 0.98821;
        # 2048 s / 32 = 63.246 and 1280 s / 32 = 39.528, of which 39/39.528 is the smaller;
        # s = 0.975: 1996.8 and 1248.
        (space("openai_high"), (2048, 1280), (1996, 1248)),
        # 50 x 50 patches are just allowed.
        (space("openai_high"), (1600, 1600), (1600, 1600)),
        # 61 x 41 patches are one too many: s = sqrt(2560000 / (1952 x 1312)) = 0.99980;
        # 60.988 -> 60, 40.992 -> 40, of which 40/40.992 is the smaller: s = 40/41: 1904.39 x 1280.
        (space("openai_high"), (1952, 1312), (1904, 1280)),
        (space("openai_high"), (500, 375), (500, 375)),
        # 4096 x 1000 -> 2048 x 500: 64 x 16 patches.
        (space("openai_high"), (4096, 1000), (2048, 500)),
        # 8192 x 6144 -> 4096 x 3072 -> 2048 x 1536: 64 x 48 = 3072 > 2500;
        # s = sqrt(2560000/3145728) = 0.902110; 57.735 -> 57, 43.301 -> 43;
        # 57/57.735 = 0.98727, 43/43.301 = 0.99304: s = 0.890625: 1824 x 1368.
        (space("openai_high"), (8192, 6144), (1824, 1368)),
        # 56 patches of 28 are 1568: allowed with up to 28 in the other direction (56 x 28 = 1568).
        (space("claude_standard"), (1568, 784), (1568, 784)),
        (space("claude_standard"), (500, 375), (500, 375)),
        # A square: k x k <= 1568 patches, k = 39: 1092.
        (space("claude_standard"), (2000, 2000), (1092, 1092)),
        # A strip: only the edge counts; 100 x 1568/3136 = 50.
        (space("claude_standard"), (3136, 100), (1568, 50)),
        (space("claude_standard"), (100, 3136), (50, 1568)),
        # k x k <= 4784, k = 69: 1932.
        (space("claude_highres"), (2000, 2000), (1932, 1932)),
        (space("claude_highres"), (3000, 100), (2576, 86)),
        # 500/28 = 17.86 -> 18 x 28 = 504, 375/28 = 13.39 -> 13 x 28 = 364; 183,456 < 200,704:
        # the first step leaves 504 x 364; beta = sqrt(200704/183456) = 1.04595;
        # 527.16/28 = 18.83 -> 19: 532; 380.7/28 = 13.6 -> 14: 392.
        (CHAT, (500, 375), (532, 392)),
        # From 500 x 375 directly: beta = sqrt(200704/187500) = 1.03461: 517.3 -> 532, 388 -> 392.
        (SIMPLE, (500, 375), (532, 392)),
        # 1920 x 1080: 68.57 -> 69 x 28 = 1932, 38.57 -> 39 x 28 = 1092; 2,109,744 > 1,605,632.
        # Second step from 1932 x 1092: beta = 1.14628: 1685.5/28 = 60.2 -> 1680,
        # 952.6/28 = 34.02 -> 952.
        (CHAT, (1920, 1080), (1680, 952)),
        (SIMPLE, (1920, 1080), (1932, 1092)),
        # 8192 x 6144 > 12,845,056: beta = sqrt(50331648/12845056) = 1.97948:
        # 4138.4/28 = 147.8 -> 4116, 3103.8/28 = 110.85 -> 3080.
        (SIMPLE, (8192, 6144), (4116, 3080)),
        # Ties to even: 42 = 1.5 x 28 -> 56, 70 = 2.5 x 28 -> 56.
        (Space("smart_resize", min_pixels=1, max_pixels=10**9), (42, 70), (56, 56)),
        (Space("smart_resize", min_pixels=1, max_pixels=10**9), (1, 13), (28, 28)),
        # A longer side of 640.
        (YOLO, (500, 375), (640, 480)),
        (YOLO, (100, 400), (160, 640)),
        # Patches of another size: 500/32 = 15.6 -> 512, 375/32 = 11.7 -> 384.
        (Space("smart_resize", min_pixels=1, max_pixels=10**9, factor=32), (500, 375), (512, 384)),
    ],
    ids=lambda value: (
        f"{value.kind}-{value.scene_max_size or value.factor or ''}{'two' * value.two_step}"
        if isinstance(value, Space)
        else f"{value[0]}x{value[1]}"
    ),
)  # fmt: skip
def test_the_size_that_numbers_refer_to(
    space: Space, size: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert reference_size(space, *size) == expected


@pytest.mark.parametrize(
    ("side", "size", "corner"),
    [(640, (500, 375), (0, 80)), (640, (100, 400), (240, 0)), (1, (400, 100), (0, 0.375))],
)
def test_a_letterbox_has_the_image_in_its_middle(
    side: int, size: tuple[int, int], corner: tuple[float, float]
) -> None:
    result = reply_extent(Space("letterbox", side=side), *size)
    assert result[2:] == corner
    # What is left of it and above it is outside of the image.
    scale_x, scale_y, left, top = to_pixels(Space("letterbox", side=side), *size)
    assert (result.left * scale_x + left, result.top * scale_y + top) == (0, 0)
    assert ((side - corner[0]) * scale_x + left, (side - corner[1]) * scale_y + top) == size


def test_names_of_the_release_are_aliases() -> None:
    others = {"standard": "grid1000", "unit_rescale": "unit", "no_rescale": "pixels"}
    same = ("openai_high", "claude_standard", "claude_highres")
    for release_name, kind in {**others, **dict(zip(same, same, strict=True))}.items():
        assert space_from(release_name) == space_from({"kind": release_name}) == Space(kind)


def test_settings_are_read_back() -> None:
    for each in (CHAT, SIMPLE, YOLO, space("grid1000"), space("pixels", 1824)):
        assert space_from(each.as_dict()) == each
    assert space("grid1000").as_dict() == {"kind": "grid1000"}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("grid100", "unknown coordinate space 'grid100': did you mean grid1000?"),
        ({}, "the kind of the coordinate space is missing; kinds: grid1000"),
        ({"kind": "pixels", "scene_max": 7}, "unknown setting 'scene_max' of a "
                                             "coordinate space: did you mean scene_max_size?"),
        ("smart_resize", "smart_resize needs the min_pixels and max_pixels that the run used"),
        ({"kind": "smart_resize", "min_pixels": 0, "max_pixels": 1}, "needs the min_pixels"),
        ("letterbox", "letterbox needs the side that the run used, for example side=640"),
        ({"kind": "letterbox", "side": -1}, "side should be at least 1, not -1"),
        ({"kind": "pixels", "side": 640}, "pixels has no side: leave it out"),
        ({"kind": "file_pixels", "scene_max_size": 1824}, "file_pixels has no scene_max_size"),
        ({"kind": "smart_resize", "min_pixels": 2, "max_pixels": 1}, "min_pixels 2 > max_pixels 1"),
        ({"kind": "smart_resize", "min_pixels": "2", "max_pixels": 1}, "coordinate space {"),
        ({"kind": "smart_resize", "min_pixels": 1, "max_pixels": 2, "factor": 0},
         "factor should be at least 1, not 0"),
        ({"kind": "pixels", "scene_max_size": 0}, "scene_max_size should be at least 1, not 0"),
        (1000, "1000"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_settings_are_told_what_there_is(settings: object, says: str) -> None:
    with pytest.raises(SpaceError) as error:
        space_from(settings)  # type: ignore[arg-type]
    assert says in str(error.value)


RESIZE_ALONE: list[dict[str, Any]] = [
    {"min_pixels": 3136}, {"max_pixels": 99}, {"two_step": True}, {"factor": 32},
    {"min_pixels": 1, "max_pixels": 99},
]  # fmt: skip


@pytest.mark.parametrize("keys", RESIZE_ALONE, ids=str)
@pytest.mark.parametrize("kind", sorted(SPACE_KINDS.builtin))
def test_a_key_of_another_kind_is_refused(kind: str, keys: dict[str, Any]) -> None:
    settings = {**SPACE_KINDS[kind].needs, **keys, "kind": kind}
    if kind == "smart_resize":
        assert stated_space({**settings, "max_pixels": 9**9}).kind == kind
        return
    assert space_from(settings).as_dict() == settings, "records are read"
    with pytest.raises(SpaceError, match=rf"no effect: {kind} has no bounds. Leave it out, or use"):
        stated_space(settings)
    with pytest.raises(SpaceError, match="no effect"):
        stated_space(space_from(settings))


edges = st.integers(1, 10_000)


@given(edges, edges, st.integers(1024, 10**6), st.integers(1, 64), st.sampled_from([24, 28, 32]))
def test_smart_resize_gives_multiples_of_its_factor_within_bounds(
    width: int, height: int, least: int, times: int, factor: int
) -> None:
    most = least * (times + 3)
    w, h = smart_resize((width, height), least, most, factor)
    assert w % factor == h % factor == 0
    assert min(w, h) >= factor
    assert w * h >= least
    # An edge cannot be less than that, which is why a strip may have more.
    assert w * h <= most or min(w, h) == factor


@pytest.mark.parametrize(
    ("size", "resized"),
    [
        ((56, 56), (56, 56)),  # 3,136 pixels, the least
        ((28, 56), (56, 84)),
        ((3584, 3584), (3584, 3584)),  # 12,845,056 pixels, the most
        ((3612, 3584), (3584, 3556)),
    ],
)
def test_a_chat_interface_resizes_within_bounds_of_its_own(
    size: tuple[int, int], resized: tuple[int, int]
) -> None:
    assert chat_resize(size) == resized


CLAUDE = {"claude_standard": (1568, 1568), "claude_highres": (2576, 4784)}


def fits(w: int, h: int, edge: int, tokens: int) -> bool:
    across, down = math.ceil(w / 28), math.ceil(h / 28)
    return max(across, down) * 28 <= edge and across * down <= tokens


@pytest.mark.parametrize("kind", CLAUDE)
@example((2000, 1999))
@example((1, 1569))
@example((1569, 1))
@example((3000, 777))
@example((2577, 2577))
@given(st.tuples(st.integers(1, 4096), st.integers(1, 4096)))
def test_claude_size_is_the_largest_that_fits(kind: str, size: tuple[int, int]) -> None:
    """By brute force over every longer edge up to the image's."""
    edge, tokens = CLAUDE[kind]
    long, short = max(size), min(size)
    tried = ((at, max(round(at / (long / short)), 1)) for at in range(1, min(long, edge) + 1))
    w, h = reference_size(Space(kind), *size)
    largest = max(pair for pair in tried if fits(*pair, edge, tokens))
    assert (max(w, h), min(w, h)) == largest
    assert w == h or (w > h) == (size[0] > size[1])
    assert fits(int(w), int(h), edge, tokens)


@given(
    st.sampled_from(
        [*(Space(row.name) for row in SPACE_KINDS.values() if not row.needs), CHAT, SIMPLE]
    ),
    st.one_of(st.none(), st.integers(1, 5000)),
    st.integers(1, 20_000),
    st.integers(1, 20_000),
)
def test_no_size_is_zero(settings: Space, limit: int | None, width: int, height: int) -> None:
    """Boxes are divided by it."""
    if SPACE_KINDS[settings.kind].of_file:
        limit = None
    limited = space_from({**settings.as_dict(), **({"scene_max_size": limit} if limit else {})})
    assert min(reference_size(limited, width, height)) >= 1


# Sizes around the limits of senders, of OpenAI's and Anthropic's resizes and of one pixel
EDGES = (1, 2, 14, 28, 640, 1567, 1568, 1569, 2047, 2048, 2049, 2576, 2577, 4095, 4096, 4097, 8192)
SIZES = sorted({*product((1, 777, 6144), EDGES), *product(EDGES, (1, 777, 6144))})
NEEDS: dict[str, Any] = {"min_pixels": 200_704, "max_pixels": 1_605_632, "side": 640}
SPACES = [
    Space(row.name, **{name: NEEDS[name] for name in row.needs})
    for row in SPACE_KINDS.builtin.values()
]
LIMITED = [
    replace(each, scene_max_size=1824) for each in SPACES if not SPACE_KINDS[each.kind].of_file
]


@pytest.mark.parametrize("settings", every_nth_fast([*SPACES, *LIMITED], 3), ids=str)
def test_the_truth_comes_back_from_every_space(settings: Space) -> None:
    """Of images of every size, wide and high, written as numbers of a reply and read back."""
    for width, height in SIZES:
        truth = (0.0, 0.25 * height, 0.5 * width, float(height))
        across, down, left, top = reply_extent(settings, width, height)
        x, y = across / width, down / height
        x1, y1, x2, y2 = truth
        numbers = (x1 * x + left, y1 * y + top, x2 * x + left, y2 * y + top)
        replies = [read(write([BoxToWrite(numbers, "")], XYXY, digits=9), XYXY)]
        maps = [to_pixels(settings, width, height)]
        (matched,) = match(replies, [Truth((truth,), (0,))], maps)
        assert matched.boxes[0] == pytest.approx(truth, abs=1e-4), (width, height)


def test_only_file_pixels_are_the_file_at_every_size() -> None:
    frames = {
        each.kind
        for each in SPACES
        if all(reply_extent(each, *size) == (*size, 0, 0) for size in SIZES)
    }
    assert frames == {FILE_PIXELS.kind}
