"""The wheels, installed where nothing of the clone can be reached: they are complete.

A wheel of a clone has the weights of the small models; a released one, which is built of the source
archive, asks for their package.

What a light installation runs is run here.  The whole demonstration is run from a wheel too, with
the extra ``demo``: ``test_demo_command.py``.  The other packages are those of this
environment (:mod:`fresh_venvs`), so it is not tested whether the newest ones of an index would do.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from custom_data import ANNOTATIONS, make_images, write_coco
from fresh_venvs import (
    FreshVenv,
    build,
    copy_of_the_clone,
    installed,
    needs_of,
    source_archive,
)
from paths import ROOT

from vlmeval_findit.data import MAKERS

pytestmark = pytest.mark.slow

PACKAGE = ROOT / "vlmeval_findit"
CONFIGS = {f"configs/{path.name}" for path in (ROOT / "configs").glob("*.yaml")}
TABLES = {f"datasets_tsv/{table}.tsv" for table in MAKERS if table != "Probe"}  # drawn, not shipped
COPIED = {f"vlmeval_findit/{name}" for name in CONFIGS | TABLES}
MODELS = ("findit_nano", "findit_nano_px", "findit_nano_siglip")
WEIGHTS = {
    f"vlmeval_findit/weights/{model}/{path.name}"
    for model in MODELS
    for path in (ROOT / "weights" / model).iterdir()
}


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
def archive(source: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source archive, built where the wheel has left files, unpacked."""
    return source_archive(source, tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="module")
