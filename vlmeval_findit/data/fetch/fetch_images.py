"""Fetch missing images: single files in parallel, members of archives, frames of videos.

Where a member of an archive is written is decided by the name that we asked for, never by the
archive: it can only offer content, and only of plain files.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import re
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, Protocol

from PIL.Image import Image

from ...core import (
    UnpackedSizeError,
    check_unpacked,
    install_command,
    open_regular,
    suffix_of,
)
from ..sources import Archives, DataSource, Files, Origin
from .download import Client, DownloadError, address_below, discard, fetch_file
from .store import ImageStore, StoreError

# Why an image could not be fetched, by its name
Problems = dict[str, str]

# Why images without an address were not fetched
FETCHED_BY_HAND = "to be got by hand: see the steps"

# Bytes of an archive that is downloaded
_LARGEST_ARCHIVE = 1 << 34

_NO_IMAGES = "no archive of images"

# Bytes of an archive that are read at once.  Headers of tar, as long names, are read whole, and
# searched in quadratic time before Python 3.11.10.
_AT_ONCE = 1 << 14

# How packed tar archives are opened, by their beginning
_PACKINGS: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}


class Progress(Protocol):
    """Who is told how far a fetch is."""

    def expect(self, remaining: int) -> None:
        """Note how many bytes of an archive are still to come."""

    def finished(self, name: str) -> None:
        """Note that an image is there, or has failed for good."""


@dataclass(frozen=True, slots=True)
class FetchJob:
    """What fetches images, from where, to where, and who is told."""

    client: Client
    addresses: Mapping[str, str | None]  # Base addresses by their keys
    store: ImageStore
    progress: Progress


def fetch_images(
    job: FetchJob, source: DataSource, names: Sequence[str], videos: Path | None
) -> Problems:
    """Bring images to their places; return those that failed.

    Args:
        job: what fetches.
        source: the row of their folder.
        names: what is missing or wrong.
        videos: a folder of videos to cut frames from, used instead of the addresses.
    """
    if videos is not None and source.frames:
        return _from_videos(job, source.frames, names, videos)
    problems: Problems = {}
    by_origin: dict[Origin | None, list[str]] = {}
    for name in names:
        by_origin.setdefault(source.origin_of(name), []).append(name)
    for origin, group in by_origin.items():
        base = job.addresses[origin.base] if origin is not None else None
        if origin is None or base is None:
            problems |= dict.fromkeys(group, FETCHED_BY_HAND)
        elif isinstance(origin, Files):
            problems |= _single_files(job, origin, base, group)
        else:
            others = {name for name in job.store.sizes if source.origin_of(name) == origin}
            problems |= _from_archives(job, origin, base, group, others)
    return problems


def _key(origin: Origin) -> str:
    return f"(sources.{origin.base} in configs/datasets.yaml)"


def _single_files(job: FetchJob, origin: Files, base: str, names: Sequence[str]) -> Problems:
    def fetch(name: str) -> None:
        urls = tuple(address_below(base, path.format(name)) for path in origin.paths)
        check = partial(job.store.check, name)
        fetch_file(job.client, urls, job.store.part(name), job.store.target(name), check)

    problems: Problems = {}
    pool = ThreadPoolExecutor(job.client.policy.parallel)
    try:
        calls = {pool.submit(fetch, name): name for name in names}
        for call in as_completed(calls):
            try:
                call.result()
            except (DownloadError, StoreError) as error:
                problems[calls[call]] = f"{error} {_key(origin)}"
            job.progress.finished(calls[call])
    except BaseException:
        job.client.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return problems


# --- archives -------------------------------------------------------------------------------------


class ArchiveError(ValueError):
    """An archive that cannot be read to its end: nothing of it can be trusted."""


def _from_archives(
    job: FetchJob, origin: Archives, base: str, names: Sequence[str], others: Collection[str]
) -> Problems:
    """Bring images of archives to their places, and of ``others`` what these archives have, too.

    An archive is read to its end in any case, and would be downloaded again for the others.
    """
    left = {name: origin.member.format(name) for name in names}
    missing = (
        name for name in others if name not in left and not (job.store.folder / name).exists()
    )
    more = {name: origin.member.format(name) for name in missing}
    problems: Problems = {}
    failures: list[str] = []
    for file in origin.files:
        if not left:
            break
        url = address_below(base, file)
        part = job.store.part(url)
        try:
            job.client.download(url, part, _LARGEST_ARCHIVE, job.progress.expect)
            problems |= _unpack(job, part, left, more)
        except DownloadError as error:
            # What has come of it stays, so that the next run resumes there.
            failures.append(f"{error} {_key(origin)}")
            continue
        except ArchiveError as error:
            failures.append(f"{url}: {error} {_key(origin)}")
        discard(part)
    for name in left:
        job.progress.finished(name)
    nowhere = "; ".join(failures) or f"in none of {', '.join(origin.files)} {_key(origin)}"
    return dict.fromkeys(left, nowhere) | problems


def _unpack(job: FetchJob, archive: Path, left: dict[str, str], more: dict[str, str]) -> Problems:
    """Store the images of ``left`` and ``more`` that an archive has, and delete their names there.

    No image is moved to its place before the archive was read to its end.  Return why images of
    ``left`` cannot be used.
    """
    staged: dict[str, str | None] = {}
    taken: dict[str, str] = {}  # Paths of the members that were right, by name

    def store(name: str, member: _Member) -> None:
        # Of two members that end alike the first right one counts; of equal paths the last, as
        # archives are appended to.
        if taken.get(name, member.path) != member.path:
            return

        def write(part: Path) -> None:
            content = member.open()
            assert content is not None
            with content, part.open("xb") as f:
                shutil.copyfileobj(content, f, _AT_ONCE)

        try:
            staged[name] = job.store.stage(name, write)
        except StoreError as error:
            staged[name] = str(error)
        taken.pop(name, None)
        if staged[name] is None:
            taken[name] = member.path

    read_members(archive, {**left, **more}, job.client.policy.largest, store)
    problems: Problems = {}
    for name, why in staged.items():
        if why is None:
            job.store.settle(name)
        if name in more:
            del more[name]
            continue
        del left[name]
        job.progress.finished(name)
        if why is not None:
            problems[name] = why
    return problems


class _Member(NamedTuple):
    path: str
    size: int  # In bytes
    open: Callable[[], IO[bytes] | None]


_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    NotImplementedError,  # Of zipfile: an unknown compression
    RuntimeError,  # Of zipfile: a password
    ValueError,  # Of both: a name, a number, a place
    OverflowError,
    LookupError,
)


def read_members(
    archive: Path, tails: Mapping[str, str], largest: int, store: Callable[[str, _Member], None]
) -> None:
    """Store the named members of a zip or tar archive.

    Args:
        archive: the file; a tar may be packed by gzip, bzip2 or xz.
        tails: by name, the end of its member's path: that of x/b/c.jpg may be b/c.jpg.
        largest: bytes of the largest member that is read.
        store: gets each member that ends like a name, in the archive's order.

    Raises:
        ArchiveError: it is damaged, or unpacks to more than images do.  gzip has its checksum at
            the end, so what was stored before may be wrong, too.
    """
    names = {PurePosixPath(tail).parts: name for name, tail in tails.items()}
    lengths = {len(tail) for tail in names}
    with open_regular(archive) as f:
        members = _zip_members if f.read(2) == b"PK" else _tar_members
    packed = archive.stat().st_size
    taken = 0
    try:
        for member in members(archive):
            path = PurePosixPath(member.path.replace("\\", "/")).parts
            tail = next((path[-n:] for n in lengths if path[-n:] in names), None)
            if tail and member.size <= largest:
                # Members of a zip may be the same bytes.
                taken += member.size
                check_unpacked(taken, packed, _NO_IMAGES)
                store(names[tail], member)
    except ArchiveError:
        raise
    except UnpackedSizeError as error:
        raise ArchiveError(str(error)) from None
    except _DAMAGED as error:
        raise ArchiveError(f"damaged archive: {error}") from None
    except OSError as error:  # Of bzip2 and gzip without a number, else of the disk
        if error.errno not in (None, errno.EINVAL):  # EINVAL: a zip states a place before its start
            raise
        raise ArchiveError(f"damaged archive: {error}") from None


class _Unpacked:
    """The content of a tar archive for tarfile, which reads headers whole, however large."""

    def __init__(self, file: Path, content: IO[bytes]) -> None:
        self._packed = file.stat().st_size
        self._content = content

    def tell(self) -> int:
        return self._content.tell()

    def seek(self, place: int) -> int:
        self._check(place)
        return self._content.seek(place)

    def read(self, count: int) -> bytes:
        if count > _AT_ONCE:
            raise UnpackedSizeError(f"a header of {count:,} bytes: {_NO_IMAGES}")
        self._check(self._content.tell() + count)
        return self._content.read(count)

    def _check(self, place: int) -> None:
        check_unpacked(place, self._packed, _NO_IMAGES)


def _tar_members(file: Path) -> Iterator[_Member]:
    """Yield the plain files of a tar archive: neither links nor devices."""
    with file.open("rb") as f:
        begin = f.read(6)
    opened = next((of for mark, of in _PACKINGS.items() if begin.startswith(mark)), open)
    with opened(file, "rb") as content:
        unpacked = _Unpacked(file, content)
        with tarfile.open(fileobj=unpacked, mode="r:") as archive:  # type: ignore[call-overload]
            for info in archive:
                if info.size < 0:  # It leads back to where it was
                    raise ArchiveError(f"damaged archive: {info.name} has {info.size} bytes")
                if info.isreg():
                    yield _Member(info.name, info.size, partial(archive.extractfile, info))
        # To the end, where gzip has its checksum.
        while unpacked.read(_AT_ONCE):
            pass


def _zip_members(file: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            yield _Member(info.filename, info.file_size, partial(archive.open, info))


# --- frames ---------------------------------------------------------------------------------------
# PyAV (the extra ``video``) cuts them, counted from 0 in the order in which they are shown.  The
# packets' time stamps are sorted first, which needs no decoding; then only the stretch from the key
# frame before each named frame is decoded.  So the number is exact whatever the frame rate does.


def _from_videos(job: FetchJob, pattern: str, names: Sequence[str], videos: Path) -> Problems:
    by_video: dict[str, dict[int, str]] = {}
    problems: Problems = {}
    for name in names:
        frame = re.fullmatch(pattern, name)
        if frame is not None:
            by_video.setdefault(frame[1], {})[int(frame[2])] = name
        else:
            problems[name] = "its name does not say a frame of a video"
    with ThreadPoolExecutor(2) as pool:
        for failed in pool.map(lambda of: _cut_video(job, videos, *of), by_video.items()):
            problems |= failed
    return problems


def _cut_video(job: FetchJob, videos: Path, video: str, frames: dict[int, str]) -> Problems:
    """Save the frames of a video; return why some could not be cut."""
    left = dict(frames)
    problems: Problems = {}
    try:
        for number, image in cut_frames(find_video(videos, video), frames):
            name = left[number]
            why = _save_frame(job.store, name, image)
            if why:
                problems[name] = why
            del left[number]
            job.progress.finished(name)
    except (VideoError, StoreError) as error:
        problems |= dict.fromkeys(left.values(), str(error))
    return problems


def _save_frame(store: ImageStore, name: str, image: Image) -> str | None:
    """Save a frame, shrunk to the size of its annotations where only the scale differs."""
    size = store.sizes[name] or image.size
    if abs(image.height * size[0] / image.width - size[1]) > 1:
        return f"the video is {image.width}x{image.height}, its annotations {size[0]}x{size[1]}"
    fitted = image if image.size == size else image.resize(size)
    is_png = suffix_of(Path(name)) == ".png"
    options = {"format": "PNG"} if is_png else {"format": "JPEG", "quality": 95}
    why = store.stage(name, lambda part: fitted.save(part, **options))
    if why is None:
        store.settle(name)
    return why


VIDEO_SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")


class VideoError(ValueError):
    """A video or a frame of it that is not to be had; the message names both."""


def find_video(folder: Path, stem: str) -> Path:
    """Return the file of a video in a folder, or raise a VideoError."""
    for suffix in VIDEO_SUFFIXES:
        path = folder / f"{stem}{suffix}"
        if path.is_file():
            return path
    raise VideoError(f"no video {stem} in {folder} ({', '.join(VIDEO_SUFFIXES)})")


def cut_frames(video: Path, frames: Collection[int]) -> Iterator[tuple[int, Image]]:
    """Yield the frames of these numbers, in ascending order, as RGB images of the video's size.

    Raises:
        VideoError: PyAV is not installed, the file is no video, or it has fewer frames.
    """
    try:
        import av
    except ImportError:
        raise VideoError(f"cutting frames needs PyAV: {install_command('data')}") from None
    try:
        with av.open(str(video)) as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            packets = (packet.pts for packet in container.demux(stream))
            stamps = sorted(pts for pts in packets if pts is not None)
            for number in sorted(frames):
                if number >= len(stamps):
                    raise VideoError(
                        f"{video}: frame {number} is out of range: it has {len(stamps)} frames"
                    )
                container.seek(stamps[number], stream=stream)
                decoded = (f for f in container.decode(stream) if f.pts is not None)
                frame = next((f for f in decoded if f.pts >= stamps[number]), None)
                if frame is None or frame.pts != stamps[number]:
                    raise VideoError(f"{video}: frame {number} does not decode")
                yield number, frame.to_image()
    except (av.FFmpegError, IndexError) as error:
        raise VideoError(f"{video}: {error}") from None
