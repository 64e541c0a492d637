"""Frames of videos: the right ones, whatever the frame rate, and in the annotations' size."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from stand_ins import fetch_job
from web import Web

from vlmeval_findit.data import SOURCES, VideoError, cut_frames, fetch_images

av = pytest.importorskip("av")

FRAMES = 120
SIZE = (128, 96)


def numbered(number: int) -> np.ndarray:
    """Draw the number of a frame: eight bars, dark or bright, are its bits."""
    pixels = np.full((SIZE[1], SIZE[0], 3), 40, dtype=np.uint8)
    for bit in range(8):
        if number >> bit & 1:
            pixels[:, bit * 16 : bit * 16 + 16] = 220
    return pixels


def read_number(image: Image.Image) -> int:
    row = np.asarray(image.convert("L").resize((8, 1), Image.Resampling.BOX))[0]
    return sum(1 << bit for bit in range(8) if row[bit] > 128)


def video(path: Path, uneven: bool = False) -> Path:
    steps = [1 + (number % 3 if uneven else 0) for number in range(FRAMES)]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"g": "25", "bf": "2"})
        stream.width, stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(1, 30)
        for number in range(FRAMES):
            frame = av.VideoFrame.from_ndarray(numbered(number), format="rgb24")
            frame.pts, frame.time_base = sum(steps[:number]), Fraction(1, 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("uneven", [False, True])
def test_the_named_frames_exactly(tmp_path, uneven: bool) -> None:
    numbers = [0, 1, 24, 25, 26, 60, 61, 99, FRAMES - 1]
    path = video(tmp_path / "a.mp4", uneven)
    frames = dict(cut_frames(path, numbers))
    assert list(frames) == numbers
    assert [read_number(image) for image in frames.values()] == numbers
    assert {image.size for image in frames.values()} == {SIZE}
    with pytest.raises(VideoError, match=r"a\.mp4: frame 120 is out of range: it has 120 frames"):
        list(cut_frames(path, [5, FRAMES]))


def test_iground_frames_from_a_folder_of_videos(tmp_path) -> None:
    videos = tmp_path / "videos"
    folder = tmp_path / "frames"
    videos.mkdir()
    video(videos / "_a-B_1.mp4")
    (videos / "bad.mp4").write_bytes(b"no video")
    names = ["_a-B_1_f000004.jpg", "_a-B_1_f000100.jpg", "gone_f000001.jpg", "bad_f000001.jpg"]
    small = fetch_job(Web(), folder, names, (64, 48))
    whys = fetch_images(small, SOURCES["iGround"], names, videos)
    assert set(whys) == set(names[2:])
    assert "no video gone in" in whys["gone_f000001.jpg"]
    assert "bad.mp4" in whys["bad_f000001.jpg"]
    assert set(small.store.problems()) == set(names[2:])
    with Image.open(folder / names[1]) as image:
        assert read_number(image) == 100
    # A video of another shape than the annotations state is refused.
    job = fetch_job(Web(), tmp_path / "square", names[:1], (64, 64))
    whys = fetch_images(job, SOURCES["iGround"], names[:1], videos)
    assert whys == {names[0]: "the video is 128x96, its annotations 64x64"}
