"""Search and best formats of a custom benchmark: three ways of writing a letter."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from chat_server import Answer, Asked, ChatServer, completion
from scored_runs import World
from toy_benchmark import LETTERS, letters, zoo

from vlmeval_findit.analysis import BestFormats, rank_formats, ranking_rule
from vlmeval_findit.cli import main
from vlmeval_findit.protocol import Better, Metric
from vlmeval_findit.sweeps import search_target

__all__ = ["letters"]

CALLS = 3 * 6
"""Of a search over the zoo: two questions of a picture are one call."""


def script(asked: Asked, number: int) -> Answer:
    """Return a model that can only answer as JSON."""
    return completion("A" if "Answer as json." in str(asked.body) else "?")


@pytest.mark.sees("search --out")
def test_all_formats_are_asked_once_and_the_best_is_written(
    letters: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["search", "--model", "My-Own", "--data", "Letters_Zoo_plain"]
    command += ["--work-dir", str(tmp_path / "out"), "--out", str(tmp_path / "best.yaml")]
    with ChatServer(script) as server:
        where = ["--base-url", server.url]
        assert main([*command, *where, "--dry-run"]) == 0
        assert f"{CALLS} model calls, {CALLS} of them still to make" in capsys.readouterr().out
        for _ in range(2):
            assert main([*command, *where]) == 0
            assert len(server.asked) == CALLS, "the second time nothing is asked"
        shown = capsys.readouterr().out
        assert "My-Own: best format of 3 on Zoo (24 queries): json (Accuracy 33.3)" in shown
        actual = yaml.safe_load((tmp_path / "best.yaml").read_text())["models"]["My-Own"]["Letters"]
        assert (actual["winner"], actual["tables"]) == ("json", ["Zoo"])
        assert actual["rule"] == ranking_rule(LETTERS)
        assert [item["format"] for item in actual["averages"]] == ["json", "plain", "quoted"]
        assert [cell["dataset"] for cell in actual["cells"]] == [
            "Letters_Zoo_plain", "Letters_Zoo_json", "Letters_Zoo_quoted",
        ]  # fmt: skip

        # A sweep over another table takes it, whatever format its name says.
        zoo(letters, 4, "Farm")
        config = tmp_path / "sweep.yaml"
        config.write_text(
            "models: My-Own\ndatasets: [Letters_Farm_plain, Letters_Farm_quoted]\n"
            f"work_dir: {tmp_path / 'sweep'}\n"
        )
        sweep = ["sweep", str(config), *where]
        assert main([*sweep, "--formats", str(tmp_path / "best.yaml")]) == 0
        assert len(server.asked) == CALLS + 2
        assert (tmp_path / "sweep/My-Own/My-Own_Letters_Farm_json.json").is_file()
        # Without it both are asked, and compared.
        assert main(sweep) == 0
        assert len(server.asked) == CALLS + 3 * 2
    assert "My-Own: no best format: Accuracy is 0 in every format" in capsys.readouterr().out


def test_a_sweep_over_two_benchmarks_writes_two_winners(
    letters: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "sweep.yaml"
    config.write_text(
        "models: {name: My-Own, space: unit}\n"
        "datasets: [Demo, FindIt_Demo_refexp_xyxy_text, Letters_Zoo_plain, Letters_Zoo_json]\n"
        "representations: [xyxy, cxcywh]\noutputs: text\nlimit: 6\n"
        f"work_dir: {tmp_path / 'sweep'}\n"
    )

    def everything(asked: Asked, number: int) -> Answer:
        is_letter = "Answer as" in str(asked.body)
        return script(asked, number) if is_letter else completion("object: [0, 0, 1, 1]")

    with ChatServer(everything) as server:
        assert main(["sweep", str(config), "--base-url", server.url]) == 0
    assert "My-Own: best format of 2 on Zoo (6 queries): json (" in capsys.readouterr().out
    actual = BestFormats(tmp_path / "sweep" / "best_formats.yaml").models["My-Own"]
    assert actual == {"FindIt": "xyxy_text", "Letters": "json"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Leters_Zoo_plain", "did you mean Letters_Zoo_plain?"),
        ("Letters_Zoo_plian", "a name is Letters_<table>_<plain|json|quoted>"),
        ("Pascl", "unknown dataset 'Pascl': did you mean Pascal?"),
        ("FindIt_Pascal_point_json", "points are compared by a sweep"),
        ("VPBench_Stage1", "has a single format, so there is nothing to search. Run it: python"),
        ("Letters_Zoo_plain --marks all", "shows no reference images"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    name: str, message: str, letters: World, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"search --model My-Own --space unit --base-url http://127.0.0.1:9/v1 --data {name}"
    assert main(command.split()) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_complete_name_of_the_grid_stands_for_its_table() -> None:
    assert search_target("FindIt_Pascal_xywh_text") == search_target("Pascal")
    assert search_target("FindIt_RefL4Full_val_xywh_text") == search_target("RefL4Full_val")


def test_where_lower_is_better_the_lowest_wins() -> None:
    metric = Metric(
        "MAE", {"error": 1}, {"readable": 1}, empty=None, better=Better.LOWER, unit="objects"
    )

    class Counting(type(LETTERS)):  # type: ignore[misc]
        ranking = (metric,)

    benchmark = Counting()
    assert ranking_rule(benchmark).startswith(
        "lowest MAE, averaged over the tables, each to a tenth; then"
    )
    sums = {"plain": {"error": 9, "readable": 3}, "json": {"error": 4, "readable": 4}, "quoted": {}}
    scored = ((benchmark.parse(f"Letters_Zoo_{name}"), of) for name, of in sums.items())
    assert [item.format for item in rank_formats(benchmark, scored)] == ["json", "plain", "quoted"]
