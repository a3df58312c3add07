"""Record the corpus again: ``python -m tests.corpus [family ...]``.

``--language`` writes only the numbers of nodes and the texts, where the language of programs has
changed and answers have not; it refuses while an answer differs.
"""

from __future__ import annotations

import argparse
import time

from tests.corpus.compare import differences
from tests.corpus.record import Record, answered, file_of, load, write
from tests.corpus.runs import FAMILIES

LANGUAGE = ("nodes", "text")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("family", nargs="*", help=f"of {', '.join(FAMILIES)}; default: all")
    parser.add_argument("--language", action="store_true", help="nodes and texts alone")
    chosen = parser.parse_args()
    unknown = set(chosen.family) - FAMILIES.keys()
    if unknown:
        parser.error(f"no family {', '.join(sorted(unknown))}")
    changed = 0
    for family in chosen.family or FAMILIES:
        kept = load(family) if file_of(family).exists() else {}
        records = {}
        for name, run in FAMILIES[family].items():
            started = time.process_time()
            record = answered(run)
            lines = differences(kept[name], record) if name in kept else ["new"]
            records[name] = record
            print(f"{family} {name}: {time.process_time() - started:.2f} s, {len(lines)} changed")
            print(*(f"    {line}" for line in lines), sep="\n", end="\n" if lines else "")
            changed += bool(_answers(lines))
            if chosen.language and name in kept:
                records[name] = {**kept[name], **_language(record)}
        if not (chosen.language and changed):
            write(family, records)
    return int(chosen.language and changed > 0)


def _language(record: Record) -> Record:
    return {key: record[key] for key in LANGUAGE if key in record}


def _answers(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith(LANGUAGE)]


if __name__ == "__main__":
    raise SystemExit(main())
