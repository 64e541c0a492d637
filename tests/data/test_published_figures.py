"""Published figures: each has a source, and conditions that the program knows."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from few_fast import every_nth_fast
from paths import ROOT

from vlmeval_findit.benchmarks.refl4 import DATASETS as REF_L4
from vlmeval_findit.core import MisplacedError
from vlmeval_findit.data import MAKERS, figures_of, published_figures, published_sets
from vlmeval_findit.models import MODELS, SHIPPED

FILE = ROOT / "vlmeval_findit" / "data" / "published_figures.yaml"
FIGURES = published_figures()


def file() -> Any:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def test_every_figure_has_a_source_and_who_measured_it() -> None:
    assert len(FIGURES) == 365
    for figure in FIGURES:
        assert figure.source.strip()
        assert figure.measured_by.strip()
        assert figure.row in ("", *MODELS)


def test_every_set_conditions_and_report_is_used() -> None:
    values = file()
    used = Counter(figure.set_name for figure in FIGURES)
    assert {*values["sets"]} == {*used}
    named = {row["conditions"] for report in values["reports"] for row in report["figures"]}
    assert {*values["conditions"]} == named


def test_datasets_of_sets_exist_with_their_counts() -> None:
    rows = published_sets().values()
    counts = {row.dataset(part): count for row in rows for part, count in row.parts.items()}
    counts |= {row.name: row.counts for row in rows if not row.parts}
    for figure in FIGURES:
        names = [
            name.removesuffix("_multilabel")
            for name in figure.set.datasets
            if name not in REF_L4 and name not in MAKERS
        ]
        assert {*names} <= {*counts}
        known = [counts[name].queries for name in names]
        # Of detection, images are counted.
        if figure.n is not None and names and None not in known:
            total = sum(known)
            assert figure.n <= total
            assert figure.set.n == total


def test_figures_of_the_shipped_model_are_its_cards() -> None:
    card = Path(SHIPPED["FindIt-Nano"], "README.md").read_text(encoding="utf-8")
    figures = [figure for figure in FIGURES if figure.model in SHIPPED]
    assert len(figures) == 5
    for figure in figures:
        assert not figure.unknown
        (dataset,) = figure.set.datasets
        name = f"FindIt_{dataset}_{figure.conditions.format}"
        assert f"| {name} | {figure.n} | {figure.value} (" in card


def test_means_are_those_of_the_splits() -> None:
    by_report: dict[Any, dict[str, float]] = defaultdict(dict)
    for figure in FIGURES:
        if figure.set_name.startswith(("RefCOCO", "RefCOCO+", "RefCOCOg")):
            key = (figure.model, figure.source, figure.measured_by)
            by_report[key][figure.set_name] = figure.value
    means = 0
    for values in by_report.values():
        mean = values.pop("RefCOCO mean of 8", None)
        if mean is not None and len(values) == 8:
            means += 1
            assert sum(values.values()) / 8 == pytest.approx(mean, abs=0.1)
    assert means == 22


@pytest.mark.shared
def test_values_are_those_that_were_collected(shared: Path) -> None:
    path = shared / "published_values.yaml"
    if not path.is_file():
        pytest.skip(f"no {path}")
    collected = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    expected = Counter((row["value"], row["metric"]) for row in collected)
    metrics = {"mean of acc@0.5 to acc@0.95": "mAcc 0.5:0.95"}
    others = [figure for figure in FIGURES if figure.model not in SHIPPED]
    actual = Counter(
        (figure.value, metrics.get(figure.set.metric, figure.set.metric)) for figure in others
    )
    assert actual == expected


@pytest.mark.parametrize(
    ("at", "value", "why"),
    every_nth_fast(
        [
            (("conditions", "internvl", "prompt"), "internvl", "did you mean internvl-1"),
            (("conditions", "internvl", "format"), "xyzz_text", "unknown representation 'xyzz'"),
            (("conditions", "internvl", "space"), "grid100", "did you mean grid1000"),
            (
                ("conditions", "internvl", "engine"),
                "vlm",
                "unknown program 'vlm': did you mean vllm",
            ),
            (("conditions", "internvl", "bounds"), {"tiles": 6}, "unknown key 'tiles'"),
            (("conditions", "internvl", "iou"), "=>", "should be"),
            (("conditions", "internvl", "promt"), "x", "unknown key 'promt': did you mean prompt"),
            (("sets", "RefCOCO val", "metric"), "acc", "metric"),
            (("reports", 0, "source"), "", "source: '' should be a name"),
            (("reports", 0, "figures", 0, "model"), None, "model: None should be a name"),
            (("reports", 0, "figures", 0, "conditions"), "intern", "unknown conditions 'intern'"),
            (
                ("reports", 0, "figures", 0, "values"),
                {"RefCOCO tst": 1},
                "unknown set 'RefCOCO tst'",
            ),
            (("reports", 0, "figures", 0, "values"), {"RefCOCO val": 890}, "from 0 to 100"),
            (("reports", 0, "sure"), "certain", "sure"),
        ],
        3,
    ),
)
def test_what_the_program_does_not_know_is_refused(
    at: tuple[Any, ...], value: object, why: str
) -> None:
    values = copy.deepcopy(file())
    *way, key = at
    part = values
    for step in way:
        part = part[step]
    part[key] = value
    with pytest.raises(MisplacedError) as error:
        figures_of(values)
    assert why in error.value.below()


def test_a_report_needs_a_source() -> None:
    values = file()
    del values["reports"][0]["source"]
    with pytest.raises(MisplacedError, match="source is missing"):
        figures_of(values)
