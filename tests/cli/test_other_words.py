"""Words and flags of other programs lead to ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from every_pair import every_pair
from few_fast import every_nth_fast

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.boxes import read
from vlmeval_findit.cli import (
    COMMANDS,
    command_base,
    command_named,
    main,
    main_command,
    other_words,
)
from vlmeval_findit.core import (
    MEANINGS,
    OTHER_COMMANDS,
    OTHER_FLAGS,
    RESULTS_VARIABLE,
    package_folder,
    program,
    synonyms,
)

FLAGS = {name: sorted(other_words.flags_of(command_named(name))) for name in COMMANDS}
NAMED = sorted({flag for each in FLAGS.values() for flag in each if flag.startswith("--")})
KEYS_ONLY = {"settings", "threads", "max-new-tokens"}
"""Names of ours that are keys in files, and no flags."""


def test_every_name_of_ours_is_a_flag_or_a_key() -> None:
    flags = {flag.removeprefix("--") for each in FLAGS.values() for flag in each}
    for row in MEANINGS:
        assert set(row.ours) <= flags | KEYS_ONLY, row
        assert row.theirs


def test_what_is_offered_exists() -> None:
    for rows in OTHER_COMMANDS.values():
        for row in rows:
            words = row.partition(" (")[0]
            flags_of_all = ("--version", "--help")
            assert any(words.startswith(name) for name in (*COMMANDS, *flags_of_all)), row
    assert not set(OTHER_COMMANDS) & set(COMMANDS)


@pytest.mark.parametrize("name", sorted(OTHER_COMMANDS))
def test_a_word_of_another_program_names_our_command(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(name.split()) == 2
    assert "Type: " in capsys.readouterr().err


def _said(typed: str, name: str) -> str:
    return other_words.unknown_flag(typed, FLAGS[name], name, main_command.flags_by_command)


def _dashed(word: str) -> str:
    return f"--{word}" if len(word) > 1 else f"-{word}"


def _commands_named(name: str, said: str) -> list[str]:
    """Return the commands whose flags a message may name: those that it names, or the typed one."""
    if "For run: " in said:
        return ["run"]
    if takers := re.search(r"; --[a-z-]+ is of (.*?)(?: and \d+ more)?$", said):
        return takers[1].split(", ")
    return [name, *re.findall(r"(?:findit|run_findit\.py) ([a-z-]+)", said)]


@pytest.mark.parametrize("name", every_nth_fast(sorted(COMMANDS), 3))
def test_a_hint_names_flags_of_a_command_that_has_them(name: str) -> None:
    """Every word of the tables behind every command."""
    for word in sorted(OTHER_FLAGS):
        typed = _dashed(word)
        if typed in FLAGS[name]:
            continue
        said = _said(typed, name)
        begin = f"unknown flag {typed!r}: "
        assert said.startswith(begin), (name, said)
        assert "did you mean" not in said, (name, said)
        places = _commands_named(name, said)
        assert set(places) <= {*COMMANDS, "data"}, (name, said)
        flags = [flag for place in places for flag in FLAGS.get(place, ())]
        outside_quotes = re.sub("'[^']*'", "", said)
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", outside_quotes):
            assert flag in flags, (name, said)
        if takers := re.search(r"(--[a-z-]+) is of ", said):
            assert all(takers[1] in FLAGS[place] for place in places), (name, said)


@pytest.mark.parametrize("name", every_nth_fast(sorted({*COMMANDS} - {"watch-checkpoints"}), 3))
def test_a_typed_flag_of_others_ends_in_its_hint(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whichever parser reads the command; ``watch-checkpoints`` passes flags on to ``run``."""
    monkeypatch.chdir(tmp_path)
    for typed in ("--format", "--max-new-tokens", "--tasks", "--api-key", "--overwrite"):
        if typed in FLAGS[name]:
            continue
        assert main([*name.split(), typed, "x"]) == 2
        said = capsys.readouterr().err.removeprefix("error: ").strip()
        assert said == _said(typed, name)


@pytest.mark.parametrize("flag", every_nth_fast(NAMED, 3))
def test_a_flag_of_other_commands_names_them(flag: str) -> None:
    for name, flags in FLAGS.items():
        if flag not in flags:
            said = _said(flag, name)
            assert ". Type: " not in said, said


def test_asking_is_advised_where_models_are_asked() -> None:
    said = _said("--max-new-tokens", "errors")
    assert "errors has none. For run: ask a server with --extra-body" in said
    said = _said("--max-new-tokens", "run")
    assert said.startswith("unknown flag '--max-new-tokens': ask a server with --extra-body")


