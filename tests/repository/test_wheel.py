"""The wheel, installed where nothing of the clone can be reached: it is complete.

What a light installation runs is run here.  The whole demonstration is run from a wheel too, with
the extra ``demo``: ``test_demo_command.py``.  The other packages are those of this
environment (:mod:`fresh_venvs`), so it is not tested whether the newest ones of an index would do.
"""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from custom_data import ANNOTATIONS, make_images, write_coco
from fresh_venvs import FreshVenv, build, copy_of_the_clone, installed, needs_of
from paths import ROOT

from vlmeval_findit.core import EXTRAS
from vlmeval_findit.data import MAKERS

pytestmark = pytest.mark.slow

PACKAGE = ROOT / "vlmeval_findit"
CONFIGS = {f"configs/{path.name}" for path in (ROOT / "configs").glob("*.yaml")}
TABLES = {f"datasets_tsv/{table}.tsv" for table in MAKERS if table != "Probe"}  # drawn, not shipped
COPIED = {f"vlmeval_findit/{name}" for name in CONFIGS | TABLES}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_clone(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built where an older build has left a module that is no longer there."""
    stale = source / "build" / "lib" / "vlmeval_findit" / "stale.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    return build(source, "build_wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> FreshVenv:
    """``pip install vlmeval-findit``: no extra, so neither VLMEvalKit nor torch nor OpenCV."""
    return installed(wheel, (), tmp_path_factory.mktemp("light"))


# --- what is in it --------------------------------------------------------------------------------


def test_the_wheel_has_exactly_the_packages_files(wheel: Path) -> None:
    """Modules, templates, checkpoints, tables: a file that is forgotten fails here."""
    stored = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files = {name for name in contents(wheel) if ".dist-info/" not in name}
    for checkpoint in ("findit_nano", "findit_nano_px", "findit_nano_siglip"):
        assert f"vlmeval_findit/models/{checkpoint}/model.safetensors" in files
    assert files == stored | COPIED | {"vlmeval_findit_hook.pth"}


def test_a_wheel_of_the_source_archive_is_the_same(
    wheel: Path, source: Path, tmp_path: Path
) -> None:
    archive = build(source, "build_sdist", tmp_path / "sdist")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("vlmeval_findit-*/")
    for name in ("conftest.py", "docs/how-to/install.md", "configs/smoke.yaml", ".ci/run"):
        assert (unpacked / name).is_file(), name
    assert {f"datasets_tsv/{path.name}" for path in unpacked.glob("datasets_tsv/*.tsv")} == TABLES
    assert contents(build(unpacked, "build_wheel", tmp_path / "again")) == contents(wheel)


def contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as z:
        return {item.filename: item.CRC for item in z.infolist()}


def test_the_extra_all_is_complete_and_extras_are_documented(wheel: Path) -> None:
    needs: dict[str, set[str]] = {}
    for need in needs_of(wheel):
        if extra := re.search(r'(.*); .*extra == "(.*)"', need):
            needs.setdefault(extra[2], set()).add(extra[1].strip())
    apart = ("all", "docs", "test", "test-light")
    assert needs["all"] == set().union(*(needs[name] for name in needs if name not in apart))
    assert not [need for need in needs["all"] if need.startswith(("pytest", "mypy"))]
    assert {*EXTRAS.values()} <= {*needs}
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    told = {extra for names in re.findall(r"\[([a-z,-]+)\]'", page) for extra in names.split(",")}
    assert told == {*needs}


# --- what runs without an extra -------------------------------------------------------------------


def steps_of(workflow: str, job: str) -> list[str]:
    """Return the lines that each step of a job runs."""
    text = (ROOT / ".github" / "workflows" / workflow).read_text(encoding="utf-8")
    return [step["run"] for step in yaml.safe_load(text)["jobs"][job]["steps"] if "run" in step]


def test_the_steps_of_the_light_job_run(light: FreshVenv) -> None:
    """The first one installs what ``light`` is; the last one runs these tests."""
    install, command, tests = steps_of("tests.yml", "light")
    assert install == "python -m pip install ."
    done = light.shell(command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "50 model calls, 50 of them still to make" in done.stdout
    assert "[test-light]" in tests


def test_the_release_tries_commands_that_run(light: FreshVenv) -> None:
    (tried,) = (step for step in steps_of("release.yml", "build") if "fresh/bin/findit" in step)
    commands = [line.partition("bin/")[2] for line in tried.splitlines() if "bin/findit" in line]
    assert commands == ["findit --help", "findit models"]
    done = light.shell("\n".join(commands))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_light_tests_ask_for_no_models(wheel: Path) -> None:
    """So an installation without torch is tested."""
    marked = 'extra == "test-light"'
    names = {need.partition(">")[0] for need in needs_of(wheel) if need.endswith(marked)}
    heavy = {need.partition(">")[0] for need in needs_of(wheel) if 'extra == "all"' in need}
    assert {"pytest", "hypothesis"} <= names
    assert not names & heavy


def test_photographs_name_their_extra(light: FreshVenv) -> None:
    done = light.findit("data", "show", "FindIt_Demo_xyxy_json")
    assert done.returncode == 2
    assert "is not installed: pip install 'vlmeval-findit[photos]'" in done.stderr


def test_an_installed_package_makes_the_tables_that_ship(light: FreshVenv) -> None:
    done = light.findit("data", "show", "FindIt_Scenes_mini_xyxy_json")
    assert done.returncode == 0, done.stderr
    made = light.home / "LMUData" / "Scenes_mini.tsv"
    assert made.read_bytes() == (ROOT / "datasets_tsv" / "Scenes_mini.tsv").read_bytes()


def test_an_installed_command_imports_nothing_of_the_clone(light: FreshVenv) -> None:
    code = "import vlmeval_findit, sys; print(vlmeval_findit.__file__); print(sys.path)"
    where, path = light.run("python", "-c", code).stdout.splitlines()
    assert Path(where).is_relative_to(light.venv)
    assert str(ROOT) not in path
    for absent in ("torch", "vlmeval", "cv2", "pytest"):
        done = light.run("python", "-c", f"import {absent}")
        assert f"No module named '{absent}'" in done.stderr
    # ``uvx`` and ``pipx run`` look for a script that is called like the package.
    for command in (["vlmeval-findit"], ["python", "-m", "vlmeval_findit"]):
        done = light.run(*command, "--help")
        assert done.returncode == 0, done.stderr
        assert "Usage: findit " in done.stdout
        assert "run_findit.py" not in done.stdout


def test_custom_data_from_annotations_to_a_report(light: FreshVenv) -> None:
    """import, score, leaderboard, report, errors: from a wheel without an extra."""

    def ok(*arguments: str) -> str:
        done = light.findit(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    here = light.here
    make_images(here / "pictures")
    write_coco(here)
    flags = ("--image-root", "pictures", "--name", "Mine")
    assert "FindIt_Mine_xyxy_json" in ok("data", "import", "instances.json", *flags)
    table = (light.home / "LMUData" / "Mine.tsv").read_text(encoding="utf-8")
    rows = len(table.strip().splitlines()) - 1
    assert 0 < rows <= len(ANNOTATIONS)
    folder = here / "outputs" / "Qwen3-VL"
    folder.mkdir(parents=True)
    replies = [{"index": i, "prediction": '[{"bbox": [1, 2, 300, 400]}]'} for i in range(rows)]
    predictions = folder / "Qwen3-VL_FindIt_Mine_xyxy_json.json"
    predictions.write_text(json.dumps(replies))
    assert "Qwen3-VL" in ok("score", "outputs")
    assert "FindIt_Mine" in ok("errors", "outputs")
    ok("leaderboard", "outputs", "--out", "board")
    assert (here / "board" / "leaderboard.xlsx").is_file()
    ok("report", "outputs", "--out", "report.html")
    assert "Qwen3-VL" in (here / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("--data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano --limit 1", "run"),
        ("search --model FindIt-Nano --data Scenes_mini --limit 1", "run"),
        ("demo", "demo"),
    ],
)
def test_a_missing_package_is_a_line_with_the_extra(
    light: FreshVenv, command: str, extra: str
) -> None:
    done = light.findit(*command.split())
    assert done.returncode == 2, done.stdout + done.stderr
    *_, line = done.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert f"pip install 'vlmeval-findit[{extra}]'" in line, "there is no clone to install from"
    assert "Traceback" not in done.stderr
