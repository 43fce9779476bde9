"""The application behind gunicorn."""

import hashlib
import json
import time
from urllib.parse import parse_qsl

REASONS = {200: "OK", 201: "Created", 204: "No Content", 302: "Found", 304: "Not Modified", 403: "Forbidden",
           404: "Not Found", 413: "Too Large", 418: "Teapot", 500: "Error"}


def application(environ, start_response):
    name = environ["PATH_INFO"].strip("/").split("/")[-1] or "health"
    query = dict(parse_qsl(environ["QUERY_STRING"]))
    return globals().get("do_" + name, nothing)(environ, query, start_response)


def answer(start_response, body, kind="text/plain", status=200, *fields):
    length = ("Content-Length", str(len(body)))
    start_response(f"{status} {REASONS[status]}", [("Content-Type", kind), length, *fields])
    return [body]


def nothing(environ, query, start_response):
    return answer(start_response, b"nothing of this name", "text/plain", 404)


def do_health(environ, query, start_response):
    return answer(start_response, b"up")


def do_fields(environ, query, start_response):
    environ["wsgi.input"].read()
    fields = sorted((key[5:].lower().replace("_", "-"), value) for key, value in environ.items() if key[:5] == "HTTP_")
    for key in "CONTENT_TYPE", "CONTENT_LENGTH":
        if environ.get(key):
            fields.append((key.lower().replace("_", "-"), environ[key]))
    seen = {"method": environ["REQUEST_METHOD"], "target": environ["RAW_URI"], "fields": sorted(fields)}
    return answer(start_response, json.dumps(seen).encode(), "application/json")


def do_status(environ, query, start_response):
    code = int(query["code"])
    fields = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2; Path=/"), ("X-Empty", ""), ("Vary", "accept")]
    if code < 300:
        fields.append(("ETag", '"x"'))
    if 300 <= code < 304:
        fields.append(("Location", "/elsewhere?a=b"))
    if code in (204, 304):
        start_response(f"{code} {REASONS[code]}", fields)
        return []
    body = b"" if environ["REQUEST_METHOD"] == "HEAD" else b"it is so"
    return answer(start_response, body, "text/plain", code, *fields)


def do_bytes(environ, query, start_response):
    n = int(query["n"])
    body = (bytes(range(251)) * (n // 251 + 1))[:n]
    return answer(start_response, body, "application/octet-stream")


def do_chunks(environ, query, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return chunks(int(query["n"]), int(query.get("times", 1)), int(query.get("ms", 0)))


def chunks(n, times, ms):
    for i in range(n):
        yield (b"%07d\n" % i) * times
        time.sleep(ms / 1000)


def do_events(environ, query, start_response):
    start_response("200 OK", [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")])
    return events(int(query["n"]), int(query["ms"]))


def events(n, ms):
    for i in range(n):
        yield b"id: %d\ndata: %d\n\n" % (i, time.time() * 1000)
        time.sleep(ms / 1000)


def do_sum(environ, query, start_response):
    length, digest = 0, hashlib.sha256()
    while body := environ["wsgi.input"].read(1 << 16):
        length += len(body)
        digest.update(body)
    seen = {"bytes": length, "sha256": digest.hexdigest()}
    return answer(start_response, json.dumps(seen).encode(), "application/json")


def do_refuse(environ, query, start_response):
    return answer(start_response, b"refused by the upstream", "text/plain", int(query["status"]))
