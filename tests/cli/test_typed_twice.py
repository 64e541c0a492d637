"""An option that takes one value is refused with two, whichever command it is of."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from vlmeval_findit.cli import COMMANDS, Commands, main


def command_of(name: str) -> click.Command:
    command: click.Command = Commands("findit")
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word) or command
    return command


def options_of(command: click.Command) -> Iterator[click.Option]:
    for param in command.params:
        if isinstance(param, click.Option) and not param.is_flag:
            yield param


def refusal(command: click.Command, words: list[str]) -> str:
    """Return what the command says of words that it refuses; "" if it takes them."""
    try:
        command.make_context("findit", words)
    except click.ClickException as error:
        return error.format_message()
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_takes_as_many_values_as_declared(name: str) -> None:
    command = command_of(name)
    for option in options_of(command):
        flag = option.opts[-1]
        one, two = ["one"] * option.nargs, ["two"] * option.nargs
        said = refusal(command, [flag, *one, flag, *two])
        assert (f"{flag} takes one value" in said) is not option.multiple
        if not option.multiple:
            values = f"{' '.join(one)} and {' '.join(two)}"
            if flag == "--key":
                values = "two values that may be credentials"
            assert f"has two: {values}. Type it once: {flag} " in said
        assert "takes one value" not in refusal(command, [flag, *one, flag, *one])


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("--key sk-1234", "--key sk-5678", "two values that may be credentials"),
        ("--serve-args --api-key=sk-1234", "--serve-args x", "two values that may be credentials"),
        ('--extra-body {"api_key":"sk-1234"}', "--extra-body {}", "two values that may be"),
        ("--base-url http://me:sk-1234@a/v1", "--base-url B", "http://***@a/v1 and B"),
    ],
)
def test_two_values_print_no_credential(
    first: str, second: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--data", "x", *first.split(), *second.split()]) == 2
    error = capsys.readouterr().err
    assert shown in error
    assert "sk-1234" not in error


def test_flags_of_vlmevalkit_stay_as_it_has_them() -> None:
    words = ["--data", "A", "--data", "B", "--retry", "3", "--retry", "4"]
    context = command_of("run").make_context("run", words)
    assert context.params["rest"] == ("--retry", "3", "--retry", "4")
    assert context.params["data"] == ("A", "B")


def test_compare_shows_one_page() -> None:
    command = command_of("compare")
    assert "no value and x" in refusal(command, ["a", "b", "--show", "--show", "x"])
    assert refusal(command, ["a", "b", "--show", "--show"]) == ""
