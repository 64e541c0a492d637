"""Find tables and images: VLMEvalKit's data folder, a configuration, the environment."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from ..core import (
    Checked,
    Config,
    Count,
    Expected,
    FileSet,
    MisplacedError,
    Text,
    TextError,
    YesNo,
    atomic_write,
    clone_folder,
    file_sha256,
    locked,
    not_there,
    parse_json,
    quoted_value,
    read_text,
    settle_file_sets,
    shipped_folder,
    validate,
    yaml_value,
)

log = logging.getLogger(__name__)

_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


_DATA_ROOT = "LMUData"  # the variable in the host's spelling
_CACHES = ("HF_HOME", "HF_HUB_CACHE")  # VLMEvalKit overlooks them, too, until they are there


def lmu_data_root() -> Path:
    """Return VLMEvalKit's data folder: LMUData, else ``~/LMUData``. It need not exist.

    Raises:
        FolderError: what LMUData names is no folder.
    """
    named = os.environ.get(_DATA_ROOT)
    if named and os.path.isdir(named):  # called often; a Path is slower
        return Path(named)
    return _settled(_DATA_ROOT) or Path.home() / "LMUData"


def make_lmu_data_root() -> Path:
    """Return VLMEvalKit's data folder to write to; the named one is made if it does not exist.

    Raises:
        FolderError: it cannot be made, or what LMUData names is no folder.
    """
    return _made(_DATA_ROOT) or lmu_data_root()


def make_folders_of_host() -> None:
    """Make the folders of data and caches that are named: VLMEvalKit overlooks missing ones."""
    for variable in (_DATA_ROOT, *_CACHES):
        _made(variable)


def _made(variable: str) -> Path | None:
    """Make the folder that a variable names, and return it; None: it names none."""
    folder = _settled(variable)
    if folder is not None and not folder.is_dir():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FolderError(
                f"{variable}={folder} cannot be made ({error.strerror}). Set {variable} to a "
                "folder that can be written to"
            ) from None
    return folder


def _settled(variable: str) -> Path | None:
    """Return the folder that a variable names, without blanks around it and with ``~`` expanded.

    The variable is set to it, so that VLMEvalKit and processes of ours find the same.
    """
    named = os.environ.get(variable, "")
    if not named.strip():
        return None
    folder = folder_from(named)
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"{variable}={folder}: a file, not a folder. Type {variable}=DIR")
    os.environ[variable] = str(folder)
    return folder


def folder_from(named: str) -> Path:
    """Return the folder that a setting names: no shell expands ``~`` in a file or behind ``=``."""
    return Path(named.strip()).expanduser()


def is_writable(folder: Path) -> bool:
    """Tell whether files can be made in a folder; permissions alone do not tell (``/proc``)."""
    if not os.access(folder, os.W_OK):
        return False
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except (FileNotFoundError, PermissionError):
        return False


def folder_advice(error: OSError) -> str:
    """Say what to do if a folder cannot be written to; "" for other errors."""
    if error.filename is None:
        return ""
    path = Path(os.fsdecode(error.filename))
    root = lmu_data_root()
    if path.is_relative_to(root) and (error.errno in _NOT_ALLOWED or not root.is_dir()):
        return ". Set LMUData to a folder that can be written to"
    if error.errno in _NOT_ALLOWED and not os.path.exists(path):
        return (
            f". {path.parent} cannot be written to: copy it to a folder of yours, or name another"
        )
    return ""


def custom_datasets_file() -> Path:
    """Return the file of custom datasets; it need not exist."""
    return lmu_data_root() / "findit_datasets.json"


class DatasetFileError(ValueError):
    """The file of custom datasets cannot be read; the message names file, name and key."""


@dataclass(frozen=True, slots=True)
class CustomDataset(Config):
    """A custom dataset: its image folder, and what is asked."""

    folder: Text
    family: Text = "objdet"  # A name that the benchmark knows
    multilabel: YesNo = True
    captions: YesNo = False
    negatives: YesNo = False
    frames: Count = 1


@dataclass(frozen=True, slots=True)
class _Registry:
    """The file of custom datasets as this process read it."""

    path: Path
    state: tuple[int, ...] | None  # which file it was; None: there was none
    rows: Mapping[str, CustomDataset]


_registry: _Registry | None = None


def custom_datasets() -> Mapping[str, CustomDataset]:
    """Return the custom datasets by name; a DatasetFileError if their file is damaged.

    The file is read again only if it changed since last time, so this looks at the disk once.
    As long as nothing changed, the same mapping is returned.
    """
    global _registry
    path = custom_datasets_file()
    state = _state_of(path)
    last = _registry
    if last is not None and (last.path, last.state) == (path, state):
        return last.rows
    _registry = None  # Nothing old is known where reading fails
    if path.parent.is_dir():
        _settle(path)
        state = _state_of(path)
    rows: Mapping[str, CustomDataset] = MappingProxyType({})
    if state is not None:
        kind = dict[str, CustomDataset]
        rows = MappingProxyType(_read(path, kind, parse_json, DatasetFileError))
    _registry = _Registry(path, state, rows)
    return rows


def _settle(path: Path) -> None:
    """Put the files of an import in their places that was killed while it did so."""
    try:
        settle_file_sets(path)
    except OSError as error:
        raise DatasetFileError(
            f"{path}: an import was killed while it put its files in their places, and they "
            f"cannot be moved ({error}). Type the command again as a user who may write to "
            f"{path.parent}"
        ) from None


def known_custom_datasets() -> Mapping[str, CustomDataset]:
    """Return the custom datasets as they were when this process last looked.

    For what is needed of every row of a table: the disk may be on another machine. Parsing a name
    and loading a table look (:func:`custom_datasets`).
    """
    last = _registry
    return custom_datasets() if last is None else last.rows


def forget_custom_datasets() -> None:
    """Read the file of custom datasets at the next look: this process writes it."""
    global _registry
    _registry = None


def register_dataset(name: str, row: CustomDataset | None) -> None:
    """Write the row of a custom dataset; None: delete it. Other processes may write others."""
    path = custom_datasets_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with _registering(path):
        before = dict(custom_datasets())
        rows = _with_row(before, name, row)
        if rows != before:
            _write_rows(path, rows)


def replace_dataset(files: FileSet, name: str, row: CustomDataset) -> None:
    """Put the files of a custom dataset in their places, and its row in that of others, at once."""
    path = custom_datasets_file()
    with _registering(path):
        rows = _with_row(custom_datasets(), name, row)
        _write_rows(files.folder / path.name, rows)
        # Whoever looks at the row afterwards finishes what a kill left of the rest.
        files.commit(first=path.name)


@contextmanager
def _registering(path: Path) -> Iterator[None]:
    """Let one process at a time write the file of custom datasets."""
    lock = path.with_name(f"{path.name}.lock")
    file = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    try:
        with locked(file, lock, wait=True, lease=path.with_name(f"{path.name}.lease")):
            forget_custom_datasets()  # Another process may have written in the same instant
            try:
                yield
            finally:
                forget_custom_datasets()
    finally:
        os.close(file)


def _with_row(
    rows: Mapping[str, CustomDataset], name: str, row: CustomDataset | None
) -> dict[str, CustomDataset]:
    """Return rows with another at the end; None: without one of that name."""
    others = {known: value for known, value in rows.items() if known != name}
    return others if row is None else {**others, name: row}


def _write_rows(path: Path, rows: Mapping[str, CustomDataset]) -> None:
    with atomic_write(path) as f:
        json.dump({name: asdict(row) for name, row in rows.items()}, f, indent=1)


def _state_of(path: Path) -> tuple[int, ...] | None:
    """Return what tells a file from what replaces it; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read(path: Path, kind: Any, parse: Callable[[str], Any], wrong: type[ValueError]) -> Any:
    """Read a file as a kind of configuration, or raise ``wrong``."""
    try:
        return _parsed(read_text(path), kind, parse)
    except MisplacedError as error:
        where = ", ".join(map(str, (path, *error.place)))
        raise wrong(f"{where}: {error.why}") from None
    except TextError as error:
        raise wrong(error.message_for(path)) from None
    except (OSError, ValueError) as error:
        raise wrong(f"{path}: {error}") from None


