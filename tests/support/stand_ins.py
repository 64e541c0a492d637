"""Small stand-ins for what the sources serve: photographs, a release of one dataset, archives."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from web import Web

from vlmeval_findit.benchmarks.findit import Dataset, Family, Subset
from vlmeval_findit.data import BASE_ADDRESSES, Client, FetchJob, ImageStore, Policy, Progress

SIZE = (256, 192)
QUICK = Policy(attempts=3, first_wait=0.01, longest_wait=5.0, connect=2.0, read=0.3)


def jpeg(seed: int = 0, size: tuple[int, int] = SIZE) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def fetch_job(
    web: Web, folder: Path, names: Iterable[str], size: tuple[int, int] | None = SIZE
) -> FetchJob:
    """Return a job that fetches everything from a server."""
    addresses = dict.fromkeys(BASE_ADDRESSES, web.url)
    store = ImageStore(folder, dict.fromkeys(names, size))
    return FetchJob(Client(QUICK), addresses, store, Mock(spec=Progress))


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".findit-parts" not in path.parts
    }


def tar_of(
    members: dict[str, bytes] | list[tuple[tarfile.TarInfo, bytes]], mode: str = "w"
) -> bytes:
    buffer = io.BytesIO()
    listed = members if isinstance(members, list) else [(info(k), v) for k, v in members.items()]
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for member, content in listed:
            if member.isreg():
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def info(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


def zip_of(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


IMAGES = 6


def release(folder: Path) -> Dataset:
    """Return a dataset of six queries in five COCO images, its Parquet file in ``folder``."""
    path = folder / "mini.parquet"
    names = [f"COCO_train2014_{max(0, i - 1):012}_{i}.jpg" for i in range(IMAGES)]
    rows = [
        {
            "filename": name,
            "label": "thing",
            "bboxes": [[1.0, 2.0, 30.0, 40.0]],
            "width": SIZE[0],
            "height": SIZE[1],
        }
        for name in names
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return Dataset(
        name="Mini",
        family=Family.REFEXP,
        images="COCO_train2014",
        image_name=lambda name: name.rpartition("_")[0] + ".jpg",
        subset=Subset("mini", sha256(path.read_bytes()).hexdigest()),
    )


def set_up_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, web: Web) -> Dataset:
    """Set the stand-in release as the only dataset, on a server, with an empty data folder."""
    from vlmeval_findit.benchmarks.findit import release_subsets as subsets
    from vlmeval_findit.data.fetch import download

    source, root = tmp_path / "release", tmp_path / "lmu"
    source.mkdir()
    root.mkdir()
    dataset = release(source)
    monkeypatch.setattr(subsets, "BENCHMARK_DATASETS", {"Mini": dataset})
    monkeypatch.setattr(download.Client.__init__, "__defaults__", (QUICK, lambda count: None))
    config = tmp_path / "datasets.yaml"
    config.write_text(f"sources:\n  findit: {web.url}subsets\n  coco_train2014: {web.url}coco/\n")
    monkeypatch.setenv("LMUData", str(root))
    monkeypatch.setenv("FINDIT_CONFIG", str(config))
    for name in ("FINDIT_TABLES", "FINDIT_IMAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    web.serve("subsets/mini.parquet", (source / "mini.parquet").read_bytes())
    for i in range(IMAGES - 1):
        web.serve(f"coco/COCO_train2014_{i:012}.jpg", jpeg(i))
    return dataset
