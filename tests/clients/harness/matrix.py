"""Leg `matrix`: every client against every server, feature by feature, compared with what the two do without a gateway."""
import hashlib
import json
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .judge import Leg
from .places import DATA, HERE, MODULES, NODE, OUT, PYTHON1, PYTHON2, RUST_CLIENT, read_json, write_json
from .process import run

BASELINE = HERE / "baseline" / "matrix.json"
FEATURES = ["initialize", "list", "call", "tool_error", "progress", "logging", "cancel", "elicitation", "sampling", "roots",
            "list_changed", "subscribe", "read", "prompt", "completion", "end_session"]
# What is said in these must be the same to the byte, where the client speaks the same era on both sides.
SAME = {"list", "call", "tool_error", "read", "prompt", "completion"}
VARYING = {("time", "call")}  # has today's date in it


@dataclass(frozen=True)
class Client:
    name: str
    command: tuple
    mode: str

    def family(self):
        return self.name.split("-")[0]


def clients():
    ts, py = (NODE, HERE / "peers" / "ts.mjs"), HERE / "peers" / "py.py"
    lines = [("ts1", (*ts, "v1"), ["legacy"]), ("ts2", (*ts, "v2"), ["legacy", "auto", "modern"]),
             ("py1", (PYTHON1, py, "1"), ["legacy"]), ("py2", (PYTHON2, py, "2"), ["legacy", "auto"]),
             ("fastmcp", (PYTHON2, py, "fastmcp"), ["legacy", "auto"]), ("rmcp", (RUST_CLIENT,), ["legacy", "auto", "modern"])]
    return [Client(name if len(modes) == 1 else f"{name}-{mode}", command, mode) for name, command, modes in lines for mode in modes]


CLIENTS = clients()


def try_cell(client, server, target):
    """{feature: outcome} of one client at one target."""
    env = {"MATRIX_FEATURES": OUT / "features.json", "MATRIX_ROOT": f"file://{DATA}", "PARTS_MODULES": MODULES}
    code, out, err = run([*client.command, target, server.profile, client.mode], env=env, timeout=110)
    try:
        outcome = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        outcome = {"initialize": f"FAIL the client ended with {code}: {err.strip()[-200:]}"}
    return {feature: short(text) for feature, text in outcome.items()}


def short(text):
    """Without what differs from machine to machine, and long texts by their start and a sum."""
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text.replace(str(DATA), "{data}"))
    return text if len(text) <= 160 else f"{text[:100]}… {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def try_all(servers, chosen, target, jobs):
    """{server: {client: (outcome, seconds)}}, a few cells at a time."""
    # Two clients of a server at a time at most: none of them is to wait for the others' processes.
    gates = {server.name: threading.Semaphore(1 if server.alone else 2) for server in servers}
    cells = [(client, server) for client in CLIENTS if client.name in chosen for server in servers]

    def cell(pair):
        client, server = pair
        with gates[server.name]:
            start = time.monotonic()
            outcome = try_cell(client, server, target(server))
            return server.name, client.name, outcome, time.monotonic() - start

    results = {server.name: {} for server in servers}
    with ThreadPoolExecutor(jobs) as pool:
        for server, client, outcome, seconds in pool.map(cell, cells):
            results[server][client] = (outcome, seconds)
    return results


def direct(running, chosen, jobs):
    """Records what clients and servers do without a gateway; what was not tried now stays as it was."""
    baseline = read_json(BASELINE) if BASELINE.exists() else {}
    results = try_all(running.servers, chosen, running.target, jobs)
    for server, cells in results.items():
        for client, (outcome, _) in cells.items():
            baseline.setdefault(server, {})[client] = outcome
    write_json(BASELINE, baseline)
    return results


def through(gateway, running, chosen, jobs):
    everyone = {client.name for client in CLIENTS} <= set(chosen)
    leg = Leg("matrix", complete=everyone and set(read_json(BASELINE)) <= {server.name for server in running.servers})
    baseline = read_json(BASELINE)
    results = try_all(running.servers, chosen, lambda server: gateway.url(server.name), jobs)
    for server, cells in results.items():
        for client in CLIENTS:
            if client.name in cells:
                judge_cell(leg, server, client, baseline[server], *cells[client.name])
    write_json(OUT / "matrix.json", {server: {client: outcome for client, (outcome, _) in cells.items()} for server, cells in results.items()})
    return leg


def judge_cell(leg, server, client, baseline, now, seconds):
    measure, exact = measure_for(client, baseline)
    connected = now.get("initialize", "").startswith("ok")
    for feature in FEATURES:
        was, got = measure.get(feature), now.get(feature, "not tried")
        if was is None and feature not in now:
            continue
        words = (server, client.name, feature)
        # Without a connection that one fault is enough to tell of.
        if was is None or not was.startswith("ok") or not connected and feature != "initialize":
            leg.add(*words, passed=None, detail=f"{was} directly, {got} through the gateway", seconds=seconds)
            continue
        if got == "n/a" and era(now) != era(measure):
            leg.add(*words, passed=None, detail="the other era has no such thing", seconds=seconds)
            continue
        passed = got.startswith("ok")
        if passed and exact and (feature in SAME or feature == "initialize" and client.mode == "legacy") and (server, feature) not in VARYING:
            passed = was == got
        leg.add(*words, passed=passed, detail="" if passed else f"directly: {was}; through the gateway: {got}", seconds=seconds)


def era(outcome):
    """`legacy` or `modern`, from "ok legacy 2025-11-25"."""
    return outcome["initialize"].split()[1]


def measure_for(client, baseline):
    """What the cell is measured by: the same client without a gateway or, where the two share no revision, its own line in the other era
    (and line 2 of the TypeScript SDK for clients that know one era): joining them is what the gateway is for. Whether it is exact, too."""
    own = baseline[client.name]
    if own["initialize"].startswith("ok"):
        return own, True
    family = [other.name for other in CLIENTS if other.family() == client.family()]
    for name in [*family, "ts2-auto"]:
        if baseline[name]["initialize"].startswith("ok"):
            return {feature: text for feature, text in baseline[name].items() if feature != "end_session"}, False
    return own, True


SIGNS = {"passed": "ok", "failed": "FAILED", "expected": "listed", "not judged": "-"}


def table(leg):
    """For people: a table for each server, features down, clients across."""
    verdicts = {unit.words: SIGNS[unit.verdict] for unit in leg.units if len(unit.words) == 3}
    for server in dict.fromkeys(words[0] for words in verdicts):
        names = [client.name for client in CLIENTS if any(words[:2] == (server, client.name) for words in verdicts)]
        print(f"\n{server:<17}" + " ".join(f"{name:>14}" for name in names))
        for feature in FEATURES:
            row = [verdicts.get((server, name, feature), "") for name in names]
            if any(sign not in ("", "-") for sign in row):
                print(f"  {feature:<15}" + " ".join(f"{sign:>14}" for sign in row))


def default_jobs():
    return int(os.environ.get("DRAWBRIDGE_JOBS") or (os.cpu_count() or 2) + 1)
