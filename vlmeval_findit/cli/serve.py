"""``--serve``: models that this machine serves itself."""

from __future__ import annotations

import argparse
import shlex

from ..engine.server_programs import PROGRAMS, Serving


def add_serve_flags(parser: argparse.ArgumentParser) -> None:
    """The flags, but ``--gpus``."""
    parser.add_argument(
        "--serve",
        metavar="PROGRAM",
        help=f"start a model of this machine as servers and ask those: {', '.join(PROGRAMS)}",
    )
    parser.add_argument(
        "--tensor-parallel", type=int, metavar="N", help="GPUs of each server (default: 1)"
    )
    parser.add_argument(
        "--serve-args", metavar="'--flag value'", help="more of each server's command line"
    )


def serving_from(args: argparse.Namespace, said: Serving | None = None) -> Serving | None:
    """How models are served, by a command line; ``said`` is what a sweep's file says.

    Raises:
        ValueError: it cannot be; the message says what to type.
    """
    if args.serve is None and said is None:
        return None
    if args.serve is not None and (said is None or said.program != args.serve):
        said = Serving(args.serve)
    assert said is not None
    gpus, each, more = said.gpus, said.tensor_parallel, said.arguments
    if args.gpus is not None:
        if args.gpus != int(args.gpus):
            raise ValueError(f"--gpus {args.gpus:g}: a whole number of this machine's, for --serve")
        gpus = int(args.gpus)
    if args.tensor_parallel is not None:
        each = args.tensor_parallel
    if args.serve_args is not None:
        try:
            more = tuple(shlex.split(args.serve_args))
        except ValueError as error:
            raise ValueError(f"--serve-args {args.serve_args}: {error}") from None
    return Serving(said.program, gpus, each, more)
