#!/usr/bin/env python3
"""The Python clients of the matrix: py.py 1|2|fastmcp TARGET PROFILE MODE (run by an interpreter that has that line).

TARGET is a URL or {"command": …, "args": […], "env": {…}} as JSON; PROFILE names an entry of the file in MATRIX_FEATURES; MODE is
legacy or auto (line 1 knows legacy only). Prints one JSON object: a feature's name and "ok …", "n/a" or "FAIL …".
"""
import asyncio
import contextlib
import json
import os
import sys
import time

LINE, TARGET, PROFILE, MODE = sys.argv[1:5]
with open(os.environ["MATRIX_FEATURES"]) as file:
    P = json.load(file)[PROFILE]
ROOT = os.environ.get("MATRIX_ROOT", "file:///srv/data")
FORM = {"name": "Ann", "username": "ann", "email": "a@example.test", "value": "Ann"}
seen = dict(message=0, progress=0, list_changed=0, updated=0, elicitation=0, sampling=0, roots=0)
outcome = {}


class NothingToTry(Exception):
    pass


def planned(value):
    if not value:
        raise NothingToTry
    return value


def cause(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"FAIL {type(error).__name__}: {error}"[:160]


async def put(feature, work):
    try:
        detail = await asyncio.wait_for(work(), 20)
        outcome[feature] = f"ok {detail}".rstrip()
    except NothingToTry:
        outcome[feature] = "n/a"
    except Exception as error:
        outcome[feature] = cause(error)


async def more_than(kind, before, seconds):
    end = time.monotonic() + seconds
    while seen[kind] <= before:
        assert time.monotonic() < end, f"no {kind}"
        await asyncio.sleep(0.05)
    return ""


def count(kind, result=None):
    async def callback(*_, **__):
        seen[kind] += 1
        return result
    return callback


async def on_message(message):
    kind = type(getattr(message, "root", message)).__name__
    seen["list_changed"] += "ToolListChanged" in kind
    seen["updated"] += "ResourceUpdated" in kind


def plain_json(value):
    """Models of either line as JSON in a fixed spelling, so that two runs can be compared."""
    if isinstance(value, list):
        return [plain_json(item) for item in value]
    return value.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(value, "model_dump") else value


def attribute(result, *names):
    return next((getattr(result, name) for name in names if hasattr(result, name)), None)


def spell(result):
    parts = [result.content, attribute(result, "structuredContent", "structured_content"), is_error(result)]
    return json.dumps([plain_json(part) for part in parts], sort_keys=True)


def is_error(result):
    return bool(attribute(result, "isError", "is_error"))


class Features:
    """What is tried, over an adapter with one shape for every SDK line."""

    def __init__(self, client):
        self.c = client
        self.era = client.era()

    async def all(self):
        for feature in ("list", "call", "tool_error", "progress", "logging", "elicitation", "sampling", "roots",
                        "list_changed", "cancel", "read", "subscribe", "prompt", "completion"):
            await put(feature, getattr(self, feature))

    async def list(self):
        tools = await self.c.list_tools()
        return f"{len(tools)} {' '.join(sorted(tool.name for tool in tools))}"

    async def call(self, feature="call", wanted=False):
        result = await self.c.call(*planned(P.get(feature)))
        assert is_error(result) == wanted, f"isError is not {wanted}"
        return spell(result)

    async def tool_error(self):
        return await self.call("tool_error", True)

    async def progress(self):
        await self.c.call(*planned(P.get("progress")), progress=True)
        return await more_than("progress", 0, 1)

    async def logging(self):
        planned(P.get("logging"))
        await self.c.set_level("debug")
        await self.c.call(*P["logging"], log=True)
        if P.get("logging_toggles"):
            # Without a session, the client before this one may have left it switched on: then this was off, and once more is on.
            with contextlib.suppress(AssertionError):
                return await more_than("message", 0, 2)
            await self.c.call(*P["logging"], log=True)
        return await more_than("message", 0, P.get("wait", 1))

    async def asked(self, kind):
        plan = planned(P.get(kind))
        result = await self.c.call(*plan.get(self.era, plan["legacy"]))
        assert seen[kind], f"client not asked: {str(result.content)[:80]}"
        return ""

    async def elicitation(self):
        return await self.asked("elicitation")

    async def sampling(self):
        return await self.asked("sampling")

    async def roots(self):
        return await self.asked("roots")

    async def list_changed(self):
        plan, before = planned(P.get("list_changed")), seen["list_changed"]
        async with self.listening(tools_list_changed=True):
            await self.c.call(*plan)
            try:
                return await more_than("list_changed", before, 1.5)
            finally:
                if P.get("toggles"):
                    await self.c.call(*plan)

    @contextlib.asynccontextmanager
    async def listening(self, **what):
        """A modern client hears of changes on a stream that it opens; a legacy one is told."""
        if self.era == "legacy":
            yield
            return
        async with self.c.listen(**what) as stream:
            async def pump():
                async for event in stream:
                    seen["list_changed"] += "ToolsListChanged" in type(event).__name__ or "ToolListChanged" in type(event).__name__
                    seen["updated"] += "ResourceUpdated" in type(event).__name__
            task = asyncio.create_task(pump())
            try:
                yield
            finally:
                task.cancel()

    async def cancel(self):
        plan = planned(P.get("cancel"))
        before = await self.cancelled()
        task = asyncio.create_task(self.c.call(*plan))
        await asyncio.sleep(0.7)
        task.cancel()
        with contextlib.suppress(BaseException):
            await task
        end = time.monotonic() + 4
        while P.get("cancelled") and await self.cancelled() <= before:
            assert time.monotonic() < end, "the server did not hear of it"
            await asyncio.sleep(0.1)
        await self.c.call(*P["call"])
        return ""

    async def cancelled(self):
        return int((await self.c.call(*P["cancelled"])).content[0].text) if P.get("cancelled") else 0

    async def read(self):
        return json.dumps(plain_json(await self.c.read(planned(P.get("read")))), sort_keys=True)

    async def subscribe(self):
        uri = planned(P.get("subscribe"))
        if self.era == "legacy":
            await self.c.subscribe(uri)
        async with self.listening(resource_subscriptions=[uri]):
            if P.get("update"):
                await self.c.call(*P["update"])
                await more_than("updated", 0, P.get("wait", 1))
        if self.era == "legacy":
            await self.c.unsubscribe(uri)
        return ""

    async def prompt(self):
        name, arguments = planned(P.get("prompt"))
        listed, messages = await self.c.prompt(name, arguments)
        return f"{listed} {json.dumps(plain_json(messages), sort_keys=True)}"

    async def completion(self):
        return " ".join(await self.c.complete(*planned(P.get("completion"))))


class One:
    """An adapter over the session of SDK line 1."""

    def __init__(self, session, types):
        self.s, self.types = session, types

    def era(self):
        return "legacy"

    async def list_tools(self):
        return (await self.s.list_tools()).tools

    async def call(self, name, arguments, progress=False, log=False):
        return await self.s.call_tool(name, arguments, progress_callback=count("progress") if progress else None)

    async def set_level(self, level):
        await self.s.set_logging_level(level)

    async def read(self, uri):
        return (await self.s.read_resource(uri)).contents

    async def subscribe(self, uri):
        await self.s.subscribe_resource(uri)

    async def unsubscribe(self, uri):
        await self.s.unsubscribe_resource(uri)

    async def prompt(self, name, arguments):
        listed = (await self.s.list_prompts()).prompts
        return len(listed), (await self.s.get_prompt(name, arguments)).messages

    async def complete(self, name, argument, value):
        reference = self.types.PromptReference(type="ref/prompt", name=name)
        return (await self.s.complete(reference, {"name": argument, "value": value})).completion.values


class Two(One):
    """An adapter over the client of SDK line 2, and over FastMCP's, which is much like it."""

    def era(self):
        return "modern" if str(self.s.protocol_version) >= "2026" else "legacy"

    async def list_tools(self):
        result = await self.s.list_tools()
        return getattr(result, "tools", result)

    async def call(self, name, arguments, progress=False, log=False):
        callback = count("progress") if progress else None
        if LINE == "2":
            return await self.s.call_tool(name, arguments, progress_callback=callback)
        level = {"meta": {"io.modelcontextprotocol/logLevel": "debug"}} if log and self.era() == "modern" else {}
        return await self.s.call_tool(name, arguments, progress_handler=callback, raise_on_error=False, **level)

    async def set_level(self, level):
        if self.era() == "legacy":
            await self.s.set_logging_level(level)

    async def read(self, uri):
        result = await self.s.read_resource(uri)
        return getattr(result, "contents", result)

    async def subscribe(self, uri):
        await (self.s if LINE == "2" else self.s.session).subscribe_resource(uri)

    async def unsubscribe(self, uri):
        await (self.s if LINE == "2" else self.s.session).unsubscribe_resource(uri)

    def listen(self, **what):
        if LINE != "2":  # FastMCP's client has no such thing
            raise NothingToTry
        return self.s.listen(**what)

    async def prompt(self, name, arguments):
        listed = await self.s.list_prompts()
        return len(getattr(listed, "prompts", listed)), (await self.s.get_prompt(name, arguments)).messages

    async def complete(self, name, argument, value):
        reference = self.types.PromptReference(type="ref/prompt", name=name)
        result = await self.s.complete(reference, {"name": argument, "value": value})
        return getattr(result, "completion", result).values


def process():
    """The command of a stdio target, or nothing for a URL."""
    if not TARGET.startswith("{"):
        return None
    target = json.loads(TARGET)
    return dict(command=target["command"], args=target["args"], env={**os.environ, **target.get("env", {})})


def handlers(types):
    """The callbacks that both SDK lines share."""
    text = types.TextContent(type="text", text="canned")
    return dict(
        elicitation_callback=count("elicitation", types.ElicitResult(action="accept", content=FORM)),
        sampling_callback=count("sampling", types.CreateMessageResult(role="assistant", content=text, model="m")),
        list_roots_callback=count("roots", types.ListRootsResult(roots=[types.Root(uri=ROOT, name="data")])),
        logging_callback=count("message"),
        message_handler=on_message,
    )


async def run_one():
    import mcp.types as types
    from mcp import ClientSession, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamablehttp_client
    command = process()
    with open(os.devnull, "w") as quiet:
        opened = stdio_client(StdioServerParameters(**command), quiet) if command else streamablehttp_client(TARGET)
        async with opened as (read, write, *_), ClientSession(read, write, **handlers(types)) as session:
            async def initialize():
                return f"legacy {(await session.initialize()).protocolVersion}"
            await put("initialize", initialize)
            if outcome["initialize"].startswith("ok"):
                await Features(One(session, types)).all()


def client_two(types, quiet):
    from mcp import Client, StdioServerParameters, stdio_client
    command = process()
    target = stdio_client(StdioServerParameters(**command), quiet) if command else TARGET
    level = {} if MODE == "legacy" else {"log_level": "debug"}
    return Client(target, mode=MODE, **level, **handlers(types))


def client_fastmcp(quiet):
    from fastmcp import Client
    from fastmcp.client.elicitation import ElicitResult
    from fastmcp.client.transports import StdioTransport
    command = process()
    target = StdioTransport(**command, keep_alive=False, log_file=quiet) if command else TARGET

    async def roots(*_):
        seen["roots"] += 1
        return [ROOT]
    return Client(target, mode=MODE, sampling_handler=count("sampling", "canned"), roots=roots, log_handler=count("message"),
                  elicitation_handler=count("elicitation", ElicitResult(action="accept", content=FORM)), message_handler=on_message)


async def run_two():
    import mcp_types as types
    with open(os.devnull, "w") as quiet:
        async with (client_two(types, quiet) if LINE == "2" else client_fastmcp(quiet)) as client:
            adapter = Two(client, types)

            async def initialize():
                return f"{adapter.era()} {client.protocol_version}"
            await put("initialize", initialize)
            await Features(adapter).all()


try:
    asyncio.run(asyncio.wait_for(run_one() if LINE == "1" else run_two(), 90))
except BaseException as error:  # whatever ends the run early is the outcome of the connection, or comes after all was tried
    outcome.setdefault("initialize", cause(error))
print(json.dumps(outcome))