@every_pair(
    "flag, form",
    ["-m", "-t", "--tasks", "--model_args", "--api_key", "--resume"],
    ["{} x", "{}=x", "--data FindIt_Demo_xyxy_json {} x"],
)
def test_a_flag_of_another_program_comes_before_what_is_missing(
    flag: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *form.format(flag).split()]) == 2
    assert f"unknown flag {flag!r}: " in capsys.readouterr().err


@pytest.mark.parametrize("name", every_nth_fast(sorted(COMMANDS), 3))
def test_letters_lead_to_no_flag_that_accepts_more(name: str) -> None:
    for flag in FLAGS[name]:
        word = flag.removeprefix("--")
        for typed in [word[:-1], f"{word}s", f"{word[0]}{word}", word[::-1]]:
            said = _said(f"--{typed}", name)
            near = said.partition("did you mean ")[2].removesuffix("?")
            assert near not in other_words.NEVER_GUESSED, typed


@pytest.mark.parametrize("flag", sorted(other_words.NEVER_GUESSED))
def test_flags_that_accept_more_exist(flag: str) -> None:
    assert any(flag in flags for flags in FLAGS.values())


@pytest.mark.parametrize("typed", ["--precession", "--formatting", "--maximal", "--worker"])
def test_letters_alone_decide_only_where_few_differ(typed: str) -> None:
    said = _said(typed, "run")
    assert said == f"unknown flag {typed!r}. Type: {program()} run --help"


def test_a_misspelt_flag_needs_no_vlmevalkit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vlmeval_findit.cli.run.package_folder", lambda: None)
    assert main(["run", "--data", "FindIt_Demo_xyxy_json", "--limt", "5"]) == 2
    assert "did you mean --limit?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run --model FindIt_Demo_xyxy_json --data FullImage", "that is a dataset"),
        ("run --model FindIt-Nano --data FullImage", "that is a model"),
    ],
)
def test_exchanged_names_are_told(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["help"], "Usage: {} [OPTIONS] COMMAND"),
        (["help", "run"], "Usage: {} run"),
        (["run", "help"], "Usage: {} run"),
        (["score", "help"], "Usage: {} score"),
        (["help", "data"], "Usage: {} data"),
        (["data", "help"], "Usage: {} data"),
        (["help", "data", "get"], "Usage: {} data get"),
    ],
)
def test_the_word_help_is_the_flag(
    words: list[str],
    first: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 0
    assert capsys.readouterr().out.startswith(first.format(program()))


def test_a_folder_called_help_is_a_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "help").mkdir()
    assert main(["leaderboard", "help"]) == 2
    assert capsys.readouterr().err.startswith("error: help")


def test_a_flag_of_vlmevalkit_is_never_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its next version calls its flags."""
    if package_folder() is None:
        pytest.skip("VLMEvalKit is not installed")
    monkeypatch.setattr(
        synonyms, "_by_typed_name", lambda: {"retry": [synonyms.Meaning(["model"], ["retry"])]}
    )
    assert main(["run", "--retry", "3", "--model", "FindIt-Nano"]) == 2
    assert capsys.readouterr().err.startswith("error: --model without --data")


def _written() -> Iterator[tuple[str, str]]:
    for name in COMMANDS:
        for option in command_named(name).params:
            if isinstance(option.type, type(command_base.WRITTEN)):
                yield name, option.opts[0]


@pytest.mark.parametrize(("name", "flag"), [*_written()])
def test_what_cannot_be_written_is_refused_first(
    name: str, flag: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert main([*name.split(), flag, str(tmp_path / "file" / "below")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {flag} {tmp_path}/file/below: ")


@pytest.mark.parametrize("name", ["report", "leaderboard", "errors", "audit", "coords"])
def test_without_a_run_the_folder_of_results_is_taken(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(RESULTS_VARIABLE, raising=False)
    assert main([name]) == 2
    assert "there is no outputs here" in capsys.readouterr().err
    (tmp_path / "outputs").mkdir()
    assert main([name]) == 2
    said = capsys.readouterr().err
    assert "no run is named: all of outputs" in said
    assert "error: outputs: no " in said


@pytest.mark.parametrize("name", ["score", "export --to coco"])
def test_commands_that_change_runs_want_them_named(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outputs").mkdir()
    assert main(name.split()) == 2
    assert "Missing argument 'RUN...'" in capsys.readouterr().err


def test_every_format_is_listed_as_its_name_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    out = capsys.readouterr().out
    rows = [line.split(maxsplit=1) for line in out.splitlines() if line.startswith("  ")]
    assert len(rows) == 97
    assert "97 formats of Scenes_mini" in out
    for name, shown in rows:
        variant = parse(f"FindIt_Scenes_mini_{name}")
        if variant.representation != "unconstrained":
            answer = read(shown, variant.reply)
            assert (answer.boxes, answer.reason) == (((4, 6, 20, 18),), None), name
