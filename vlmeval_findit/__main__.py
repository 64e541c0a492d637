"""The program: ``findit``, ``python -m vlmeval_findit`` and ``run_findit.py``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
