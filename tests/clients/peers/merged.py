#!/usr/bin/env python3
"""A client on a merged endpoint, which knows what each server offers by itself. The plan is JSON in MERGED_PLAN (see harness/merged.py).

Prints a list of [server, what, fault or ""].
"""
import asyncio
import contextlib
import json
import os
import re
import time

import mcp_types as types
from mcp import Client, StdioServerParameters, stdio_client

PLAN = json.loads(os.environ["MERGED_PLAN"])
FITS = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
units = []


@contextlib.asynccontextmanager
async def client(target, mode):
    with open(os.devnull, "w") as quiet:
        if target.startswith("{"):
            parts = json.loads(target)
            target = stdio_client(StdioServerParameters(command=parts["command"], args=parts["args"], env={**os.environ, **parts["env"]}), quiet)
        async with Client(target, mode=mode) as connected:
            yield connected


async def put(server, what, work):
    try:
        await asyncio.wait_for(work(), 20)
        units.append([server, what, ""])
    except Exception as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        units.append([server, what, f"{type(error).__name__}: {error}"[:300]])


async def pages(method, key):
    """A list to its end, whatever the page size."""
    items, cursor = [], None
    while True:
        result = await (method(cursor=cursor) if cursor else method())
        items += getattr(result, key)
        cursor = result.next_cursor
        if not cursor:
            return items


async def lists(c):
    """Names of tools and prompts, addresses of resources and templates. What a server does not offer is empty."""
    found = {}
    for kind, method, key, name in (("tools", c.list_tools, "tools", "name"), ("prompts", c.list_prompts, "prompts", "name"),
                                    ("resources", c.list_resources, "resources", "uri"),
                                    ("templates", c.list_resource_templates, "resource_templates", "uri_template")):
        found[kind] = []
        with contextlib.suppress(Exception):
            found[kind] = [str(getattr(item, name)) for item in await pages(method, key)]
    return found


def exposed(server, name, offered):
    """The merged name of a server's tool or prompt. One that does not fit is cut and ends in a sum; then it is looked up."""
    whole = f"{server}__{name}"
    if FITS.match(whole):
        return whole
    cut = re.compile(re.escape(server) + r"__[a-zA-Z0-9_-]*_[a-zA-Z2-7]{8}$")
    start = re.sub(r"[^a-zA-Z0-9_-]", "_", whole)[:40]
    return next((other for other in offered if cut.match(other) and FITS.match(other) and other.startswith(start)), whole)


def spell(result):
    parts = [[item.model_dump(mode="json", exclude_none=True) for item in result.content], result.structured_content, result.is_error]
    return json.dumps(parts, sort_keys=True)


def same(kind, expected, got):
    missing, extra = sorted(set(expected) - set(got)), sorted(set(got) - set(expected))
    assert not missing and not extra, f"{kind}: missing {missing[:5]}, too many {extra[:5]}"
    assert len(got) == len(set(got)), f"{kind}: something is listed twice"


async def on_server(c, name, alone, merged):
    """One server through the merged endpoint, next to what it offers `alone`."""
    plan = PLAN["servers"][name]
    for kind in ("tools", "prompts"):
        async def listed():
            same(kind, [exposed(name, item, merged[kind]) for item in alone[kind]], [item for item in merged[kind] if item.startswith(f"{name}__")])
        await put(name, kind, listed)
    for kind in ("resources", "templates"):
        async def listed():
            wanted = [f"{name}+{uri}" if PLAN["twins"] else uri for uri in alone[kind]]
            same(kind, wanted, [uri for uri in merged[kind] if uri in wanted])
        if alone[kind]:
            await put(name, kind, listed)

    async def called():
        tool, arguments = plan["call"]
        direct = spell(await alone["client"].call_tool(tool, arguments))
        through = spell(await c.call_tool(exposed(name, tool, merged["tools"]), arguments))
        assert direct == through, f"directly {direct[:120]}, through the gateway {through[:120]}"
    await put(name, "call", called)

    async def read():
        uri = plan["read"]
        direct = (await alone["client"].read_resource(uri)).contents[0]
        through = (await c.read_resource(f"{name}+{uri}" if PLAN["twins"] else uri)).contents[0]
        assert getattr(direct, "text", None) == getattr(through, "text", None), "another text"
    if plan.get("read"):
        await put(name, "read", read)

    async def prompted():
        prompt, arguments = plan["prompt"]
        direct = await alone["client"].get_prompt(prompt, arguments)
        through = await c.get_prompt(exposed(name, prompt, merged["prompts"]), arguments)
        assert direct.messages == through.messages, "other messages"
    if plan.get("prompt"):
        await put(name, "prompt", prompted)

    async def completed():
        prompt, argument, value = plan["completion"]
        def ask(c, prompt):
            return c.complete(types.PromptReference(type="ref/prompt", name=prompt), {"name": argument, "value": value})
        direct = await ask(alone["client"], prompt)
        through = await ask(c, exposed(name, prompt, merged["prompts"]))
        assert direct.completion.values == through.completion.values, "other values"
    if plan.get("completion"):
        await put(name, "completion", completed)


async def whole(merged, alone):
    """Nothing on the endpoint but what the servers offer, and all of it fit for model APIs."""
    for kind in ("tools", "prompts"):
        async def counted():
            offered = sum(len(lists[kind]) for lists in alone.values())
            assert len(merged[kind]) == offered, f"{len(merged[kind])} listed, {offered} offered by the servers"
            unfit = [item for item in merged[kind] if kind == "tools" and not FITS.match(item)]
            assert not unfit, f"unfit names: {unfit[:5]}"
        await put("all", kind, counted)
    for kind in ("resources", "templates"):
        async def counted():
            offered = sum(len(lists[kind]) for lists in alone.values())
            assert len(merged[kind]) == len(set(merged[kind])) == offered, f"{len(merged[kind])} listed, {offered} offered by the servers"
        await put("all", kind, counted)


async def settled(c, alone):
    """The lists once every server is in them: a list waits a bounded time for servers that have just been started, then goes without."""
    end = time.monotonic() + 30
    while True:
        merged = await lists(c)
        absent = [name for name in alone if not any(tool.startswith(f"{name}__") for tool in merged["tools"])]
        if not absent or time.monotonic() > end:
            return merged
        await asyncio.sleep(0.5)


async def main():
    async with contextlib.AsyncExitStack() as stack:
        alone = {}
        for name, plan in PLAN["servers"].items():
            c = await stack.enter_async_context(client(plan["target"], "auto"))
            alone[name] = {**await lists(c), "client": c}
        try:
            async with asyncio.timeout(60), client(PLAN["gateway"], PLAN["mode"]) as c:
                merged = await settled(c, alone)
                await whole(merged, alone)
                for name in PLAN["servers"]:
                    await on_server(c, name, alone[name], merged)
        except BaseException as error:
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            units.append(["all", "connect", f"{type(error).__name__}: {error}"[:300]])


try:
    asyncio.run(main())
except BaseException as error:  # a connection that ends badly after all was tried
    units.append(["all", "disconnect", f"{type(error).__name__}: {error}"[:300]])
print(json.dumps(units))
