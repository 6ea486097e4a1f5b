#!/usr/bin/env python3
"""A FastMCP server that makes a gateway's mistakes visible: fast.py stdio | fast.py http PORT

`slow` counts its cancellations (`cancelled` tells), `toggle` changes the tool list and says so, `ask` and `think` need the client:
a server request for handshake revisions, an input_required result for 2026-07-28. Speaks all revisions, without subscriptions/listen.
"""
import asyncio
import sys

import mcp_types as types
from fastmcp import Context, FastMCP

mcp = FastMCP("fast", version="1.0", instructions="A server for tests")
ended = {"cancelled": 0}


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two integers"""
    return a + b


@mcp.tool
def fail() -> str:
    """Always an error result"""
    raise ValueError("deliberate failure")


@mcp.tool
async def slow(ctx: Context, steps: int = 4, pause: float = 0.1) -> str:
    """Progress in steps"""
    try:
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
            await asyncio.sleep(pause)
    except asyncio.CancelledError:
        ended["cancelled"] += 1
        raise
    return "done"


@mcp.tool
def cancelled() -> str:
    """How many calls of slow were cancelled"""
    return str(ended["cancelled"])


@mcp.tool
async def say(ctx: Context, level: str = "info") -> str:
    """Emit one log message"""
    await ctx.log("hello from say", level=level)
    return "said"


@mcp.tool
async def toggle(ctx: Context) -> str:
    """Add or remove the tool `extra`, then announce it"""
    try:
        mcp.local_provider.remove_tool("extra")
        state = "removed"
    except Exception:
        mcp.tool(lambda: "extra", name="extra")
        state = "added"
    await ctx.send_notification(types.ToolListChangedNotification())
    return state


def modern(ctx):
    return getattr(ctx.request_context, "protocol_version", "") >= "2026-07-28"


@mcp.tool
async def ask(ctx: Context):
    """Ask the user for a name"""
    if not modern(ctx):
        answer = await ctx.elicit("your name?", response_type=str)
        return f"{answer.action}:{getattr(answer, 'data', None)}"
    if not ctx.input_responses:
        schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
        form = types.ElicitRequestFormParams(message="your name?", requested_schema=schema)
        return types.InputRequiredResult(input_requests={"q": types.ElicitRequest(params=form)}, request_state="s1")
    return f"answered:{ctx.input_responses['q']}:{ctx.request_state}"


@mcp.tool
async def think(ctx: Context, prompt: str = "hi"):
    """Sample from the client's model"""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    if not modern(ctx):
        answer = await ctx.session.create_message([message], max_tokens=10)
        return f"sampled:{answer.content}"
    if not ctx.input_responses:
        request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=10))
        return types.InputRequiredResult(input_requests={"s": request}, request_state="s1")
    return f"sampled:{ctx.input_responses['s']}"


@mcp.resource("fast://static")
def static() -> str:
    return "static text"


@mcp.resource("fast://item/{n}")
def item(n: str) -> str:
    return f"item {n}"


@mcp.prompt
def greet(name: str) -> str:
    return f"Greet {name}"


if __name__ == "__main__":
    quiet = dict(show_banner=False, log_level="ERROR")
    if sys.argv[1] == "http":
        mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), **quiet)
    else:
        mcp.run(transport="stdio", **quiet)
