"""Run benchmarks, keep their figures: ``python -m tests.benchmarks [--write] [WORDS OF PYTEST]``.

``--write`` keeps new figures of the cases on the page and writes it, with ``--add`` new cases as
well; ``--page`` writes it and measures nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from tests.benchmarks import figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the figures, write the page")
    parser.add_argument("--add", action="store_true", help="keep cases that are new as well")
    parser.add_argument("--page", action="store_true", help="write the page of what is kept")
    chosen, words = parser.parse_known_args()
    status = 0
    if not chosen.page:
        named = any(
            not word.startswith("-") and Path(word.split("::")[0]).exists() for word in words
        )
        where = [] if named else [str(Path(__file__).parent)]
        status = int(pytest.main(["-s", "-n", "0", *words, *where]))
    if chosen.page:
        figures.write(figures.read())
    elif chosen.write:
        figures.keep(chosen.add)
    return status


if __name__ == "__main__":
    sys.exit(main())
