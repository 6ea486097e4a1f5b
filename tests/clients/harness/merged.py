"""Leg `merged`: one endpoint with many servers behind it, as a legacy and as a modern client see it."""
import json

from .gateway import Gateway
from .judge import Leg
from .places import HERE, OUT, PYTHON2, read_json
from .process import run

ONE_OF_EACH = ["everything", "filesystem", "memory", "git", "time", "fastmcp", "rmcp", "reference", "modern"]
TWINS = ["everything", "everything-stdio"]  # the same resources twice: their addresses must not collide


def through(program, running):
    leg = Leg("merged", complete=set(ONE_OF_EACH + TWINS) <= {server.name for server in running.servers})
    for group, names in (("all", ONE_OF_EACH), ("twins", TWINS)):
        chosen = [server for server in running.servers if server.name in names]
        if not chosen:
            continue
        with Gateway(program, {server.name: running.entry(server) for server in chosen}, name=f"gateway-{group}") as gateway:
            for mode in ("legacy", "2026-07-28"):
                look(leg, group, mode, gateway, running, chosen)
    return leg


def look(leg, group, mode, gateway, running, chosen):
    features = read_json(OUT / "features.json")
    plan = {
        "mode": mode, "gateway": gateway.url(), "twins": group == "twins",
        "servers": {server.name: dict(target=running.target(server), **features[server.profile]) for server in chosen},
    }
    code, out, err = run([PYTHON2, HERE / "peers" / "merged.py"], env={"MERGED_PLAN": json.dumps(plan)}, timeout=120)
    try:
        units = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        units = [["client", "run", f"ended with {code}: {err.strip()[-300:]}"]]
    for server, what, fault in units:
        leg.add(group, mode, server, what, passed=not fault, detail=fault)
