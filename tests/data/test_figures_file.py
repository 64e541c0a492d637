"""A user's file of published figures: the template, what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vlmeval_findit.benchmarks.findit import BENCHMARK_DATASETS
from vlmeval_findit.cli import main
from vlmeval_findit.data import FiguresFileError, figures_template, published_figures, read_figures
from vlmeval_findit.models import ModelEntry
from vlmeval_findit.reproduction import OWN_PAPER, choose_figure

EMPTY = "{model: Qwen3-VL, conditions: v1 grid, values: {}}"
TYPED = "{model: Qwen3-VL-8B-Instruct, conditions: v1 grid, values: {Pascal: 51.2}}"


def written(path: Path, *changes: tuple[str, str]) -> Path:
    text = figures_template().replace(EMPTY, TYPED)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    return path


def test_template_has_both_releases_and_no_value() -> None:
    values = yaml.safe_load(figures_template())
    assert len(values["sets"]) == 17
    datasets = [each["datasets"][0] for each in values["sets"].values()]
    assert set(datasets) < set(BENCHMARK_DATASETS)
    sources = [report["source"] for report in values["reports"]]
    assert all(OWN_PAPER in source for source in sources)
    assert len(sources) == 2
    rows = [row for report in values["reports"] for row in report["figures"]]
    assert not any(row["values"] for row in rows)
    # The releases place the answers of these models differently.
    spaces = {name: row["space"] for name, row in values["conditions"].items()}
    assert spaces["v1 pixels, provider"] == "pixels"
    assert spaces["revised GPT-5.4"] == "openai_high"
    assert spaces["revised Claude Sonnet 4.5"] == "claude_standard"


def test_no_figure_of_the_own_paper_is_invented() -> None:
    assert not any("2606.04282" in figure.source for figure in published_figures())


def test_template_as_it_is_has_no_figure(tmp_path: Path) -> None:
    path = tmp_path / "figures.yaml"
    path.write_text(figures_template())
    with pytest.raises(FiguresFileError, match="no report has a value: type what was published"):
        read_figures(path)


def test_typed_figure_is_chosen_before_others(tmp_path: Path) -> None:
    own = read_figures(written(tmp_path / "figures.yaml"))
    (figure,) = own
    assert (figure.value, figure.set.datasets) == (51.2, ("Pascal",))
    entry = ModelEntry("Qwen3-VL-8B-Instruct")
    assert choose_figure(entry, "Pascal", own) is figure
    assert choose_figure(entry, "", own) is figure
    assert choose_figure(entry, "RefCOCO testA", own).set_name == "RefCOCO testA"


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("{Pascal: 51.2}", "{Paskal: 51.2}", "unknown set 'Paskal'"),
        ("{Pascal: 51.2}", "{Pascal: 151}", "reports.0.figures.1.values.Pascal: 151"),
        ("8B-Instruct, conditions: v1 grid", "8B, conditions: v9", "unknown conditions 'v9'"),
        ("sets:", "stes:", "stes"),
        ("sets:", "sets: [", "line "),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(
    before: str, after: str, where: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "figures.yaml", (before, after))
    with pytest.raises(FiguresFileError) as refused:
        read_figures(path)
    assert str(path) in str(refused.value)
    assert where in str(refused.value)


@pytest.mark.sees("figures --template", "figures --figures")
def test_command_lists_sources_and_writes_the_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figures"]) == 0
    listed = capsys.readouterr().out
    assert "arXiv 2502.13923" in listed
    assert f"Not known: those of FindIt's own paper ({OWN_PAPER})" in listed
    path = tmp_path / "mine.yaml"
    assert main(["figures", "--template", str(path)]) == 0
    assert path.read_text() == figures_template()
    assert main(["figures", "--template", str(path)]) != 0
    assert "may have figures: name another" in capsys.readouterr().err
    assert main(["figures", "--figures", str(written(path))]) == 0
    listed = capsys.readouterr().out
    assert "1 figure: arXiv 2606.04282v1" in listed
    assert "Not known" not in listed


def test_a_set_of_the_own_paper_says_how_to_add(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reproduce", "Qwen3-VL-8B-Instruct", "--set", "Pascal"]) != 0
    said = capsys.readouterr().err
    assert f"Of FindIt's own paper ({OWN_PAPER}) no figure is known" in said
    assert "figures --template FILE" in said
