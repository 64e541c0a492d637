"""``--serve``: models that this machine serves itself."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace

from ..serving.programs import PROGRAMS, Serving


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
    if said is None or args.serve not in (None, said.program):
        said = Serving(args.serve)
    if args.gpus is not None:
        if args.gpus != int(args.gpus):
            raise ValueError(f"--gpus {args.gpus:g}: a whole number of this machine's, for --serve")
        said = replace(said, gpus=int(args.gpus))
    if args.tensor_parallel is not None:
        said = replace(said, tensor_parallel=args.tensor_parallel)
    if args.serve_args is not None:
        try:
            said = replace(said, arguments=tuple(shlex.split(args.serve_args)))
        except ValueError as error:
            raise ValueError(f"--serve-args {args.serve_args}: {error}") from None
    return said
