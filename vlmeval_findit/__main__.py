"""The program: ``findit``, ``python -m vlmeval_findit`` and ``run_findit.py``."""

import signal
import sys


def main() -> int:
    """Run the command line; Ctrl-C while it is imported ends the process without a traceback."""
    # Not where a shell's background job ignores the signal.
    has_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if has_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli import main as run

    if has_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


if __name__ == "__main__":
    sys.exit(main())
