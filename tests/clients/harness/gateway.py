"""The gateway under trial: built, configured, started, stopped."""
import http.client
import json
import os
import subprocess

from .places import OUT, ROOT, TARGET
from .process import Started, free_port


def binary():
    """The program named by DRAWBRIDGE, else one built from this source with the profile `ci`."""
    if named := os.environ.get("DRAWBRIDGE"):
        return named
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--profile", "ci", "--bin", "drawbridge"], cwd=ROOT, check=True)
    return str(TARGET / "ci" / "drawbridge")


def configuration(port, entries):
    """A YAML file as an operator writes it: one key a line, values in flow style."""
    lines = [f"listen: 127.0.0.1:{port}", 'admin: { listen: "off" }', "drain: { delay: 0s, grace: 5s }", "servers:"]
    for name, entry in entries.items():
        lines.append(f"  {name}:")
        lines += [f"    {key}: {json.dumps(value)}" for key, value in entry.items()]
    return "\n".join(lines) + "\n"


class Gateway(Started):
    """`drawbridge serve` with these servers, ready to be talked to."""

    def __init__(self, program, entries, name="gateway"):
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        file = OUT / "config" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(configuration(self.port, entries))
        super().__init__(name, [program, "serve", "--config", file])
        try:
            self.wait_until(self.healthy, 30, "/healthz good")
        except BaseException:
            self.stop()
            raise

    def healthy(self):
        return healthy(self.port)

    def greet(self, server):
        """One handshake, so that what follows meets a server that has started; those of the suite have little patience."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "greeting", "version": "1"}}
        connection.request("POST", f"/mcp/{server}", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
                           {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
        connection.getresponse().read()
        connection.close()

    def url(self, server=None):
        return f"{self.base}/mcp/{server}" if server else f"{self.base}/mcp"


def healthy(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
