"""Leg `start`: the command line as a newcomer uses it. What the gateway prints at its start must work in a real client, as it stands."""
import json
import re
import shutil

from .judge import Leg
from .places import HERE, OUT, PYTHON2, write_json
from .process import Started, in_use, run
from .servers import BY_NAME, Running, prepare_data

STANDARD_PORTS = (8080, 9090)  # the listener and its metrics


def through(program):
    prepare_data()
    leg, memory = Leg("start"), BY_NAME["memory"].stdio_target()
    elsewhere = ["--listen", "127.0.0.1:0", "--admin-listen", "off"]
    # Without any argument, as the first thing that a newcomer does; on other ports where those are taken.
    bare = elsewhere if any(map(in_use, STANDARD_PORTS)) else []
    desktop = OUT / "config" / "desktop.json"
    write_json(desktop, {"mcpServers": {"Memory": memory}})
    variables = [part for name, value in memory["env"].items() for part in ("--env", f"{name}={value}")]
    try_way(leg, "examples", [program, *bare])
    try_way(leg, "run-command", [program, "run", *elsewhere, *variables, "--", memory["command"], *memory["args"]])
    try_way(leg, "desktop-file", [program, "serve", "--config", desktop, *elsewhere])
    with Running(["everything"]) as running:
        try_way(leg, "run-url", [program, "run", *elsewhere, running.urls["everything"]])
    return leg


def try_way(leg, way, command):
    folder = OUT / "empty"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with Started(f"start-{way}", command, cwd=folder) as gateway:
            gateway.wait_until(lambda: snippet(gateway.text()), 30, "a client snippet printed")
            printed = snippet(gateway.text())
            env = {"SNIPPET": json.dumps(printed)}
            code, out, err = run([PYTHON2, HERE / "peers" / "snippet.py"], env=env, timeout=60)
            leg.add(way, "snippet", "works", passed=code == 0, detail=err.strip()[-300:] or out.strip())
            line = curl_line(gateway.text())
            code, out, err = run(["bash", "-c", line or "exit 9"], timeout=30)
            leg.add(way, "curl", "line", "works", passed=code == 0 and '"result"' in out, detail=f"{line}: exit code {code}, {out[:200]} {err[:200]}")
            code = gateway.stop()
            leg.add(way, "ends", "with", "code", "0", passed=code == 0, detail=f"exit code {code}")
    except RuntimeError as error:
        leg.add(way, "starts", passed=False, detail=error)


def snippet(text):
    """The client snippet: the first JSON object in the text that has `mcpServers`."""
    decoder = json.JSONDecoder()
    for found in re.finditer(r"\{", text):
        try:
            value, _ = decoder.raw_decode(text, found.start())
        except ValueError:
            continue
        if isinstance(value, dict) and "mcpServers" in value:
            return value
    return None


def curl_line(text):
    """The line to try with `curl` in it, and those after it that a backslash continues."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if "curl " in line), None)
    if start is None:
        return None
    end = start
    while lines[end].endswith("\\") and end + 1 < len(lines):
        end += 1
    return "\n".join(lines[start:end + 1]).strip()
