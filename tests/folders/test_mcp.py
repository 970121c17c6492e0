"""`windrow mcp`, tested with the official Python client and with raw messages."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree  # noqa: E402
from test_folders import index  # noqa: E402

from windrow_server import Server, binary

LONG = "".join(f"Line {number} of the ledger.\n" for number in range(1, 5_001))
FILES = {
    "bread.txt": "Flour and water make bread.\n",
    "cake mix.txt": "A cake needs flour, sugar and eggs.\n",
    "notes.md": "# Baking\n\nFlour again.\n",
    "long.txt": LONG,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    work = tmp_path_factory.mktemp("mcp")
    for name, text in FILES.items():
        tree.write(work / "files", name, text)
    tree.write(work / "files", "box.zip", tree.archive({"one.txt": "First.", "two.txt": "Second."}))
    index(work / "files", work)
    return work


def with_client(data, use):
    """Calls `use` with a session of a server on a data folder. Returns its result."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def run():
        server = StdioServerParameters(command=str(binary()), args=["mcp", "--data", str(data)])
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            return await use(session, await session.initialize())

    return asyncio.run(asyncio.wait_for(run(), 60))


def call(data, name, **arguments):
    """The result of a tool: its content, and whether it failed."""
    async def use(session, _):
        return await session.call_tool(name, arguments)

    result = with_client(data, use)
    is_error = getattr(result, "is_error", None) or getattr(result, "isError", False)
    text = result.content[0].text
    return (text if is_error else json.loads(text)), is_error


def test_a_client_finds_the_tools(files):
    async def use(session, started):
        await session.send_ping()
        tools = (await session.list_tools()).tools
        templates = await session.list_resource_templates()
        return started, tools, templates

    started, tools, templates = with_client(files / "data", use)
    assert "windrow" in started.model_dump_json()
    assert [tool.name for tool in tools] == ["search", "read", "facets"]
    assert all(tool.annotations.model_dump(by_alias=True)["readOnlyHint"] for tool in tools)
    assert "file://" in templates.model_dump_json()


def test_search(files):
    found, is_error = call(files / "data", "search", query="flour", sort="largest")
    assert not is_error
    paths = [pathlib.PurePath(one["path"]).name for one in found["results"]]
    assert paths == ["cake mix.txt", "bread.txt", "notes.md"]
    page, _ = call(files / "data", "search", query="flour", sort="largest", limit=1, skip=1)
    assert page["results"] == found["results"][1:2]
    nothing, _ = call(files / "data", "search", query="flouer")
    assert nothing["results"] == [] and nothing["suggestion"] == "flour"
    assert "flouer" in nothing["notes"][0]
    wrong, is_error = call(files / "data", "search", query='"flour')
    assert is_error and "not closed" in wrong


def test_read(files):
    path = str(files / "files/cake mix.txt")
    read, is_error = call(files / "data", "read", path=path)
    assert not is_error and read["text"] == FILES["cake mix.txt"] and "next_offset" not in read
    path = str(files / "files/long.txt")
    lines, _ = call(files / "data", "read", path=path, first_line=4_000, last_line=4_001)
    assert lines["text"] == "Line 4000 of the ledger.\nLine 4001 of the ledger.\n"
    text, offset = "", 0
    while offset is not None:
        part, _ = call(files / "data", "read", path=path, offset=offset, length=50_000)
        text += part["text"]
        offset = part.get("next_offset")
    assert text == LONG and part["characters"] == len(LONG)
    box = files / "files/box.zip"
    several, is_error = call(files / "data", "read", path=str(box))
    assert is_error and f"{box}/!/one.txt" in several
    member, _ = call(files / "data", "read", path=f"{box}/!/two.txt")
    assert member["text"] == "Second."
    # Only indexed files are read.
    secret, is_error = call(files / "data", "read", path="/etc/passwd")
    assert is_error and "not indexed" in secret


def test_facets(files):
    counted, is_error = call(files / "data", "facets", query="flour", field="ext")
    assert not is_error
    assert counted == {"values": [{"value": "txt", "count": 2}, {"value": "md", "count": 1}]}


def test_resources(files):
    uri = (files / "files/cake mix.txt").as_uri()

    async def use(session, _):
        return await session.read_resource(uri)

    [content] = with_client(files / "data", use).contents
    assert content.text == FILES["cake mix.txt"]


def test_a_server_may_have_the_folder_open(files):
    with Server(files):
        found, is_error = call(files / "data", "search", query="bread")
        assert not is_error and len(found["results"]) == 1


def speak(data, *messages):
    """The replies to messages as they are on the wire."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in messages]
    ended = subprocess.run([str(binary()), "mcp", "--data", str(data)], input="\n".join(lines),
                           capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def request(method, number=1, **parameters):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_version_is_spoken(files, version):
    start = request("initialize", protocolVersion=version, capabilities={},
                    clientInfo={"name": "test", "version": "1"})
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    tool = request("tools/call", 2, name="facets", arguments={"query": "flour", "field": "kind"})
    started, called = speak(files / "data", start, note, tool)
    assert started["result"]["protocolVersion"] == version
    assert called["id"] == 2 and called["result"]["structuredContent"]["values"][0]["count"] == 2


def test_wrong_messages_are_answered(files):
    wrong = ["{", "[]", request("write"), request("tools/call", name="delete"),
             request("tools/call", name="search", arguments={"query": "a", "limit": 0}),
             request("tools/call", name="search", arguments={"query": "a", "fast": True}),
             request("tools/call", name="search", arguments={}),
             request("tools/call", name="facets", arguments={"query": "a", "field": "colour"}),
             request("resources/read", uri="file:///nowhere")]
    replies = speak(files / "data", *wrong, request("ping"))
    codes = [reply["error"]["code"] for reply in replies[:-1]]
    assert codes == [-32700, -32600, -32601, -32602, -32602, -32602, -32602, -32602, -32002]
    assert replies[-1]["result"] == {}


def test_a_missing_folder_is_a_failure_of_the_tool(tmp_path):
    [reply] = speak(tmp_path / "none", request("tools/call", name="search",
                                               arguments={"query": "bread"}))
    assert reply["result"]["isError"] and "windrow index" in reply["result"]["content"][0]["text"]
    assert os.listdir(tmp_path) == []
