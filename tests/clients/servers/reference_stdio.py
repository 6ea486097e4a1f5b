#!/usr/bin/env python3
"""The Python SDK's conformance server over stdio, so that a gateway's stdio side can be judged by the suite, which speaks HTTP only."""
from mcp_everything_server.server import mcp

mcp.run("stdio")
