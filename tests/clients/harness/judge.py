"""What was tried, what came of it, and what was expected: the verdict.

A unit is a few words (leg, server, client, feature …). `expected/LEG.txt` lists units that may not pass yet:

    everything ts2-modern elicitation | why, and what will change it

Words may be patterns (`*`, `[ab]`). A listed unit that passes fails the run, and so does a line that matches nothing, so that a list never
outlives its reasons.
"""
import fnmatch
from collections import Counter
from dataclasses import dataclass

from .places import HERE, OUT, write_json

MOST_SHOWN = 60  # failures printed of one leg; results.json has all


@dataclass
class Unit:
    words: tuple
    passed: bool | None  # None: nothing to judge, since it does not work without a gateway either
    detail: str = ""
    seconds: float = 0.0
    verdict: str = ""

    def name(self):
        return " ".join(self.words)


class Leg:
    """One leg's units and its list of expected failures."""

    def __init__(self, name, complete=True):
        self.name, self.complete = name, complete  # complete: every unit is tried, so every line must match something
        self.units = []
        self.expected = read_expected(name)

    def add(self, *words, passed, detail="", seconds=0.0):
        self.units.append(Unit(tuple(words), passed, str(detail), seconds))

    def judge(self):
        used = set()
        for unit in self.units:
            line = next((i for i, (words, _) in enumerate(self.expected) if matches(unit.words, words)), None)
            if line is not None:
                used.add(line)
            if unit.passed is None:
                unit.verdict = "not judged"
            elif unit.passed:
                unit.verdict = "passed" if line is None else "failed"
                if line is not None:
                    unit.detail = f"passes, but is listed in expected/{self.name}.txt; take it off the list"
            else:
                unit.verdict = "failed" if line is None else "expected"
                if line is not None:
                    unit.detail = f"{self.expected[line][1]} ({unit.detail})"
        if self.complete:
            for i, (words, _) in enumerate(self.expected):
                if i not in used:
                    self.units.append(Unit(words, False, f"a line of expected/{self.name}.txt that matches nothing", verdict="failed"))
        return self


def matches(unit, patterns):
    return len(unit) == len(patterns) and all(map(fnmatch.fnmatchcase, unit, patterns))


def read_expected(leg):
    file = HERE / "expected" / f"{leg}.txt"
    lines = []
    for line in file.read_text().splitlines() if file.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        words, bar, reason = line.partition("|")
        if not bar or not reason.strip():
            raise SystemExit(f"{file.name}: a line without a reason: {line}")
        lines.append((tuple(words.split()), reason.strip()))
    return lines


def report(legs):
    """Prints the verdicts, writes results.json, and tells whether all is well."""
    total = Counter()
    for leg in legs:
        counts = Counter(unit.verdict for unit in leg.units)
        total += counts
        print(f"\n{leg.name}: {counts['passed']} passed, {counts['failed']} failed, {counts['expected']} failed as expected, {counts['not judged']} not judged")
        failed = [unit for unit in leg.units if unit.verdict == "failed"]
        for unit in failed[:MOST_SHOWN]:
            print(f"  FAILED {unit.name()}: {unit.detail[:400]}")
        if len(failed) > MOST_SHOWN:
            print(f"  … and {len(failed) - MOST_SHOWN} more")
    write_json(OUT / "results.json", {
        leg.name: [dict(unit=unit.name(), verdict=unit.verdict, detail=unit.detail, seconds=round(unit.seconds, 2)) for unit in leg.units] for leg in legs})
    print(f"\nDetails: {OUT / 'results.json'}, logs beside it.")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['expected'] + total['not judged']} skipped")
    return total["failed"] == 0 and total["passed"] > 0
