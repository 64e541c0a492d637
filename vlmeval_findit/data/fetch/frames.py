"""Named frames out of video files, by PyAV (the extra ``video``).

Frames are counted from 0 in the order in which they are shown.  The packets' time stamps are sorted
first, which needs no decoding; then only the stretch from the key frame before each wanted frame is
decoded.  So a frame's number is exact whatever the video's frame rate does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.command import install

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")


class VideoError(ValueError):
    """A video or a frame of it that is not to be had; the message names both."""


def find_video(folder: Path, stem: str) -> Path:
    """Return the file of a video in a folder, or raise a VideoError."""
    for suffix in SUFFIXES:
        path = folder / f"{stem}{suffix}"
        if path.is_file():
            return path
    raise VideoError(f"no video {stem} in {folder} ({', '.join(SUFFIXES)})")


def cut_frames(video: Path, frames: Sequence[int]) -> Iterator[tuple[int, Image]]:
    """Yield the frames of these numbers, in ascending order, as RGB images of the video's size.

    Raises:
        VideoError: PyAV is not installed, the file is no video, or it has fewer frames.
    """
    try:
        import av
    except ImportError:
        raise VideoError(f"cutting frames needs PyAV: {install('video')}") from None
    try:
        with av.open(str(video)) as container:
            stamps = _stamps(container)
        missing = [frame for frame in frames if frame >= len(stamps)]
        if missing:
            raise VideoError(f"{video}: no frame {missing[0]}, it has {len(stamps)}")
        with av.open(str(video)) as container:
            yield from _decoded(container, video, {stamps[frame]: frame for frame in set(frames)})
    except (av.FFmpegError, IndexError) as error:
        raise VideoError(f"{video}: {error}") from None


def _stamps(container: Any) -> list[int]:
    """Return the time stamp of every frame, in the order of showing."""
    packets = container.demux(container.streams.video[0])
    return sorted(packet.pts for packet in packets if packet.pts is not None)


def _decoded(container: Any, video: Path, wanted: dict[int, int]) -> Iterator[tuple[int, Image]]:
    """Decode each frame from the key frame before it; ``wanted`` has its number by its stamp."""
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    for stamp, number in sorted(wanted.items()):
        container.seek(stamp, stream=stream)
        later = (f for f in container.decode(stream) if f.pts is not None and f.pts >= stamp)
        frame = next(later, None)
        if frame is None or frame.pts != stamp:
            raise VideoError(f"{video}: frame {number} does not decode")
        yield number, frame.to_image()
