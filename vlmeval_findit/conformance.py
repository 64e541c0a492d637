"""``python -m vlmeval_findit.conformance``: does our scorer agree with the authors'?"""

import sys

from .benchmarks.findit.conformance import main

if __name__ == "__main__":
    sys.exit(main())
