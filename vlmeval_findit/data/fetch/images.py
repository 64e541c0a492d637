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
from .remote import RemoteStream, seekable
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
class Errand:
    """What it takes to bring images: how, from where, to where, and who is told."""

    client: Client
    bases: Mapping[str, str | None]
    store: Store
    progress: Progress


def bring(errand: Errand, source: Source, names: Sequence[str], videos: Path | None) -> Whys:
    """Bring images to their places; returns those that failed.

    Args:
        errand: how.
        source: the row of their folder.
        names: what is missing or not right.
        videos: a folder of videos to cut frames from, goes before the addresses.
    """
    if videos is not None and source.frames:
        return _from_videos(errand, source, names, videos)
    whys: Whys = {}
    by_origin: dict[Files | Archives | None, list[str]] = {}
    for name in names:
        by_origin.setdefault(source.origin(name), []).append(name)
    for origin, group in by_origin.items():
        base = errand.bases[origin.base] if origin is not None else None
        if origin is None or base is None:
            whys |= dict.fromkeys(group, BY_HAND)
            for name in group:
                errand.progress.finished(name)
        elif isinstance(origin, Files):
            whys |= _single_files(errand, origin, base, group)
        else:
            whys |= _from_archives(errand, origin, base, group)
    return whys


def _row(origin: Files | Archives) -> str:
    return f"(sources.{origin.base} in configs/datasets.yaml)"


# --- single files ---------------------------------------------------------------------------------


def _single_files(errand: Errand, origin: Files, base: str, names: Sequence[str]) -> Whys:
    def one(name: str) -> None:
        fetch_file(
            errand.client,
            tuple(address(base, path.format(name)) for path in origin.paths),
            errand.store.part(name),
            errand.store.target(name),
            lambda path: errand.store.check(name, path),
        )

    whys: Whys = {}
    pool = ThreadPoolExecutor(errand.client.policy.per_host)
    try:
        jobs = {pool.submit(one, name): name for name in names}
        for job in as_completed(jobs):
            try:
                job.result()
            except (DownloadError, StoreError) as error:
                whys[jobs[job]] = f"{error} {_row(origin)}"
            errand.progress.finished(jobs[job])
    except BaseException:
        errand.client.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return whys


# --- archives -------------------------------------------------------------------------------------


def _from_archives(errand: Errand, origin: Archives, base: str, names: Sequence[str]) -> Whys:
    wanted = WantedMembers({name: origin.member.format(name) for name in names})
    whys: Whys = {}
    troubles: list[str] = []

    def keep(name: str, content: IO[bytes]) -> None:
        try:
            why = errand.store.stage(name, content)
        except StoreError as error:
            why = str(error)
        whys.pop(name, None)
        if why:
            whys[name] = why

    def settle(name: str) -> None:
        if name not in whys:
            errand.store.settle(name)
        errand.progress.finished(name)

    for file in origin.files:
        if not wanted:
            break
        url = address(base, file)
        try:
            _read_archive(errand, url, wanted, keep, settle)
        except ArchiveError as error:
            troubles.append(f"{url}: {error} {_row(origin)}")
        except DownloadError as error:
            troubles.append(f"{error} {_row(origin)}")
    errand.store.discard_staged()
    nowhere = "; ".join(troubles) or f"in none of {', '.join(origin.files)} {_row(origin)}"
    left = {name: wanted.refused.get(name, nowhere) for name in names if name in wanted}
    for name in left:
        errand.progress.finished(name)
    return whys | left


def _read_archive(
    errand: Errand, url: str, wanted: WantedMembers, keep: Keep, settle: Callable[[str], None]
) -> None:
    largest = errand.client.policy.largest
    if not url.endswith(".zip"):
        with io.BufferedReader(RemoteStream(errand.client, url, errand.progress.expect)) as stream:
            take_tar(stream, wanted, keep, largest, settle)
        return
    file = seekable(errand.client, url)
    if file is not None:
        with file:
            take_zip(file, wanted, keep, largest, settle)
        return
    # Without ranges a zip archive must be on disk: its table of contents is at its end.
    part = errand.store.part(url)
    download(errand.client, url, part)
    with part.open("rb") as whole:
        take_zip(whole, wanted, keep, largest, settle)
    discard(part)


# --- frames ---------------------------------------------------------------------------------------


def _from_videos(errand: Errand, source: Source, names: Sequence[str], videos: Path) -> Whys:
    by_video: dict[str, dict[int, list[str]]] = {}
    whys: Whys = {}
    for name in names:
        frame = source.frame(name)
        if frame is None:
            whys[name] = "its name does not say a frame of a video"
            continue
        by_video.setdefault(frame.video, {}).setdefault(frame.frame, []).append(name)

    def one(video: str) -> Whys:
        return _cut_video(errand, videos, video, by_video[video])

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(one, by_video):
            whys |= found
    return whys


def _cut_video(
    errand: Errand, videos: Path, video: str, frames: Mapping[int, Sequence[str]]
) -> Whys:
    left = {name: "was not cut" for names in frames.values() for name in names}
    whys: Whys = {}
    try:
        for number, image in cut(find_video(videos, video), list(frames)):
            for name in frames[number]:
                del left[name]
                why = _save_frame(errand.store, name, image)
                if why:
                    whys[name] = why
                errand.progress.finished(name)
    except (VideoError, StoreError) as error:
        left = dict.fromkeys(left, str(error))
    for name in left:
        errand.progress.finished(name)
    return whys | left


def _save_frame(store: Store, name: str, image: Image) -> str | None:
    """Frames are shrunk to the size of the annotations where only the scale differs."""
    size = store.sizes[name] or image.size
    if abs(image.height * size[0] / image.width - size[1]) > 1:
        return f"the video is {image.width}x{image.height}, its annotations {size[0]}x{size[1]}"
    fitted = image if image.size == size else image.resize(size)
    kind, how = ("PNG", {}) if name.endswith(".png") else ("JPEG", {"quality": 95})
    return store.fill(name, lambda part: fitted.save(part, kind, **how))