@lru_cache(maxsize=16)
def _parsed(text: str, kind: Any, parse: Callable[[str], Any]) -> Any:
    return validate(kind, parse(text) or {})


class FolderError(ValueError):
    """A configuration that cannot be read; the message names it."""


def table_folders() -> list[Path]:
    """Return the folders that are searched for tables, in order."""
    named = os.environ.get("FINDIT_TABLES")
    first = [folder_from(named)] if named else []
    folder = clone_folder()
    in_clone = [folder / "datasets_tsv"] if folder else []
    return [*first, Path("datasets_tsv"), *in_clone, lmu_data_root()]


def find_table(table: str, how_to_make: str) -> Path:
    """Return the table's first TSV in :func:`table_folders`, or raise FileNotFoundError."""
    folders = table_folders()
    paths = [folder / f"{table}.tsv" for folder in folders]
    tables = [path for path in paths if path.is_file()]
    if not tables:
        raise FileNotFoundError(
            f"no table {table}.tsv in {', '.join(map(str, folders))}. Make it: {how_to_make}"
        )
    first, *others = tables
    for other in others:
        if not first.samefile(other) and file_sha256(first) != file_sha256(other):
            _warn_once(f"FindIt: two tables {table}: {first} is used, {other} differs")
    return first


def shipped_table(table: str) -> Path:
    """Return the file with a table that comes with the package, from which it is made."""
    return shipped_folder("datasets_tsv") / f"{table}.tsv"


