"""Bring the images that are missing: single files in parallel, archives one by one, frames cut."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from PIL.Image import Image

from ..sources import Archives, Files, Source
from .archives import ArchiveError, Keep, WantedMembers, take_tar, take_zip
from .download import Client, DownloadError, address, discard, download, fetch_file
from .frames import VideoError, cut, find_video
from .remote import remote_file
from .store import Store, StoreError

Whys = dict[str, str]
"""Why an image could not be had, by its name."""

BY_HAND = "to be got by hand: see the steps"


class Progress(Protocol):
    """Who is told how far it is."""

    def expect(self, total: int) -> None:
        """So many bytes are going to be read from an archive."""

    def finished(self, name: str) -> None:
        """An image is there, or has failed for good."""


@dataclass(frozen=True, slots=True)
class FetchJob:
    """What it takes to bring images: how, from where, to where, and who is told."""

    client: Client
    bases: Mapping[str, str | None]
    store: Store
    progress: Progress


def bring(job: FetchJob, source: Source, names: Sequence[str], videos: Path | None) -> Whys:
    """Bring images to their places; returns those that failed.

    Args:
        job: how.
        source: the row of their folder.
        names: what is missing or not right.
        videos: a folder of videos to cut frames from, goes before the addresses.
    """
    if videos is not None and source.frames:
        return _from_videos(job, source, names, videos)
    whys: Whys = {}
    by_origin: dict[Files | Archives | None, list[str]] = {}
    for name in names:
        by_origin.setdefault(source.origin(name), []).append(name)
    for origin, group in by_origin.items():
        base = job.bases[origin.base] if origin is not None else None
        if origin is None or base is None:
            whys |= dict.fromkeys(group, BY_HAND)
            for name in group:
                job.progress.finished(name)
        elif isinstance(origin, Files):
            whys |= _single_files(job, origin, base, group)
        else:
            whys |= _from_archives(job, origin, base, group)
    return whys


def _row(origin: Files | Archives) -> str:
    return f"(sources.{origin.base} in configs/datasets.yaml)"


# --- single files ---------------------------------------------------------------------------------


def _single_files(job: FetchJob, origin: Files, base: str, names: Sequence[str]) -> Whys:
    def one(name: str) -> None:
        fetch_file(
            job.client,
            tuple(address(base, path.format(name)) for path in origin.paths),
            job.store.part(name),
            job.store.target(name),
            lambda path: job.store.check(name, path),
        )

    whys: Whys = {}
    pool = ThreadPoolExecutor(job.client.policy.per_host)
    try:
        calls = {pool.submit(one, name): name for name in names}
        for call in as_completed(calls):
            try:
                call.result()
            except (DownloadError, StoreError) as error:
                whys[calls[call]] = f"{error} {_row(origin)}"
            job.progress.finished(calls[call])
    except BaseException:
        job.client.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return whys


# --- archives -------------------------------------------------------------------------------------


def _from_archives(job: FetchJob, origin: Archives, base: str, names: Sequence[str]) -> Whys:
    wanted = WantedMembers({name: origin.member.format(name) for name in names})
    whys: Whys = {}
    troubles: list[str] = []

    def keep(name: str, content: IO[bytes]) -> None:
        try:
            why = job.store.stage(name, content)
        except StoreError as error:
            why = str(error)
        whys.pop(name, None)
        if why:
            whys[name] = why

    def settle(name: str) -> None:
        if name not in whys:
            job.store.settle(name)
        job.progress.finished(name)

    for file in origin.files:
        if not wanted:
            break
        url = address(base, file)
        try:
            _read_archive(job, url, wanted, keep, settle)
        except ArchiveError as error:
            troubles.append(f"{url}: {error} {_row(origin)}")
        except DownloadError as error:
            troubles.append(f"{error} {_row(origin)}")
    job.store.discard_staged()
    nowhere = "; ".join(troubles) or f"in none of {', '.join(origin.files)} {_row(origin)}"
    left = {name: wanted.refused.get(name, nowhere) for name in names if name in wanted}
    for name in left:
        job.progress.finished(name)
    return whys | left


def _read_archive(
    job: FetchJob, url: str, wanted: WantedMembers, keep: Keep, settle: Callable[[str], None]
) -> None:
    is_zip = url.endswith(".zip")
    take, largest = take_zip if is_zip else take_tar, job.client.policy.largest
    file = remote_file(job.client, url, whole=not is_zip)
    if file is not None:
        if not is_zip:
            job.progress.expect(file.size)
        with io.BufferedReader(file, _BUFFER) as stream:
            take(stream, wanted, keep, largest, settle)
        return
    # Without ranges nothing goes on from where it broke, and a zip's table is at its end.
    part = job.store.part(url)
    download(job.client, url, part, _LARGEST_ARCHIVE)
    with part.open("rb") as whole:
        take(whole, wanted, keep, largest, settle)
    discard(part)


_BUFFER = 1 << 18
_LARGEST_ARCHIVE = 1 << 34
"""Bytes of an archive that is brought to disk."""


# --- frames ---------------------------------------------------------------------------------------


def _from_videos(job: FetchJob, source: Source, names: Sequence[str], videos: Path) -> Whys:
    by_video: dict[str, dict[int, list[str]]] = {}
    whys: Whys = {}
    for name in names:
        frame = source.frame(name)
        if frame is None:
            whys[name] = "its name does not say a frame of a video"
            continue
        by_video.setdefault(frame.video, {}).setdefault(frame.frame, []).append(name)

    def one(video: str) -> Whys:
        return _cut_video(job, videos, video, by_video[video])

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(one, by_video):
            whys |= found
    return whys


def _cut_video(
    job: FetchJob, videos: Path, video: str, frames: Mapping[int, Sequence[str]]
) -> Whys:
    left = {name: "was not cut" for names in frames.values() for name in names}
    whys: Whys = {}
    try:
        for number, image in cut(find_video(videos, video), list(frames)):
            for name in frames[number]:
                del left[name]
                why = _save_frame(job.store, name, image)
                if why:
                    whys[name] = why
                job.progress.finished(name)
    except (VideoError, StoreError) as error:
        left = dict.fromkeys(left, str(error))
    for name in left:
        job.progress.finished(name)
    return whys | left


def _save_frame(store: Store, name: str, image: Image) -> str | None:
    """Frames are shrunk to the size of the annotations where only the scale differs."""
    size = store.sizes[name] or image.size
    if abs(image.height * size[0] / image.width - size[1]) > 1:
        return f"the video is {image.width}x{image.height}, its annotations {size[0]}x{size[1]}"
    fitted = image if image.size == size else image.resize(size)
    kind, how = ("PNG", {}) if name.endswith(".png") else ("JPEG", {"quality": 95})
    return store.fill(name, lambda part: fitted.save(part, kind, **how))
