"""Keys of a ``--config`` file that stand twice: VLMEvalKit reads the last of them only."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    "text", ['{"model": {"A": {"x": 1}, "B": {"x": 1}}, "data": {"x": 1}}', "{", "[" * 99_999, ""]
)
def test_other_files_are_left_to_vlmevalkit(text: str, tmp_path: Path) -> None:
    from vlmeval_findit.host import check_config

    config = tmp_path / "c.json"
    config.write_text(text)
    check_config(["--config", str(config)])
    check_config(["--config", str(tmp_path / "none.json")])
    check_config(["--data", "FindIt_Demo_xyxy_json"])
