"""Every key of the files that users write or edit changes what comes, and no other is taken.

The keys are those of the code's own schemas: a new one needs a row that sets it, or a reason.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
from few_fast import every_nth_fast
from grids import grid
from jsonl_data import CAT, DOG, HEIGHT, WIDTH, make_images, write_lines
from review_files import Reviewer

from vlmeval_findit.analysis import BestFormats, FormatOutcome, FormatsFile
from vlmeval_findit.benchmarks import parse
from vlmeval_findit.benchmarks.findit import BENCHMARK_DATASETS, DATASETS
from vlmeval_findit.benchmarks.vpbench import mark_choices
from vlmeval_findit.cli import main
from vlmeval_findit.data import (
    BASE_ADDRESSES,
    QueryBox,
    QueryLine,
    base_addresses,
    prepare_demo,
)
from vlmeval_findit.engine import CellBuilder
from vlmeval_findit.protocol import (
    SETTING_NAMES,
    Answer,
    AuditRecord,
    Review,
    ReviewVerdict,
    RowChoice,
    judge_args,
    our_settings,
    settings_from,
)
from vlmeval_findit.storage import CustomDataset, DatasetsConfig, custom_datasets_file, image_folder

Values = Mapping[str, Any]
FOR_PEOPLE = "it is written for people"


@dataclass(frozen=True)
class Place:
    """A place of keys in files of a kind."""

    schema: Any
    """A dataclass whose fields are the keys, or the keys themselves."""
    rows: Mapping[str, tuple[Values, Values]]
    """Key -> the values of the place, and others with an unusual value of the key."""
    outcome: Callable[[Values], Any]
    """What comes of the values; ValueError if they are refused."""
    unread: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    """Key on which nothing depends -> why, and a value."""

    @property
    def keys(self) -> Collection[str]:
        if isinstance(self.schema, type):
            return {key.name for key in fields(self.schema)}
        return set(self.schema)


def typed(*words: str) -> str:
    """Return what a command prints; ValueError with its error if it is refused."""
    printed, error = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(error):
        status = main([*words])
    if status:
        raise ValueError(" ".join(error.getvalue().split()))
    return printed.getvalue()


# --- JSON lines -----------------------------------------------------------------------------------

CATS = {"image": "0.png", "label": "cat", "boxes": [CAT]}
BOTH = {"image": "0.png", "labels": ["cat", "dog"], "boxes": [{"box": CAT, "label": "cat"}]}
PET = {"image": "0.png", "expression": "a pet", "boxes": [CAT]}
SHOWN = {"image": "0.png", "references": ["1.png"], "boxes": [CAT]}
VIDEO = {"images": ["0.png", "1.png"], "label": "cat", "boxes": [[CAT], []]}


def imported(line: Values) -> Any:
    """Import a line; return the rows of its tables."""
    path = write_lines(Path("mine.jsonl"), [line])
    typed("data", "import", str(path), "--name", "Mine", "--image-root", "images", "--replace")
    tables = sorted(Path("lmu").glob("Mine*.tsv"))
    return [path.read_text(encoding="utf-8") for path in tables]


# COCO's run lengths, over the columns of an image: what CAT's box is around
RUNS = [10 * HEIGHT + 5, *[20, HEIGHT - 20] * 30, 20]
MASK = {"size": [HEIGHT, WIDTH], "counts": [*RUNS, HEIGHT * WIDTH - sum(RUNS)]}


def imported_box(box: Values) -> Any:
    return imported({**(BOTH if "label" in box else CATS), "boxes": [box]})


# --- files of LMUData and configs/datasets.yaml ---------------------------------------------------

PETS = {"family": "refexp_all", "folder": "images"}


def registered(row: Values) -> Any:
    """Return what is asked of a dataset of the registry, in which words, and about which images."""
    imported(PET)
    custom_datasets_file().write_text(json.dumps({"Mine": row}))
    variants = [variant.name for variant in grid([DATASETS["Mine"]])]
    words = ""
    if row["family"] != "objdet_video":
        cell = CellBuilder(None).cell("Stub", parse("FindIt_Mine_xyxy_json"), None)
        words = cell.prompts.parts(0)[-1].value
    return variants, words, image_folder("Mine").path.name


def configured(sections: Values) -> Any:
    Path("configs").mkdir(exist_ok=True)
    Path("configs/datasets.yaml").write_text(json.dumps(sections))
    return image_folder("Pascal").path, base_addresses()


def marks(values: Values) -> Any:
    mark_choices.write_marks(values)
    return mark_choices.best_mark("Seer", "VPBench_Stage2_box"), mark_choices.good_marks()


SEER = {"best": "oval-red"}
GOOD = {"shapes": ["box"], "colours": ["red"]}
MARKS = {"models": {"Seer": SEER}, "good": GOOD}

# --- best formats ---------------------------------------------------------------------------------

WON = {"winner": "xyxy_text"}


def formats(values: Values) -> Any:
    Path("formats.yaml").write_text(json.dumps(values))
    return BestFormats(Path("formats.yaml")).models


# --- reviews --------------------------------------------------------------------------------------

DATA = "FindIt_Demo_xyxy_json"
BOX = (1.0, 2.0, 300.0, 200.0)


def plain(record: Any) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(json.dumps(asdict(record), default=lambda it: it.value))
    return values


def reviewed(review: Values, audit: Values) -> Any:
    """Return what a file says with changed values, and how a run is scored by it."""
    reviewer = Reviewer(DATA, ("ab12cd34",))
    drawn = RowChoice.RANDOM
    first = reviewer.review(3, ReviewVerdict.EDITED, Answer((BOX,)), drawn=drawn)
    other = reviewer.review(4, ReviewVerdict.LABEL, drawn=drawn)
    lines = [
        {"audit": {**plain(reviewer.audit([0, 1], ["Seer"])), **audit}},
        {**plain(first), **review},
        plain(other),
    ]
    text = "\n".join(json.dumps({"format": 1, **line}) for line in lines)
    Path("reviews.jsonl").write_text(f"{text}\n")
    said = typed("data", "reviews", "reviews.jsonl", "--data", DATA)
    stem = f"Seer_{DATA}"
    rows = [{"index": at, "prediction": "[]"} for at in range(19)]
    Path(f"{stem}.json").write_text(json.dumps(rows))
    try:
        typed("score", f"{stem}.json", "--space", "unit", "--reviews", "reviews.jsonl")
    except ValueError as error:
        return said, str(error)
    (path,) = Path().glob("*provenance.reviewed*")
    provenance = json.loads(path.read_text())
    path.unlink()
    return said, provenance["reviews"], provenance["totals"]


HASH = f"sha256:{'0' * 64}"


# --- the table ------------------------------------------------------------------------------------


def with_another(base: Values, **others: Any) -> dict[str, tuple[Values, Values]]:
    """Return a row for each key: the same values with another of the key."""
    return {key: (base, {**base, key: value}) for key, value in others.items()}


PLACES: Mapping[str, Place] = {
    "line of queries": Place(
        QueryLine,
        {
            **with_another(CATS, image="1.png", label="dog", boxes=[DOG], tags={"time": "night"}),
            **with_another(PET, expression="a dog", caption="A pet sits."),
            **with_another(SHOWN, references=["2.png"]),
            **with_another(BOTH, labels=["cat", "bird"]),
            **with_another(VIDEO, images=["0.png", "2.png"]),
        },
        imported,
    ),
    "box of a query": Place(
        QueryBox,
        {
            **with_another({"box": CAT}, box=DOG, ignore=True, mask=MASK),
            **with_another({"box": CAT, "label": "cat"}, label="dog"),
        },
        imported_box,
    ),
    "dataset of the registry": Place(
        CustomDataset,
        {
            **with_another(PETS, folder="other", family="refexp", captions=True, negatives=True),
            **with_another({**PETS, "family": "objdet", "multilabel": False}, multilabel=True),
            **with_another({**PETS, "family": "objdet_video"}, frames=4),
        },
        registered,
    ),
    "section of datasets.yaml": Place(
        DatasetsConfig,
        with_another(
            {}, root="all", images={"Pascal": "voc"}, sources={"voc2007": "https://a.b/c"}
        ),
        configured,
    ),
    "source of datasets.yaml": Place(
        BASE_ADDRESSES,
        with_another({}, **dict.fromkeys(BASE_ADDRESSES, "https://a.b/c")),
        lambda sources: configured({"sources": sources}),
    ),
    "file of best formats": Place(
        FormatsFile,
        with_another({"models": {}}, models={"Seer": {"FindIt": WON}}),
        formats,
        {"intervals": (FOR_PEOPLE, "x")},
    ),
    "outcome of a search": Place(
        FormatOutcome,
        with_another(WON, winner="xywh_json"),
        lambda outcome: formats({"models": {"Seer": {"FindIt": outcome}}}),
        dict.fromkeys(
            ("tables", "prompts", "rule", "race", "elsewhere", "averages", "cells"),
            (FOR_PEOPLE, "x"),
        ),
    ),
    "file of marks": Place(
        mark_choices.MarksFile,
        with_another(
            MARKS,
            models={"Seer": {"best": "tag-blue"}},
            good={**GOOD, "shapes": ["oval"]},
        ),
        marks,
        dict.fromkeys(("rule", "at_least", "vlmeval_findit"), (FOR_PEOPLE, "x")),
    ),
    "marks of a model": Place(
        mark_choices.MarksOfModel,
        with_another(SEER, best="tag-blue"),
        lambda model: marks({**MARKS, "models": {"Seer": model}}),
        dict.fromkeys(("shapes", "colours", "runs"), (FOR_PEOPLE, "x")),
    ),
    "good marks": Place(
        mark_choices.MarksOfAll,
        with_another(GOOD, shapes=["box", "tag"], colours=["blue"]),
        lambda good: marks({**MARKS, "good": good}),
    ),
    "review": Place(
        Review,
        {
            **with_another(
                {},
                index=5,
                row=HASH,
                verdict="model",
                accept=[{"boxes": [[1, 2, 100, 100]]}],
                kind="misplaced",
                reviewer="cd",
                drawn="listed",
                voters=["ef56ab78"],
            ),
            # A row is known in any table by its hash
            **with_another({"row": HASH}, table=HASH),
        },
        lambda review: reviewed(review, {}),
        {"date": (FOR_PEOPLE, "2026-02-28"), "p": (FOR_PEOPLE, 0.25)},
    ),
    "right answer of a review": Place(
        Answer,
        with_another({"boxes": [BOX]}, boxes=[[1, 2, 100, 100]], labels=["cat"]),
        lambda answer: reviewed({"accept": [answer]}, {}),
    ),
    "record of an audit": Place(
        AuditRecord,
        {
            **with_another({}, table=HASH, listed=[0, 3], voters=["ef56ab78"], models=["Other"]),
            # They have to add up
            **dict.fromkeys(
                ("rows", "unlisted", "judged"),
                ({}, {"rows": 12, "unlisted": 10, "judged": "0-11"}),
            ),
        },
        lambda audit: reviewed({}, audit),
        {"seed": ("it draws the same rows again: audit --seed", 8)},
    ),
    "judge arguments": Place(
        SETTING_NAMES,
        with_another(
            {},
            space="unit",
            reads_like="Claude Sonnet 4.5",
            encoder="mine",
            force=True,
            thought_marks="<plan> </plan>",
        ),
        lambda values: settings_from(our_settings(judge_args(json.dumps(values)))),
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder that has the demonstration."""
    folder = tmp_path_factory.mktemp("lmu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(folder))
        prepare_demo()
    return folder


@pytest.fixture(autouse=True)
def _here(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "lmu").symlink_to(tables)
    make_images(tmp_path / "images")
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.chdir(tmp_path)
    for name in ("FINDIT_TABLES", "FINDIT_IMAGES", "FINDIT_CONFIG", "FINDIT_SPACE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("FINDIT_FORCE", "FINDIT_ENCODER", "FINDIT_VP_MARK", "FINDIT_READS_LIKE"):
        monkeypatch.delenv(name, raising=False)
    yield
    (tables / "findit_datasets.json").unlink(missing_ok=True)


@pytest.mark.parametrize("name", PLACES)
def test_every_key_has_a_row(name: str) -> None:
    place = PLACES[name]
    assert place.keys == {*place.rows, *place.unread}
    assert not place.rows.keys() & place.unread.keys()


SEEN = [(name, key) for name, place in PLACES.items() for key in place.rows]
UNREAD = [(name, key) for name, place in PLACES.items() for key in place.unread]


@pytest.mark.parametrize(("name", "key"), every_nth_fast(SEEN, 4))
def test_a_key_changes_what_comes_of_a_file(name: str, key: str) -> None:
    place = PLACES[name]
    base, changed = place.rows[key]
    assert place.outcome(base) != place.outcome(changed)


@pytest.mark.parametrize(("name", "key"), every_nth_fast(UNREAD, 4))
def test_a_key_without_effect_is_for_people(name: str, key: str) -> None:
    place = PLACES[name]
    base, _ = next(iter(place.rows.values()))
    _, value = place.unread[key]
    assert place.outcome(base) == place.outcome({**base, key: value})


@pytest.mark.parametrize(("name", "key"), every_nth_fast([*SEEN, *UNREAD], 5))
def test_an_unknown_key_is_refused_with_the_nearest(name: str, key: str) -> None:
    place = PLACES[name]
    values = place.rows[key][1] if key in place.rows else {key: place.unread[key][1]}
    mistyped = f"{key}{key[-1]}"
    renamed = {mistyped if each == key else each: value for each, value in values.items()}
    with pytest.raises(ValueError, match=rf"unknown .*{mistyped}|{mistyped}: unknown") as error:
        place.outcome(renamed)
    assert f"did you mean {key}?" in str(error.value)


@pytest.mark.parametrize(
    "key", every_nth_fast(sorted({row.images for row in BENCHMARK_DATASETS.values()}), 4)
)
def test_a_folder_is_named_for_each_image_key(key: str) -> None:
    configured({"images": {key: "mine"}})
    assert image_folder(key).path == Path("configs/mine").absolute()
    mistyped = f"{key}{key[-1]}"
    assert notes_of_show() == []
    configured({"images": {mistyped: "mine"}})
    (said,) = notes_of_show()
    assert said.endswith(f"no dataset has images called '{mistyped}': did you mean {key}?")


def test_a_variable_for_no_image_key_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDIT_IMAGES", "Pascle=mine,Demo=demo")
    (said,) = notes_of_show()
    assert said == "FINDIT_IMAGES: no dataset has images called 'Pascle': did you mean Pascal?"


def notes_of_show() -> list[str]:
    """Return what is noted about image keys before a row is shown."""
    error = io.StringIO()
    with redirect_stderr(error), redirect_stdout(io.StringIO()):
        main(["data", "show", DATA])
    text = " ".join(error.getvalue().split())
    return [text] if "images called" in text else []
