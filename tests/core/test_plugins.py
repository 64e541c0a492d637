"""Rows of other packages and files: listed, used, recorded; a package of somebody else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion, in_turn
from host_runs import RUN_FINDIT, environment, metric_values, predictions, require_host, run
from perfect_answers import content, perfect_answers
from plugin_package import MINE, ROOT, install, known_here, path_with, written

import vlmeval_findit as findit
from vlmeval_findit.benchmarks import parse
from vlmeval_findit.boxes import (
    REPRESENTATIONS,
    Space,
    SpaceError,
    reference_size,
    reply_extent,
    space_from,
)
from vlmeval_findit.cli import main
from vlmeval_findit.core import plugin_rows
from vlmeval_findit.models import MODELS, find_model
from vlmeval_findit.protocol import PROVIDER_KIND, Identity, identity_conflicts
from vlmeval_findit.storage import identity_from, identity_values, read_identity


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stranger's package, installed."""
    return install(tmp_path_factory.mktemp("package"))


@pytest.mark.sees("FINDIT_PLUGINS")
def test_the_file_of_the_page_adds_its_rows(plugin_file: Path) -> None:
    """FINDIT_PLUGINS names it."""
    with known_here(files=(plugin_file,)):
        row = find_model("cornered-7b")
        assert row is not None
        variant = parse("FindIt_Pascal_xxyy_json")
        assert row.space(variant) == space_from("grid512")
        assert reference_size(space_from("grid512"), 100, 50) == (512, 512)
        assert variant.name == "FindIt_Pascal_xxyy_json"
        assert variant.format_place[0] == len(REPRESENTATIONS.builtin)
        plugin = MODELS.plugin_of("Cornered")
        assert plugin is not None
        assert plugin.name == "mine.py"
        assert re.fullmatch("sha256:[0-9a-f]{12}", plugin.version)
        assert plugin_rows.reported() == []
        output = findit.prompt("cat", "xxyy_json", "a.jpg")
        assert "x_min, x_max, y_min, y_max" in str(output)
        result = findit.read("[[0, 256, 0, 512]]", "xxyy_text", size=(100, 50), space="grid512")
        assert result.boxes == ((0, 0, 50, 50),)
        with pytest.raises(ValueError, match="Cornered needs a server: base_url="):
            findit.open_model("Cornered")
    assert find_model("cornered-7b") is None
    with pytest.raises(SpaceError):
        space_from("grid512")