def made_table(table: str) -> Path:
    """Return a table that the package makes on first use, or raise FileNotFoundError."""
    path = lmu_data_root() / f"{table}.tsv"
    if not path.is_file():
        raise FileNotFoundError(
            f"no table {path}: any command that asks for the dataset makes it, and so does "
            "vlmeval_findit.data.loading.load_dataset"
        )
    return path


@cache
def _warn_once(warning: str) -> None:
    log.warning("%s", warning)


@dataclass(frozen=True, slots=True)
class Folder:
    """The image folder of a dataset, and where it is configured."""

    key: str
    path: Path
    source: str


def config_file() -> Path | None:
    """Find ``configs/datasets.yaml``: by FINDIT_CONFIG (else a FolderError), here, in the clone."""
    named = os.environ.get("FINDIT_CONFIG")
    if named:
        path = folder_from(named)
        if not path.is_file():
            raise FolderError(f"FINDIT_CONFIG={named}: the file {not_there(path)}")
        return path
    for base in filter(None, (Path(), clone_folder())):
        path = base / "configs" / "datasets.yaml"
        if path.is_file():
            return path
    return None


def named_image_keys() -> Iterator[tuple[str, str]]:
    """Yield the image keys whose folders the user named, after the place that names them.

    Raises FolderError as :func:`image_folder`.
    """
    for name, _ in _named_by_variable():
        yield "FINDIT_IMAGES", name
    config = config_file()
    if config is not None:
        for name, folder in read_config(config).images.items():
            if folder:
                yield f"{config}, images", name


def _named_by_variable() -> Iterator[tuple[str, str]]:
    """Yield the keys of FINDIT_IMAGES and their folders."""
    for pair in filter(None, os.environ.get("FINDIT_IMAGES", "").split(",")):
        name, is_pair, folder = pair.partition("=")
        if not is_pair:
            raise FolderError(f"FINDIT_IMAGES={pair}: should be KEY=DIR, as Pascal={pair}")
        yield name, folder


def image_folder(key: str) -> Folder:
    """Find an image key's folder: FINDIT_IMAGES, configuration, custom datasets, LMUData.

    Raises:
        FolderError: the configuration cannot be read.
        DatasetFileError: the file of custom datasets cannot be read.
    """
    for name, folder in _named_by_variable():
        if name == key:
            return Folder(key, folder_from(folder), "FINDIT_IMAGES")
    config = config_file()
    if config is not None:
        values = read_config(config)
        base = config.resolve().parent
        named = values.images.get(key)
        if named:
            return Folder(key, base / Path(named).expanduser(), str(config))
        if values.root:
            return Folder(key, base / Path(values.root).expanduser() / key, str(config))
    custom = custom_datasets().get(key)
    if custom is not None:
        return Folder(key, Path(custom.folder), "run_findit.py data import")
    return Folder(key, lmu_data_root() / "images" / key, "LMUData")


_InText = Annotated[str, Expected("text: write it in quotes", strict=True)]


def _mapping(value: Any) -> Any:
    if not isinstance(value or {}, Mapping):
        raise ValueError(f"{quoted_value(value, 40)} is not a mapping of names")
    return value or {}


_Named = Annotated[Mapping[_InText, _InText | None], Checked(_mapping, before=True)]


@dataclass(frozen=True, slots=True)
class DatasetsConfig(Config):
    """The sections of a configuration file."""

    root: _InText | None = None
    images: _Named = field(default_factory=dict)
    sources: _Named = field(default_factory=dict)
    called = "section"


def read_config(path: Path) -> DatasetsConfig:
    """Read a configuration file; a FolderError where that fails."""
    config: DatasetsConfig = _read(path, DatasetsConfig, yaml_value, FolderError)
    return config
