"""The application behind uvicorn. wsgi.py is the same behind gunicorn, but for what only one of them can do."""

import asyncio
import hashlib
import json
import os
import time
from urllib.parse import parse_qsl

HERE = os.path.dirname(__file__)
PIXEL = b'<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="4" height="4"/></svg>'
cut_uploads = []


async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        return await lifespan(receive, send)
    if scope["type"] == "websocket":
        return await echo(receive, send)
    name = scope["path"].strip("/").split("/")[-1] or "health"
    query = dict(parse_qsl(scope["query_string"].decode()))
    if name.endswith(".html"):
        with open(os.path.join(HERE, os.path.basename(name)), "rb") as page:
            return await answer(send, page.read(), "text/html; charset=utf-8")
    await globals().get("do_" + name, nothing)(scope, query, receive, send)


async def lifespan(receive, send):
    for done in "startup", "shutdown":
        await receive()
        await send({"type": f"lifespan.{done}.complete"})


async def begin(send, status, *fields):
    fields = [(name.encode(), str(value).encode()) for name, value in fields]
    await send({"type": "http.response.start", "status": status, "headers": fields})


async def part(send, body, more=True):
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def answer(send, body, kind="text/plain", status=200, *fields):
    length = ("content-length", len(body))
    await begin(send, status, ("content-type", kind), length, ("cache-control", "no-store"), *fields)
    await part(send, body, False)


async def read(receive):
    """Takes the whole of a body; where the client has gone the answer goes nowhere."""
    length, digest, more = 0, hashlib.sha256(), True
    while more:
        message = await receive()
        body, more = message.get("body", b""), message.get("more_body", False)
        length += len(body)
        digest.update(body)
    return length, digest.hexdigest()


async def nothing(scope, query, receive, send):
    await answer(send, b"nothing of this name", "text/plain", 404)


async def do_health(scope, query, receive, send):
    await answer(send, b"up")


async def do_fields(scope, query, receive, send):
    await read(receive)
    fields = [(name.decode().lower(), value.decode()) for name, value in scope["headers"]]
    fields.sort(key=lambda field: field[0])
    seen = {"method": scope["method"], "target": scope["raw_path"].decode(), "fields": fields}
    await answer(send, json.dumps(seen).encode(), "application/json")


async def do_status(scope, query, receive, send):
    code = int(query["code"])
    fields = [("set-cookie", "a=1"), ("set-cookie", "b=2; Path=/"), ("x-empty", ""), ("vary", "accept")]
    if code < 300:
        fields.append(("etag", '"x"'))
    if 300 <= code < 304:
        fields.append(("location", "/elsewhere?a=b"))
    if code in (204, 304):
        await begin(send, code, *fields)
        return await part(send, b"", False)
    await answer(send, b"" if scope["method"] == "HEAD" else b"it is so", "text/plain", code, *fields)


async def do_bytes(scope, query, receive, send):
    n = int(query["n"])
    body = (bytes(range(251)) * (n // 251 + 1))[:n]
    await answer(send, body, "application/octet-stream")


async def do_chunks(scope, query, receive, send):
    await begin(send, 200, ("content-type", "text/plain"))
    for i in range(int(query["n"])):
        await part(send, (b"%07d\n" % i) * int(query.get("times", 1)))
        await asyncio.sleep(int(query.get("ms", 0)) / 1000)
    await part(send, b"", False)


async def do_sum(scope, query, receive, send):
    length, digest = await read(receive)
    seen = {"bytes": length, "sha256": digest}
    await answer(send, json.dumps(seen).encode(), "application/json")


async def do_refuse(scope, query, receive, send):
    """Answers before the body has come."""
    await answer(send, b"refused by the upstream", "text/plain", int(query["status"]))


async def do_late(scope, query, receive, send):
    await asyncio.sleep(int(query["ms"]) / 1000)
    await answer(send, PIXEL, "image/svg+xml")


async def do_busy(scope, query, receive, send):
    """Holds the whole server, as an application does that computes."""
    time.sleep(int(query["ms"]) / 1000)
    await answer(send, b"done")


async def do_events(scope, query, receive, send):
    await begin(send, 200, ("content-type", "text/event-stream"), ("cache-control", "no-store"))
    for i in range(int(query["n"])):
        await part(send, b"id: %d\ndata: %d\n\n" % (i, time.time() * 1000))
        await asyncio.sleep(int(query["ms"]) / 1000)
    await part(send, b"", False)


async def do_slowly(scope, query, receive, send):
    """Reads an upload slowly, and notes when it is cut."""
    upload = {"id": query["id"], "bytes": 0, "end": ""}
    cut_uploads.append(upload)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            upload["end"] = "cut"
            return
        upload["bytes"] += len(message.get("body", b""))
        if not message.get("more_body", False):
            upload["end"] = "whole"
            return await answer(send, b"whole")
        await asyncio.sleep(0.02)


async def do_uploads(scope, query, receive, send):
    mine = [u for u in cut_uploads if u["id"] == query["id"]]
    await answer(send, json.dumps(mine).encode(), "application/json")


async def echo(receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        message = await receive()
        if message["type"] != "websocket.receive":
            return
        await send({"type": "websocket.send", "text": message.get("text"), "bytes": message.get("bytes")})
