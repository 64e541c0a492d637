"""The file of custom datasets: read once, and again whenever somebody changed it."""

from __future__ import annotations

import builtins
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from custom_data import data_folder
from grids import grid
from jsonl_data import write_lines
from PIL import Image

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.benchmarks.findit import DATASETS, Family, FindItVariant
from vlmeval_findit.cli import main
from vlmeval_findit.engine import CellBuilder, Prompts
from vlmeval_findit.protocol import Message
from vlmeval_findit.storage import DatasetFileError, custom_datasets_file, folders


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return data_folder(tmp_path, monkeypatch)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The looks at the disk for the file."""
    seen: list[Path] = []
    really = folders._state_of

    def state(path: Path) -> tuple[int, ...] | None:
        seen.append(path)
        return really(path)

    monkeypatch.setattr(folders, "_state_of", state)
    return seen


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened in Python, by whichever door.

    An audit hook would see them, too, and could not be taken back: all later tests would pay.
    """
    seen: list[str] = []

    def watch(module: ModuleType) -> None:
        really = module.open

        def noted(file: Any, *given: Any, **named: Any) -> Any:
            seen.append(str(file))
            return really(file, *given, **named)

        monkeypatch.setattr(module, "open", noted)

    for module in (builtins, io, os):
        watch(module)
    return seen


def import_rows(folder: Path, rows: int = 3, kind: str = "expression", name: str = "Mine") -> None:
    """Import a table of so many rows about one image, or import it again."""
    Image.new("RGB", (160, 120)).save(folder / "0.png")
    boxes = [[60, 50, 100, 90]]
    lines = [{"image": "0.png", kind: f"thing {at}", "boxes": boxes} for at in range(rows)]
    path = write_lines(folder / "mine.jsonl", lines)
    given = ["--image-root", str(folder), "--name", name, "--replace"]
    assert main(["data", "import", str(path), *given]) == 0


def write_registry(rows: Mapping[str, Any]) -> None:
    """Write the file as another process does: whole, in one step."""
    path = custom_datasets_file()
    other = path.with_name("written")
    other.write_text(json.dumps(rows), encoding="utf-8")
    os.replace(other, path)


def words(variant: FindItVariant) -> str:
    """Return the text of the first message."""
    return CellBuilder(False).cell("Stub", variant, None).prompts.parts(0)[-1].value


def hash_all_prompts() -> None:
    """Make every message of the table in every format, as a sweep over the grid does."""
    tables = CellBuilder(False)
    for variant in grid([DATASETS["Mine"]]):
        tables.cell("Stub", parse(variant.name), None).prompts.hash  # noqa: B018


def test_the_registry_is_opened_once_whatever_is_made(
    root: Path, looks: list[Path], opened: list[str]
) -> None:
    counts = []
    for rows in (2, 40):
        import_rows(root, rows)
        os.utime(custom_datasets_file())
        opened.clear()
        looks.clear()
        hash_all_prompts()
        counts.append(len(looks))
        assert opened.count(str(custom_datasets_file())) == 1
    assert counts[0] == counts[1], "looks at the disk grow with the rows"


@pytest.mark.parametrize(
    "use",
    [
        lambda variant: variant.data,
        lambda variant: variant.name,
        lambda variant: variant.table,
        lambda variant: variant.family,
        lambda variant: variant.images,
        lambda variant: variant.has_references,
        lambda variant: variant.board_dataset,
    ],
)
def test_what_is_needed_of_every_row_looks_at_no_disk(
    use: Callable[[FindItVariant], object], root: Path, looks: list[Path], opened: list[str]
) -> None:
    import_rows(root)
    variant = parse("FindIt_Mine_xyxy_json")
    looks.clear()
    opened.clear()
    for _ in range(3):
        use(variant)
    assert not looks
    assert str(custom_datasets_file()) not in opened


def test_an_import_in_this_process_is_seen_at_once(root: Path) -> None:
    import_rows(root)
    before = parse("FindIt_Mine_xyxy_json")
    assert before.data.family is Family.REFEXP
    assert words(before).startswith("Find the one object in the image that")
    import_rows(root, kind="label")
    assert before.data.family is Family.OBJDET, "without any look at a name"
    assert words(before).startswith('Find every instance of "thing 0" in the image.')
    assert parse("FindIt_Mine_xyxy_json").data is before.data


def test_an_import_by_another_process_is_seen(root: Path) -> None:
    import_rows(root)
    variant = parse("FindIt_Mine_xyxy_json")
    rows = json.loads(custom_datasets_file().read_text())
    # The size of the file stays.
    rows["Mine"]["folder"] = rows["Mine"]["folder"][:-1] + "X"
    write_registry(rows | {"New": {**rows["Mine"], "family": "objdet"}})
    assert parse("FindIt_New_xyxy_json").data.family is Family.OBJDET
    assert variant.data.folder == rows["Mine"]["folder"]
    write_registry({})
    with pytest.raises(ValueError, match="unknown dataset 'Mine'"):
        parse("FindIt_Mine_xyxy_json")
    with pytest.raises(KeyError):
        variant.data  # noqa: B018
    custom_datasets_file().unlink()
    assert "Mine" not in DATASETS
    import_rows(root)
    assert parse("FindIt_Mine_xyxy_json") == variant


def test_a_dataset_that_was_not_there_is_looked_for_again(root: Path) -> None:
    import_rows(root)
    variant = FindItVariant("Late", "xyxy", "json")
    with pytest.raises(KeyError):
        variant.data  # noqa: B018
    rows = json.loads(custom_datasets_file().read_text())
    write_registry(rows | {"Late": rows["Mine"]})
    assert variant.data.name == "Late"


def test_two_data_folders_are_two_registries(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_rows(root)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("LMUData", str(other))
    assert "Mine" not in DATASETS
    import_rows(other, kind="label")
    assert parse("FindIt_Mine_xyxy_json").data.family is Family.OBJDET
    monkeypatch.setenv("LMUData", str(root))
    assert parse("FindIt_Mine_xyxy_json").data.family is Family.REFEXP


@pytest.mark.parametrize("text", ["{", '{"Mine": {"folder": 3}}', "[1]"])
def test_a_file_damaged_meanwhile_is_an_error_until_mended(text: str, root: Path) -> None:
    import_rows(root)
    variant = parse("FindIt_Mine_xyxy_json")
    good = custom_datasets_file().read_text()
    custom_datasets_file().write_text(text)
    for _ in range(2):
        with pytest.raises(DatasetFileError, match="findit_datasets"):
            parse("FindIt_Mine_xyxy_json")
        with pytest.raises(DatasetFileError, match="findit_datasets"):
            variant.data  # noqa: B018
    custom_datasets_file().write_text(good)
    assert parse("FindIt_Mine_xyxy_json").data == variant.data


@pytest.mark.parametrize(("limit", "made"), [(None, 5), (1, 6)])
def test_every_message_is_made_once(
    limit: int | None, made: int, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_rows(root, 5)
    cell = CellBuilder(False).cell("Stub", parse("FindIt_Mine_xyxy_json"), limit)
    messages, really = [], Prompts.parts

    def parts(prompts: Prompts, index: int) -> Message:
        messages.append(index)
        return really(prompts, index)

    monkeypatch.setattr(Prompts, "parts", parts)
    whole = cell.prompt_hash
    assert len(list(cell.call_keys())) == (limit or 5)
    assert cell.prompt_hash == whole == cell.prompts.words.hash(cell.dataset)
    assert len(messages) == made