def test_builtin_rows_look_for_no_plugin() -> None:
    """Neither imports nor built-in names look for entry points or run a file."""
    package = ROOT / "vlmeval_findit"
    modules = {path.relative_to(ROOT).with_suffix("") for path in package.rglob("*.py")}
    heavy = {"host", "local", "dual_encoder", "_autoload", "__main__"}
    light = [".".join(each.parts) for each in modules if not heavy & {*each.parts}]
    assert len(light) > 200
    code = (
        "from importlib import import_module\n"
        "from vlmeval_findit.core import plugin_rows\n"
        "def refuse(group): raise AssertionError(f'{group} asked')\n"
        "plugin_rows.offered = refuse\n"
        f"for name in {[each.removesuffix('.__init__') for each in light]}:\n"
        "    import_module(name)\n"
        "import vlmeval_findit as findit\n"
        "from vlmeval_findit.benchmarks import parse\n"
        "from vlmeval_findit.boxes.spaces import space_from\n"
        "from vlmeval_findit.models.model_table import find_model\n"
        "for name in ('FindIt_Pascal_all_text', 'FindIt_RefL4Full_val_xyxy_json'):\n"
        "    parse(name).format_place\n"
        "find_model('Qwen3-VL'), find_model(''), space_from('standard')\n"
        "findit.read('[]', 'xyxy_json', size=(9, 9), space='grid1000')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_installed_packages_are_read_once_for_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading them takes 20 ms in a full environment, and there are several groups."""
    asked: list[dict[str, str]] = []

    def counted(**groups: str) -> metadata.EntryPoints:
        asked.append(groups)
        return metadata.EntryPoints()

    with known_here():
        with monkeypatch.context() as patch:
            patch.setattr(plugin_rows.metadata, "entry_points", counted)
            assert [plugin_rows.offered(group) for group in plugin_rows.Group] == [
                () for _ in plugin_rows.Group
            ]
        assert asked == [{}]


def test_of_two_equal_names_the_first_counts(
    tmp_path: Path, plugin_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = written(tmp_path / "other.py", MINE.replace("(512, 512)", "(64, 64)"))
    for first, second, size in ((plugin_file, other, 512), (other, plugin_file, 64)):
        with known_here(files=(first, second)):
            assert reference_size(Space("grid512"), 10, 10) == (size, size)
            reply_extent.cache_clear()
            assert main(["plugins"]) == 2  # A file that is named stops each command
        error = capsys.readouterr().err
        assert error.count(f"plug-in {second.name} sha256") == 3
        assert error.count(f"({first})") == 3


def test_the_list_fits_a_terminal(plugin_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--plugin", "no.py"]) == 2
    assert "the file does not exist" in capsys.readouterr().err
    assert main(["plugins"]) == 0
    assert "No plug-in adds a row" in capsys.readouterr().out
    assert main(["check", "xxyy", "--plugin", str(plugin_file)]) == 0
    assert capsys.readouterr().out.endswith("all right\n")
    assert main(["plugins", "--plugin", str(plugin_file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[::2]] == [
        ["models", "Cornered"], ["spaces", "grid512"], ["representations", "xxyy"],
    ]  # fmt: skip
    assert all(len(line) <= 80 or str(plugin_file) in line for line in lines)


RAISING = {  # a plug-in and a command; what is said
    "a table that cannot be had": (
        """
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise RuntimeError("no table of mine")
""",
        ["plugins"],
        2,
        r"raising.py .*RuntimeError: no table of mine",
    ),
    "a rule that raises for some datasets": (
        MINE.replace('Space("grid512")', '{"any": Space("grid512")}[question.family_name]'),
        ["models", "Cornered"],
        1,
        r"plug-in raising.py \(.*raising.py, line 8\) raised KeyError: '.*'",
    ),
    "the same in the list": (
        MINE.replace('Space("grid512")', '{"any": Space("grid512")}[question.family_name]'),
        ["models"],
        1,
        r"plug-in raising.py \(.*raising.py, line 8\) raised KeyError: '.*'",
    ),
}


@pytest.mark.parametrize("name", RAISING)
def test_what_a_plugin_raises_is_a_sentence_that_names_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, command, status, said = RAISING[name]
    path = written(tmp_path / "raising.py", text)
    with known_here():
        assert main([*command, "--plugin", str(path)]) == status
    message = capsys.readouterr().err
    assert re.search(said, message)
    assert "Traceback" not in message


SOURCE = """
from vlmeval_findit.data.sources import DataSource
SOURCES = DataSource(name="Mine", **{{"licence": "CC0", "read": lambda folder: [], {fields}}})
"""


@pytest.mark.parametrize(
    ("fields", "command", "said"),
    [
        ('"read": "coco"', ["plugins"], "read should be a function, and is 'coco'"),
        ('"licence": None', ["data", "list"], "licence should be text, and is None"),
        ('"title": 7', ["models"], "title should be text, and is 7"),
        ('"counts": None', ["plugins"], "counts should be Counts, and is None"),
        ('"parts": 3', ["plugins"], "parts should be Counts by name, and is 3"),
        ('"read": lambda folder: None', ["check", "Mine", "--from", "."], "Mine gives None"),
        (
            '"read": lambda folder: ["a"]',
            ["check", "Mine", "--from", "."],
            "PublishedPart, and has",
        ),
    ],
)
def test_a_set_with_fields_of_another_type_is_refused(
    fields: str, command: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "sets.py", SOURCE.format(fields=fields))
    with known_here():
        assert main([*command, "--plugin", str(path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_its_provider_is_asked_in_its_protocol(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACME_KEY", "a-key")
    name = "FindIt_Demo_xyxy_json"
    model = "{name: PlateReader, served: plate-reader-1}"
    written(Path("sweep.yaml"), f"models: [{model}]\ndatasets: [{name}]\nlimit: 2\n")
    with known_here(site):
        answers = perfect_answers("PlateReader", [name])

        def script(asked: Asked, number: int) -> Answer:
            assert (asked.path[-8:], asked.headers["x-acme-key"]) == ("/answers", "a-key")
            output = answers[content(asked.body)]
            return Answer(json.dumps({"answer": output, "read": 90, "written": 7}).encode())

        with ChatServer(script) as server:
            sweep = ["sweep", "sweep.yaml", "--base-url", server.url]
            for _ in range(2):
                assert main([*sweep, "--provider", "acme"]) == 0
            assert len(server.asked) == 2
        path = Path(f"outputs/PlateReader/PlateReader_{name}.json")
        assert metric_values(path)["f1"] == 100
        recorded = read_identity(path)
        assert recorded is not None
        assert recorded.plugins == {"findit-plates": "0.1.0"}
        assert recorded.answering.kind == f"{PROVIDER_KIND}acme"
        capsys.readouterr()
        assert main([*sweep, "--provider", "acne"]) == 2
        assert "unknown provider 'acne': did you mean acme?" in capsys.readouterr().err


def plugins_of(predictions_file: Path) -> dict[str, str]:
    path = predictions_file.with_name(f"{predictions_file.stem}_provenance.json")
    result: dict[str, str] = json.loads(path.read_text())["plugins"]
    return result


def test_with_a_plugin_and_without_it_are_two_runs() -> None:
    without = Identity("m", "d")
    with_it = replace(without, plugins={"p": "1.0"})
    (lost,), (added,) = identity_conflicts(with_it, without), identity_conflicts(without, with_it)
    assert str(lost) == "plug-in p: recorded 1.0, now not set"
    assert str(added) == "plug-in p: recorded not set, now 1.0"
    assert without.digest != with_it.digest
    # A record of before this version says nothing of them, and is the same.
    assert "plugins" not in identity_values(without)
    for identity_ in (without, with_it):
        assert identity_from(json.loads(json.dumps(identity_values(identity_)))) == identity_


@pytest.mark.slow
@pytest.mark.host
def test_its_benchmark_runs_under_the_hosts_runner(
    site: Path,
    plugin_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    require_host()
    env = {**environment(tmp_path / "lmu"), "PYTHONPATH": path_with(site)}
    env |= {"FINDIT_TABLES": str(tmp_path), "FINDIT_IMAGES": f"Plates={tmp_path / 'Plates'}"}
    run(["-m", "findit_plates"], [str(tmp_path)], tmp_path, env)
    with ChatServer(in_turn(completion("It says ABC."))) as server:
        words = f"--model PlateReader --base-url {server.url} --work-dir runs --limit 4"
        words += f" --data Plates_Few FindIt_Demo_xxyy_json --plugin {plugin_file}"
        done = run(RUN_FINDIT, words.split(), tmp_path, env)
    assert done.returncode == 0, done.stdout
    path = predictions(tmp_path / "runs", "PlateReader", "Plates_Few")
    assert metric_values(path)["Accuracy"] == 25
    assert plugins_of(path) == {"findit-plates": "0.1.0"}
    boxes = predictions(tmp_path / "runs", "PlateReader", "FindIt_Demo_xxyy_json")
    assert plugins_of(boxes).keys() == {"findit-plates", "mine.py"}
    recorded = read_identity(boxes)
    assert recorded is not None
    assert recorded.space == {"kind": "longer1000"}
    monkeypatch.chdir(tmp_path)
    with known_here(site, files=(plugin_file,)):
        assert main(["leaderboard", "runs", "--out", "board"]) == 0
        assert "25.0" in capsys.readouterr().out
        assert main(["report", "runs", "--out", "report.html"]) == 0
        assert "findit-plates 0.1.0" in Path("report.html").read_text()
        capsys.readouterr()
    with known_here(site):
        assert main(["leaderboard", "runs", "--out", "part"]) == 0
        output = capsys.readouterr()
        assert output.err.startswith("left out: ")
        assert "plug-in mine.py: recorded" in output.err
        assert "25.0" in output.out
    # Where it is not here, the run says what it needs.
    for command in (["leaderboard", "runs"], ["score", str(path)]):
        assert main(command) == 2
        output = capsys.readouterr().err
        assert "plug-in findit-plates: recorded 0.1.0, now not here: pip install" in output
