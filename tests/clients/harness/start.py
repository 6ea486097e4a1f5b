"""Leg `start`: the command line as a newcomer uses it. What the gateway prints at its start must work in a real client, as it stands."""
import json
import os
import re
import shutil

from .judge import Leg
from .places import HERE, OUT, PYTHON2, write_json
from .process import Started, free_port, in_use, run
from .servers import BY_NAME, prepare_data

STANDARD_PORTS = (8080, 9090)  # the listener and its metrics


def through(program):
    prepare_data()
    leg, memory = Leg("start"), BY_NAME["memory"].stdio_target()
    listen = ["--listen", f"127.0.0.1:{free_port()}"]
    desktop = OUT / "config" / "desktop.json"
    write_json(desktop, {"mcpServers": {"Memory": memory}})
    # `env` as a program: `run --` has no other way to hand variables to the server.
    variables = [f"{name}={value}" for name, value in memory["env"].items()]
    ways = {
        "examples": [program],
        "run": [program, "run", *listen, "--", "env", *variables, memory["command"], *memory["args"]],
        "desktop-file": [program, "serve", "--config", desktop],
    }
    for way, command in ways.items():
        free = not any(map(in_use, STANDARD_PORTS))
        if not free and not os.environ.get("CI"):
            leg.add(way, "prints", "client", "snippet", passed=None, detail="a standard port is in use on this machine")
            continue
        try_way(leg, way, command)
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
    """The `curl` command, with lines that a backslash continues."""
    found = re.search(r"^[ \t]*(?:\$ )?(curl (?:.*\\\n)*.*)", text, re.MULTILINE)
    return found and found.group(1)
