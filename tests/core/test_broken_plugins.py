"""Plug-ins that cannot be used are reported once, and refused where they were named."""

from __future__ import annotations

from pathlib import Path

import pytest
from few_fast import every_nth_fast
from plugin_package import known_here, written

from vlmeval_findit.boxes import REPRESENTATIONS, SPACE_KINDS, Space, SpaceError, reference_size
from vlmeval_findit.cli import main
from vlmeval_findit.core import reported
from vlmeval_findit.models import MODELS, find_model, model_row
from vlmeval_findit.scoring import plugin_tables

HEAD = (
    "from vlmeval_findit.models.model_row import *\n"
    "from vlmeval_findit.boxes.spaces import SpaceKind, Space\n"
    "from vlmeval_findit.boxes.representation import Representation\n"
    "GRID = lambda question: Space('grid1000')\n"
    "same = lambda n: tuple(n)\n"
)
FAMILY = "LocalFamily({{'{0}': 'a/b'}}, {1})"
PROVIDER = (
    "from vlmeval_findit.models import Provider\n"
    "PROVIDERS = Provider('mine', print, 'http://localhost/v9', own_fields={0})"
)

BROKEN = {
    "no python": ("MODELS = (", None, "SyntaxError"),
    "an exit": ("raise SystemExit(3)", None, "SystemExit: 3"),
    "no row": ("MODELS = [7]", "models", "should be a ModelRow, and is 7"),
    "a name": ("MODELS = ModelRow('', 'x', GRID)", "models", "'' is not a name"),
    "a slash": ("MODELS = ModelRow('a/b', 'x', GRID)", "models", "should have no slash"),
    "a regex": ("MODELS = ModelRow('A', '(', GRID)", "models", "unterminated subpattern"),
    "a built-in name": (
        "MODELS = ModelRow('Qwen3-VL', 'x', GRID)", "models", "is a row of vlmeval_findit",
    ),
    "all names": ("MODELS = ModelRow('A', '.*', GRID)", "models", "names .* have Qwen2.5-VL"),
    "a space that is none": (
        "MODELS = ModelRow('A', 'A', lambda q: Space('grid100'))", "models", "mean grid1000?",
    ),
    "bounds": (
        f"MODELS = ModelRow('A', 'A', GRID, local={FAMILY.format('A', 'qwen3_bounds')})",
        "models", "its bounds set max_pixels, min_pixels",
    ),
    "a checkpoint": (
        f"MODELS = ModelRow('A', 'A', GRID, local={FAMILY.format('B', '')})",
        "models", "does not match its names",
    ),
    "a release's name": ("SPACES = SpaceKind('standard', 'x', '', max)", "spaces", "another space"),
    "no function": ("SPACES = SpaceKind('s', 's', 'y', 3)", "spaces", "reference should not be 3"),
    "a need that is no setting": (
        "SPACES = SpaceKind('s', 's', 'y', max, {'sides': 3})",
        "spaces", "needs should be some of factor, max_pixels,",
    ),
    "another box": (
        "REPRESENTATIONS = Representation('r', 4, (), (), same, lambda b: b[::-1])",
        "representations", "comes back as",
    ),
    "our checkpoint": (
        "MODELS = ModelRow('A', 'A|Q.*-8B', GRID, local=" + FAMILY.format("Qwen3-VL-8B", "") + ")",
        "models", "Qwen3-VL-8B is a name of Qwen3-VL",
    ),
    "a built-in space": (
        "SPACES = SpaceKind('unit', 'x', 'y', lambda s, p: s)", "spaces", "is a row of vlmeval",
    ),
    "a word of the grid": (
        "REPRESENTATIONS = Representation('json', 4, (), (), same, same)",
        "representations", "'json' cannot stand in a name",
    ),
    "too few fields": (
        "REPRESENTATIONS = Representation('r', 4, ('x',), (), same, same)",
        "representations", "fields are 1 for 4 numbers",
    ),
    "no benchmark": ("PREFIX = 'Mine_'", "benchmarks", "has no attribute 'BENCHMARK'"),
    "one own field": (
        PROVIDER.format("'max_token'"), "providers", "own_fields are 'max_token', and should be",
    ),
    "numbers as own fields": (PROVIDER.format("(1,)"), "providers", "own_fields are (1,), and"),
    "a prefix": ("PREFIX = 'Mine'\nBENCHMARK = 3", "benchmarks", "'_' at its end"),
}  # fmt: skip


@pytest.mark.parametrize("what", every_nth_fast(BROKEN, 4))
def test_a_broken_plugin_is_reported_once_and_refused_by_name(
    what: str,
    tmp_path: Path,
    plugin_file: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, group, why = BROKEN[what]
    file = written(tmp_path / "broken.py", HEAD + text)
    with known_here(files=(file, plugin_file)):
        for _ in range(2):
            for table in plugin_tables().values():
                list(table)
        (each,) = reported()
        assert each.plugin.name == "broken.py"
        assert (each.group.value if each.group else None) == group
        assert why in each.why
        assert "\n" not in str(each)
        (output,) = (record.getMessage() for record in caplog.records)
        assert output == f"{each}: left out"
        # All else works.
        assert find_model("Cornered") is not None
        assert not {"A", "s", "r"} & {*MODELS, *SPACE_KINDS, *REPRESENTATIONS}
    # However it was named
    for flags, files in ((["--plugin", str(file)], ()), ([], (plugin_file, file))):
        with known_here(files=files):
            assert main(["models", *flags]) == 2
        streams = capsys.readouterr()
        assert not streams.out
        assert streams.err.startswith("error: plug-in broken.py")
        assert why in streams.err


def test_a_file_that_is_not_there_stops_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "none.py"
    for flags, files, where in (
        (["--plugin", str(file)], (), "--plugin"),
        ([], (file,), "FINDIT_PLUGINS:"),
    ):
        with known_here(files=files):
            assert main(["models", *flags]) == 2
        assert capsys.readouterr().err == f"error: {where} {file}: the file does not exist\n"


def test_a_name_of_vlmevalkit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_row, "model_names", lambda: ["SmolVLM2"])
    row = f"ModelRow('Smol', 'Smol(VLM2)?', GRID, local={FAMILY.format('SmolVLM2', '')})"
    file = written(tmp_path / "smol.py", f"{HEAD}MODELS = {row}")
    with known_here():
        assert main(["models", "--plugin", str(file)]) == 2
    assert "is the name of a model of VLMEvalKit" in capsys.readouterr().err


@pytest.mark.parametrize(
    "size",
    [
        "None", "(0, 5)", "(5, -5)", "(float('nan'), 1.0)", "(1e9, 5.0)", "('5', 5)", "[5, 5]",
        "(5, 5, 0)", "(5, 5, 0, float('inf'))", "(5, 5, None, 0)",
    ],
)  # fmt: skip
def test_a_size_that_no_number_can_refer_to_is_refused(size: str, tmp_path: Path) -> None:
    text = f"SPACES = SpaceKind('odd', 'odd', 'odd', lambda s, p: {size})"
    odd = known_here(files=(written(tmp_path / "odd.py", HEAD + text),))
    with odd, pytest.raises(SpaceError, match=r"the space odd of odd\.py sha256:"):
        reference_size(Space("odd"), 10, 10)
