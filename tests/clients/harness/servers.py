"""The real servers: how each is reached, and which entry of features.json says what can be tried on it."""
import contextlib
import json
import os
import subprocess
from dataclasses import dataclass, field

from .places import DATA, HERE, MODULES, NODE, OUT, PYTHON2, REFERENCE_SERVER, RUST_SERVER, write_json
from .process import MARK, MARK_NAME, Started, free_port

OFFICIAL = MODULES / "@modelcontextprotocol"


@dataclass(frozen=True)
class Server:
    name: str
    profile: str
    command: list  # for HTTP, {port} stands for the port
    env: dict = field(default_factory=dict)
    http: bool = False
    alone: bool = False  # state of the whole process shows to every client, so one client at a time

    def parts(self, port=None):
        command = [str(part).replace("{port}", str(port)) for part in self.command]
        env = {name: str(value).replace("{port}", str(port)) for name, value in self.env.items()}
        return command, env

    def stdio_target(self):
        (command, *args), env = self.parts()
        return {"command": command, "args": args, "env": {**env, MARK_NAME: MARK}}


EVERYTHING = OFFICIAL / "server-everything" / "dist" / "index.js"
REFERENCE_ENV = {"PYTHONPATH": REFERENCE_SERVER}
SERVERS = [
    Server("reference", "reference", [PYTHON2, "-m", "mcp_everything_server", "--port", "{port}"], REFERENCE_ENV, http=True, alone=True),
    Server("reference-stdio", "reference", [PYTHON2, HERE / "servers" / "reference_stdio.py"], REFERENCE_ENV),
    Server("everything", "everything", [NODE, EVERYTHING, "streamableHttp"], {"PORT": "{port}"}, http=True),
    Server("everything-stdio", "everything", [NODE, EVERYTHING, "stdio"]),
    Server("filesystem", "filesystem", [NODE, OFFICIAL / "server-filesystem" / "dist" / "index.js", DATA]),
    Server("memory", "memory", [NODE, OFFICIAL / "server-memory" / "dist" / "index.js"], {"MEMORY_FILE_PATH": DATA / "memory.jsonl"}),
    Server("git", "git", [PYTHON2, "-m", "mcp_server_git"]),
    Server("time", "time", [PYTHON2, "-m", "mcp_server_time", "--local-timezone", "UTC"]),
    Server("fastmcp", "fastmcp", [PYTHON2, HERE / "servers" / "fast.py", "http", "{port}"], http=True, alone=True),
    Server("rmcp", "rmcp", [RUST_SERVER, "stdio"]),
    Server("rmcp-http", "rmcp", [RUST_SERVER, "http", "{port}"], http=True),
    Server("modern", "modern", [NODE, HERE / "servers" / "modern_only.mjs", "{port}"], {"PARTS_MODULES": MODULES}, http=True),
]
BY_NAME = {server.name: server for server in SERVERS}


def prepare_data():
    """What the servers serve, and features.json with the paths filled in. The same at every run, to the byte."""
    (DATA / "repo").mkdir(parents=True, exist_ok=True)
    (DATA / "notes.txt").write_text("A note.\nZwei Zeilen, 文字.\n")
    entity = {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes bridges"]}
    (DATA / "memory.jsonl").write_text(json.dumps(entity) + "\n")
    if not (DATA / "repo" / ".git").exists():
        when = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00+0000", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00+0000", "HOME": str(DATA)}
        git = ["git", "-C", DATA / "repo", "-c", "user.name=Ann", "-c", "user.email=ann@example.test", "-c", "init.defaultBranch=main"]
        for arguments in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "A first commit"]):
            subprocess.run([*git, *arguments], check=True, env={**os.environ, **when})
    features = (HERE / "features.json").read_text().replace("{data}", str(DATA))
    write_json(OUT / "features.json", json.loads(features))


class Running:
    """The chosen servers: HTTP ones started, stdio ones described."""

    def __init__(self, names):
        self.servers = [server for server in SERVERS if server.name in names]
        self.urls = {}
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        prepare_data()
        with contextlib.ExitStack() as stack:
            waiting = []
            for server in self.servers:
                if server.http:
                    port = free_port()
                    command, env = server.parts(port)
                    # Its own group is killed at once at the end: how it stops is no concern of ours.
                    waiting.append((stack.enter_context(Started(f"server-{server.name}", command, env, grace=2)), port))
                    self.urls[server.name] = f"http://127.0.0.1:{port}/mcp"
            for started, port in waiting:
                started.wait_port(port)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def target(self, server):
        """What a client connects to without a gateway."""
        return self.urls.get(server.name) or json.dumps(server.stdio_target())

    def entry(self, server):
        """The server's entry in a gateway's configuration."""
        return {"url": self.urls[server.name]} if server.http else server.stdio_target()
