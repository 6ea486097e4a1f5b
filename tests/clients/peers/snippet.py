#!/usr/bin/env python3
"""Two real clients with a client snippet as it was printed (JSON in SNIPPET): FastMCP takes it whole, the Python SDK its address."""
import asyncio
import json
import os

from fastmcp import Client as FastMcp
from mcp import Client

snippet = json.loads(os.environ["SNIPPET"])


async def main():
    async with FastMcp(snippet) as client:
        tools = await client.list_tools()
    print(len(tools), "tools for FastMCP:", *(tool.name for tool in tools))
    assert tools
    for server in snippet["mcpServers"].values():
        async with Client(server["url"]) as client:
            tools = (await client.list_tools()).tools
            print(len(tools), "tools for the Python SDK at", server["url"])
            assert tools


asyncio.run(main())
