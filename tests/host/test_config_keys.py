"""Keys of a ``--config`` file that VLMEvalKit would drop: all but the last of equal ones, and those
of a dataset that its class does not know."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks import benchmarks, parse

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("host")]

TWICE = {
    "model": '{"model": {}, "data": {}, "model": {}}',
    "Mine": '{"model": {"Mine": {"class": "A"}, "Mine": {"class": "B"}}, "data": {}}',
    "space": '{"model": {"Mine": {"space": "unit", "space": "pixels"}}, "data": {}}',
    "FindIt_Demo_xyxy_json": '{"data": {"FindIt_Demo_xyxy_json": {}, "FindIt_Demo_xyxy_json": 1}}',
    "limit": '{"data": [{"limit": 1, "limit": 2}]}',
}


@pytest.mark.parametrize("key", TWICE)
@pytest.mark.parametrize("flags", [["--config", "c.json"], ["--verbose", "--config=c.json"]])
def test_a_key_that_stands_twice_is_refused(
    key: str, flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(TWICE[key])
    from vlmeval_findit.host import check_config

    with pytest.raises(ValueError, match=f"^c.json: duplicate key .{key}.: give each its own"):
        check_config(flags)


NAMES = [benchmark.variant_names()[0] for benchmark in benchmarks()]


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_key_of_our_dataset_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlmeval_findit.host import check_config, dataset_keys

    monkeypatch.chdir(tmp_path)
    (benchmark,) = (each for each in benchmarks() if name in each.variant_names())
    entry = {"class": benchmark.host_class(parse(name)), "dataset": name}
    keys = dataset_keys()[entry["class"]]
    assert {"dataset", "space", "reads_like", "encoder", "skip_missing"} <= {*keys}
    for key in keys:
        Path("c.json").write_text(json.dumps({"data": {name: {**entry, key: 1}}}))
        check_config(["--config", "c.json"])
        mistyped = f"{key}{key[-1]}"
        Path("c.json").write_text(json.dumps({"data": {name: {**entry, mistyped: 1}}}))
        why = f"c.json: data.{name}: unknown key '{mistyped}': did you mean {key}?"
        with pytest.raises(ValueError, match=re.escape(why)):
            check_config(["--config", "c.json"])


@pytest.mark.parametrize(
    "text",
    [
        '{"data": {"A": {"class": "Theirs", "spacee": 1}, "B": {"class": [1]}, "C": 3}}',
        '{"model": {"A": {"x": 1}, "B": {"x": 1}}, "data": {"x": 1}}',
        "{",
        "[" * 99_999,
        "",
    ],
)
def test_other_files_are_left_to_vlmevalkit(text: str, tmp_path: Path) -> None:
    from vlmeval_findit.host import check_config

    config = tmp_path / "c.json"
    config.write_text(text)
    check_config(["--config", str(config)])
    check_config(["--config", str(tmp_path / "none.json")])
    check_config(["--data", "FindIt_Demo_xyxy_json"])
