"""What ``pyproject.toml`` asks for: extras, bounds, the package of the weights."""

from __future__ import annotations

import ast
import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from paths import ROOT

from vlmeval_findit.core import EXTRAS

TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads(TEXT)["project"]
GROUPS: dict[str, list[str]] = PROJECT["optional-dependencies"]
OURS = PROJECT["name"]

# Of releases: whoever types one of them gets what it stood for.
EXTRAS_OF_1_0 = (
    "run local photos video marks cluster calibration notebook mlflow wandb trackio train demo all "
    "test docs"
).split()
FOR_DEVELOPERS = {"test", "test-light", "docs"}


def packages_of(extra: str) -> set[str]:
    """Return the packages of an extra, through the extras that it names."""
    packages: set[str] = set()
    for need in map(Requirement, GROUPS[extra]):
        if need.name == OURS:
            packages.update(*map(packages_of, need.extras))
        else:
            packages.add(need.name)
    return packages


def test_setup_py_says_nothing_that_pyproject_can() -> None:
    tree = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    (call,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setup"
    )
    assert [word.arg for word in call.keywords] == ["cmdclass"]
    assert PROJECT["dynamic"] == ["version"]


@pytest.mark.parametrize("name", EXTRAS_OF_1_0)
def test_extras_of_released_versions_are_still_there(name: str) -> None:
    assert GROUPS[name]


def test_joined_extras_bring_what_they_brought() -> None:
    for name, package in [("photos", "scikit-image"), ("video", "av"), ("marks", "opencv-python")]:
        assert package in packages_of(name)
    assert "pycocotools" in packages_of("calibration")


def test_the_extra_all_has_every_package_for_users() -> None:
    every = set().union(*(packages_of(name) for name in GROUPS if name not in FOR_DEVELOPERS))
    assert packages_of("all") == every
    assert not {"pytest", "mypy"} & every
    assert set(EXTRAS.values()) <= GROUPS.keys()


def test_every_extra_is_on_the_page_of_installation() -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    told = {extra for names in re.findall(r"\[([a-z,-]+)\]'", page) for extra in names.split(",")}
    renamed = {name for name, needs in GROUPS.items() if needs == [f"{OURS}[data]"]}
    assert told == GROUPS.keys() - renamed
    for name in renamed:
        assert f"`{name}`" in page


def test_a_package_is_bounded_alike_everywhere() -> None:
    bounds: dict[str, set[str]] = {}
    for needs in (PROJECT["dependencies"], *GROUPS.values()):
        for need in map(Requirement, needs):
            if need.name != OURS:
                bounds.setdefault(need.name, set()).add(str(need.specifier))
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}


def test_a_light_installation_has_lower_bounds() -> None:
    """Those that the job ``lowest`` installs."""
    for need in map(Requirement, (*PROJECT["dependencies"], *GROUPS["test-light"])):
        assert any(each.operator == ">=" for each in need.specifier), need


def test_an_upper_bound_is_a_major_release_with_a_reason() -> None:
    """The reason is a comment on the line or above it."""
    lines = TEXT.splitlines()
    bounded = [at for at, line in enumerate(lines) if re.match(r' +"[\w-]+>=[\d.]+,<', line)]
    assert len(bounded) > 5
    for at in bounded:
        assert "#" in lines[at] or lines[at - 1].strip().startswith("#"), lines[at]
        assert re.search(r',<\d+"', lines[at]), lines[at]


def test_the_light_tests_ask_for_no_models() -> None:
    """So an installation without torch is tested."""
    assert {"pytest", "hypothesis"} <= packages_of("test-light")
    assert not packages_of("test-light") & packages_of("all")


# --- the weights of the small models --------------------------------------------------------------


def test_who_runs_models_here_gets_the_weights() -> None:
    """A clone has them beside itself: nothing is asked for that an index would have to have."""
    assert GROUPS["weights"] == []
    for name in ("local", "train", "demo", "all"):
        assert "weights" in named_extras(name), name


def named_extras(extra: str) -> set[str]:
    named = {each for need in map(Requirement, GROUPS[extra]) for each in need.extras}
    own = {each for each in named if each in GROUPS}
    return own.union(*map(named_extras, own))


def test_nothing_is_asked_for_by_its_address() -> None:
    """An index refuses such metadata."""
    for needs in (PROJECT["dependencies"], *GROUPS.values()):
        assert not [need for need in needs if Requirement(need).url]


def test_the_weights_have_the_version_of_the_package() -> None:
    weights = tomllib.loads((ROOT / "weights" / "pyproject.toml").read_text(encoding="utf-8"))
    import vlmeval_findit

    assert Version(weights["project"]["version"]) == Version(vlmeval_findit.__version__)
    assert weights["project"]["requires-python"] == PROJECT["requires-python"]