def released(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of the source archive, as ``python -m build`` makes it."""
    return build(archive, "build_wheel", tmp_path_factory.mktemp("released"))


@pytest.fixture(scope="module")
def weights(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of the weights."""
    return build(source / "weights", "build_wheel", tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def light(released: Path, tmp_path_factory: pytest.TempPathFactory) -> FreshVenv:
    """``pip install vlmeval-findit``: no extra, so neither VLMEvalKit nor torch nor OpenCV."""
    return installed(released, (), tmp_path_factory.mktemp("light"))


# --- what is in it --------------------------------------------------------------------------------


def test_the_wheel_has_exactly_the_packages_files(wheel: Path) -> None:
    """Modules, templates, weights, tables: a file that is forgotten fails here."""
    stored = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert files == stored | COPIED | WEIGHTS | {"vlmeval_findit_hook.pth"}


def test_the_source_archive_has_all_but_the_weights(archive: Path) -> None:
    for name in ("conftest.py", "docs/how-to/install.md", "configs/smoke.yaml", ".ci/run"):
        assert (archive / name).is_file(), name
    assert {f"datasets_tsv/{path.name}" for path in archive.glob("datasets_tsv/*.tsv")} == TABLES
    assert not list(archive.rglob("*.safetensors"))


def test_a_released_wheel_lacks_only_the_weights(released: Path, wheel: Path) -> None:
    complete = contents(wheel)
    assert contents(released) == {name: complete[name] for name in complete.keys() - WEIGHTS}
    (asked,) = set(needs_of(released)) - set(needs_of(wheel))
    assert re.fullmatch(r'vlmeval-findit-nano==[\w.]+; extra == "weights"', asked)


def test_an_archive_of_the_archive_asks_for_the_weights(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(build(archive, "build_sdist", tmp_path)) as tar:
        (name,) = (name for name in tar.getnames() if name.count("/") == 1 and "pyproject" in name)
        file = tar.extractfile(name)
        assert file is not None
        assert file.read() == (archive / "pyproject.toml").read_bytes()


def test_a_build_without_weights_that_asks_for_none_stops(source: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(source, clone, ignore=shutil.ignore_patterns("weights", "build"))
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build(clone, "build_wheel", tmp_path / "wheel")
    assert "weights is missing: get the whole clone" in caught.value.stderr.decode()


def test_the_clone_asks_for_nothing_even_after_an_archive(archive: Path, source: Path) -> None:
    """The line is written into the copy that is packed."""
    original = (ROOT / "pyproject.toml").read_bytes()
    assert (source / "pyproject.toml").read_bytes() == original
    assert (archive / "pyproject.toml").read_bytes() != original


def test_both_wheels_pass_the_check_of_a_release(
    released: Path, weights: Path, wheel: Path, tmp_path: Path
) -> None:
    for path in (released, weights):
        shutil.copy(path, tmp_path)
    check = [sys.executable, str(ROOT / ".ci" / "check_wheels.py"), str(tmp_path)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shutil.copy(wheel, tmp_path)  # that of the clone, under the same name
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "has weights" in done.stderr


def contents(wheel: Path) -> dict[str, int]:
    """Return the checksums of a wheel's files, but of those that say what it is."""
    with zipfile.ZipFile(wheel) as z:
        items = [item for item in z.infolist() if ".dist-info/" not in item.filename]
        return {item.filename: item.CRC for item in items}


# --- what runs without an extra -------------------------------------------------------------------


def steps_of(workflow: str, job: str) -> list[str]:
    """Return the lines that each step of a job runs."""
    text = (ROOT / ".github" / "workflows" / workflow).read_text(encoding="utf-8")
    return [step["run"] for step in yaml.safe_load(text)["jobs"][job]["steps"] if "run" in step]


def test_the_steps_of_the_light_job_run(wheel: Path, tmp_path: Path) -> None:
    """The first one installs the wheel of a clone; the last one runs these tests."""
    install, command, tests = steps_of("tests.yml", "light")
    assert install == "python -m pip install ."
    done = installed(wheel, (), tmp_path).shell(command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "50 model calls, 50 of them still to make" in done.stdout
    assert re.search(r"FindIt-Nano +100\.0 .* 3/50 ", done.stdout), done.stdout
    assert "[test-light,data]" in tests


def test_the_release_tries_commands_that_run(light: FreshVenv) -> None:
    (tried,) = (step for step in steps_of("release.yml", "build") if "fresh/bin/findit" in step)
    commands = [line.partition("bin/")[2] for line in tried.splitlines() if "bin/findit" in line]
    assert commands == ["findit --help", "findit models"]
    done = light.shell("\n".join(commands))
    assert done.returncode == 0, done.stdout + done.stderr


def test_photographs_name_their_extra(light: FreshVenv) -> None:
    done = light.findit("data", "show", "FindIt_Demo_xyxy_json")
    assert done.returncode == 2
    assert "is not installed: pip install 'vlmeval-findit[data]'" in done.stderr


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
        ("--data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano --limit 1", "weights"),
        ("--data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano --mode infer", "run"),
        ("--data MMStar --model FullImage", "run"),
        ("search --model FindIt-Nano --data Scenes_mini --limit 1", "weights"),
        ("demo", "weights"),
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


# --- where the weights are ------------------------------------------------------------------------

WHERE = """
from pathlib import Path
from vlmeval_findit.models import NANO_SIGLIP, SHIPPED, checkpoint_of, refuse_missing
for folder in (*SHIPPED.values(), checkpoint_of(NANO_SIGLIP)):
    try:
        refuse_missing(folder)
        print(Path(folder).parent.parent.name, Path(folder).parent.name)
    except ValueError as error:
        print(error)
"""


def test_each_small_model_without_weights_says_what_to_type(light: FreshVenv) -> None:
    said = light.run("python", "-c", WHERE).stdout.splitlines()
    line = (
        "the weights of the small models (vlmeval-findit-nano) are not installed: "
        "pip install 'vlmeval-findit[weights]'"
    )
    assert said == [line] * 3


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("released", "site-packages vlmeval_findit_nano"),
        ("of the clone", "vlmeval_findit weights"),
    ],
)
def test_weights_beside_the_code_come_before_those_of_the_package(
    kind: str, found: str, wheel: Path, released: Path, weights: Path, tmp_path: Path
) -> None:
    """So a clone never runs those of an older release."""
    ours = released if kind == "released" else wheel
    said = installed(ours, (), tmp_path, weights).run("python", "-c", WHERE)
    assert said.stdout.splitlines() == [found] * 3, said.stderr
