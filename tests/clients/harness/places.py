"""Where things are: this folder, the installed parts, the results."""
import json
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
PARTS = Path(os.environ.get("DRAWBRIDGE_PARTS") or Path.home() / ".cache" / "drawbridge-parts")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
OUT = TARGET / "clients"
DATA = OUT / "data"

MODULES = PARTS / "npm" / "node_modules"
NODE = MODULES / ".bin" / "node"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
PYTHON1 = PARTS / "python1" / "bin" / "python"
PYTHON2 = PARTS / "python2" / "bin" / "python"
REFERENCE = PARTS / "reference" / "2.3.0"
REFERENCE_SERVER = REFERENCE / "examples" / "servers" / "everything-server"
REFERENCE_CLIENT = REFERENCE / ".github" / "actions" / "conformance" / "client.py"
RUST_CLIENT = PARTS / "rmcp" / "debug" / "rmcp_client"
RUST_SERVER = PARTS / "rmcp" / "debug" / "rmcp_server"


def read_json(path):
    return json.loads(Path(path).read_text())


def write_json(path, value):
    """With sorted keys and one entry a line, so that differences read well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
