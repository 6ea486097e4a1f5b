"""The official conformance suite: how it is run and how its results are read."""
import re
import shutil

from .places import NODE, OUT, SUITE, read_json
from .process import run

# A check may appear more than once in a scenario: the worst counts.
RANK = {"INFO": 0, "SUCCESS": 1, "SKIPPED": 2, "WARNING": 3, "FAILURE": 4}


def suite(name, arguments, timeout, env=None):
    """Runs it: {scenario: {check: status}} and what it printed. Results stay in the folder `suite/NAME`."""
    folder = OUT / "suite" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    code, out, err = run([NODE, SUITE, *arguments, "--output-dir", folder], env=env, timeout=timeout)
    (folder / "output.log").write_text(out + err)
    return gather(folder), f"exit code {code}"


def gather(folder):
    scenarios = {}
    for file in sorted(folder.rglob("checks.json")):
        name = str(file.parent.relative_to(folder))
        name = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", re.sub(r"^(server|client)-", "", name))
        checks = scenarios.setdefault(name, {})
        for check in read_json(file):
            if RANK[check["status"]] >= RANK[checks.get(check["id"], "INFO")]:
                checks[check["id"]] = check["status"]
    return scenarios


def compare(leg, words, direct, through, note):
    """One unit for every check: what passes directly must pass through the gateway, and nothing new may fail."""
    for scenario in sorted(direct.keys() | through.keys()):
        before, after = direct.get(scenario, {}), through.get(scenario, {})
        for check in sorted(before.keys() | after.keys()):
            was, now = before.get(check), after.get(check, "absent")
            if was == "SUCCESS" and now == "INFO":
                # The suite's word for "does not apply": for instance a stream check on an answer that came at once, as JSON.
                leg.add(*words, scenario, check, passed=None, detail="does not apply through the gateway")
            elif was == "SUCCESS":
                leg.add(*words, scenario, check, passed=now == "SUCCESS", detail=now if scenario in through else f"scenario did not run, {note}")
            elif now == "FAILURE" and was != "FAILURE":
                leg.add(*words, scenario, check, passed=False, detail=f"{was or 'absent'} directly, FAILURE through the gateway")
            else:
                leg.add(*words, scenario, check, passed=None, detail=f"{was} directly, {now} through the gateway")
