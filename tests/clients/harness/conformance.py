"""Leg `conformance`: the official suite in server mode, on the reference server behind the gateway, over HTTP and over stdio."""
from concurrent.futures import ThreadPoolExecutor

from .judge import Leg
from .places import HERE, read_json, write_json
from .suite import compare, suite

BASELINE = HERE / "baseline" / "conformance.json"
REVISIONS = ["2025-06-18", "2025-11-25", "2026-07-28"]
SERVERS = ["reference", "reference-stdio"]


def judge_server(name, url):
    """{revision: ({scenario: {check: status}}, note)} for what answers at the URL."""
    return {revision: suite(f"server-{name}-{revision}", ["server", "--url", url, "--suite", "all", "--spec-version", revision], 180) for revision in REVISIONS}


def direct(running):
    """Records what the reference server does without a gateway. Its stdio form has no such record: the suite speaks HTTP only."""
    results = judge_server("direct", running.urls["reference"])
    write_json(BASELINE, {revision: checks for revision, (checks, _) in results.items()})
    return {revision: len(checks) for revision, (checks, _) in results.items()}


def through(gateway, servers):
    leg, baseline = Leg("conformance", complete=set(SERVERS) <= set(servers)), read_json(BASELINE)
    chosen = [name for name in SERVERS if name in servers]
    for name in chosen:
        gateway.greet(name)
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(chosen, pool.map(lambda name: judge_server(name, gateway.url(name)), chosen)))
    for name, revisions in results.items():
        for revision, (checks, note) in revisions.items():
            compare(leg, (name, revision), baseline[revision], checks, note)
    return leg
