"""Leg `outbound`: the gateway's own requests, judged by the suite's tests of clients.

The suite starts a server of its own and runs a client against it. That client is `as_client.py`: it starts a gateway with the suite's server
behind it and lets the Python SDK's conformance client work through the gateway, so that every check the suite makes on "the client" is made on
what the gateway sends.
"""
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor

from .judge import Leg
from .places import HERE, PYTHON2, REFERENCE_CLIENT, read_json, write_json
from .suite import compare, suite

BASELINE = HERE / "baseline" / "outbound.json"
SCENARIOS = {
    "2025-11-25": ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "json-schema-2020-12-preservation"],
    "2026-07-28": ["tools_call", "request-metadata", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
                   "json-schema-2020-12-preservation", "json-schema-ref-no-deref"],
}


def judge_client(name, command, jobs):
    """{revision: {scenario: {check: status}}} of the client that the command runs."""
    def one(pair):
        revision, scenario = pair
        arguments = ["client", "--command", shlex.join(map(str, command)), "--scenario", scenario, "--spec-version", revision, "--timeout", "60000"]
        checks, _ = suite(f"client-{name}-{revision}-{scenario}", arguments, 90)
        return revision, checks
    results = {revision: {} for revision in SCENARIOS}
    with ThreadPoolExecutor(jobs) as pool:
        for revision, checks in pool.map(one, [(revision, scenario) for revision, names in SCENARIOS.items() for scenario in names]):
            results[revision].update(checks)
    return results


def direct(jobs):
    results = judge_client("direct", [PYTHON2, REFERENCE_CLIENT], jobs)
    write_json(BASELINE, results)
    return {revision: len(checks) for revision, checks in results.items()}


def through(program, jobs):
    leg, baseline = Leg("outbound"), read_json(BASELINE)
    command = [sys.executable, HERE / "as_client.py", program, PYTHON2, REFERENCE_CLIENT]
    for revision, checks in judge_client("gateway", command, jobs).items():
        compare(leg, (revision,), baseline[revision], checks, "see suite/client-gateway-…/output.log")
    return leg
