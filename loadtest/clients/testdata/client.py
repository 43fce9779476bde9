"""Python's own HTTP client against ferryman: python3 client.py CHECK HOST PORT SCHEME. It ends with 0 if all held."""

import asyncio
import hashlib
import http.client
import json
import os
import socket
import ssl
import sys
import time

MEGABYTE = 1 << 20


class Target:
    def __init__(self, host, port, scheme):
        self.host, self.port, self.scheme = host, int(port), scheme

    def connection(self):
        if self.scheme == "http":
            return http.client.HTTPConnection(self.host, self.port, timeout=30)
        return http.client.HTTPSConnection(self.host, self.port, timeout=30, context=trusting())

    def socket(self):
        plain = socket.create_connection((self.host, self.port), timeout=30)
        return plain if self.scheme == "http" else trusting().wrap_socket(plain, server_hostname=self.host)


def trusting():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def pattern(n):
    return (bytes(range(251)) * (n // 251 + 1))[:n]


def expect(want, got, what):
    if want != got:
        sys.exit(f"{what}: want {want!r}, got {got!r}")


def keep_alive(target):
    c = target.connection()
    c.connect()
    first = c.sock
    for n in range(200):
        c.request("GET", f"/uvicorn/bytes?n={n * 100}")
        expect(pattern(n * 100), c.getresponse().read(), f"answer {n}")
        expect(first, c.sock, f"the connection behind answer {n}")
    c.request("HEAD", "/uvicorn/bytes?n=10")
    answer = c.getresponse()
    expect(("10", b""), (answer.getheader("Content-Length"), answer.read()), "HEAD")
    c.request("GET", "/uvicorn/chunks?n=5")
    expect(b"".join(b"%07d\n" % i for i in range(5)), c.getresponse().read(), "chunks")
    expect(first, c.sock, "the connection at the end")


def chunked_upload(target):
    for prefix in "/uvicorn", "/gthread", "/sync":
        parts = [pattern(n * 37) for n in range(1, 300)]
        c = target.connection()
        c.request("POST", prefix + "/sum", body=iter(parts), encode_chunked=True)
        whole = b"".join(parts)
        seen = json.loads(c.getresponse().read())
        expect({"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}, seen, prefix)


def close(target):
    for path in "/uvicorn/bytes?n=70000", "/gthread/bytes?n=70000", "/sync/bytes?n=70000", "/files/text.txt", "/nginx/text.txt":
        c = target.connection()
        c.request("GET", path, headers={"Connection": "close"})
        answer = c.getresponse()
        expect((200, "close"), (answer.status, answer.getheader("Connection")), path)
        expect(int(answer.getheader("Content-Length")), len(answer.read()), path)
        expect(None, c.sock, "the connection behind " + path)


def http10(target):
    """An HTTP/1.0 client is never sent chunks, and its connection ends with the answer."""
    for path, length in ("/uvicorn/chunks?n=100", 800), ("/gthread/chunks?n=100", 800), ("/nginx/text.txt", 56000):
        s = target.socket()
        s.sendall(f"GET {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
        text = b""
        while part := s.recv(65536):
            text += part
        head, _, body = text.partition(b"\r\n\r\n")
        expect(True, b" 200 " in head.split(b"\r\n")[0], head)
        expect(False, b"chunked" in head.lower(), head)
        expect(length, len(body), path)


def pipelined(target):
    s = target.socket()
    heads = (f"GET /uvicorn/bytes?n={n * 1000} HTTP/1.1\r\nHost: x\r\n\r\n" for n in range(40))
    s.sendall("".join(heads).encode())
    reader = s.makefile("rb")
    for n in range(40):
        status = reader.readline()
        expect(True, status.startswith(b"HTTP/1.1 200 "), status)
        fields = http.client.parse_headers(reader)
        expect(str(n * 1000), fields["Content-Length"], f"length of answer {n}")
        expect(pattern(n * 1000), reader.read(n * 1000), f"answer {n}")


def slow_reader(target):
    """Twenty megabytes in sips; others are served meanwhile."""
    size = 20 * MEGABYTE
    s = target.socket()
    s.sendall(f"GET /uvicorn/bytes?n={size} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    digest, head, got, sips = hashlib.sha256(), b"", 0, 0
    while part := s.recv(65536):
        if b"\r\n\r\n" not in head:
            head += part
            _, found, part = head.partition(b"\r\n\r\n")
            if not found:
                continue
        got += len(part)
        digest.update(part)
        sips += 1
        if sips % 16 == 0:
            time.sleep(0.02)
        if sips == 64:
            c = target.connection()
            c.request("GET", "/nginx/text.txt")
            expect(56000, len(c.getresponse().read()), "what another client gets")
    expect((size, hashlib.sha256(pattern(size)).hexdigest()), (got, digest.hexdigest()), "the slow reader's")


def refused_upload(target):
    """http.client sends all of its body before it looks for an answer."""
    body = os.urandom(MEGABYTE) * 100
    for path, status in ("/nginx/too-large", 413), ("/sync/refuse?status=403", 403), ("/nowhere", 404):
        c = target.connection()
        c.request("PUT", path, body=body)
        answer = c.getresponse()
        expect(status, answer.status, path)
        expect(True, len(answer.read()) > 0, "a body")


def events(target):
    """Each event comes within a second of its sending, and the stream ends as a whole."""
    for prefix in "/uvicorn", "/gthread":
        c = target.connection()
        c.request("GET", prefix + "/events?n=12&ms=150")
        answer, ids = c.getresponse(), []
        expect("text/event-stream", answer.getheader("Content-Type"), prefix)
        while line := answer.readline():
            name, _, value = line.decode().rstrip().partition(": ")
            if name == "id":
                ids.append(int(value))
            elif name == "data":
                late = time.time() * 1000 - int(value)
                expect(True, late < 1000, f"{prefix}: event {ids[-1]} came {late:.0f} ms late")
        expect(list(range(12)), ids, prefix)


def websocket(target):
    import websockets

    async def talk():
        secure = trusting() if target.scheme == "https" else None
        url = f"{target.scheme.replace('http', 'ws')}://{target.host}:{target.port}/ws/echo"
        async with websockets.connect(url, ssl=secure, max_size=4 * MEGABYTE, compression=None) as socket:
            for message in ["text", "äöü" * 1000, b"", bytes(125), bytes(70000), pattern(MEGABYTE)]:
                await socket.send(message)
                expect(True, message == await socket.recv(), f"an echo of {len(message)}")
            await (await socket.ping())
        expect(1000, socket.close_code, "the close code")

    asyncio.run(asyncio.wait_for(talk(), 30))


def file_upload(target):
    body = os.urandom(MEGABYTE) * 30
    want = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    for prefix in "/uvicorn", "/gthread", "/sync":
        c = target.connection()
        c.request("PUT", prefix + "/sum", body=body, headers={"Content-Type": "application/x-tar"})
        expect(want, json.loads(c.getresponse().read()), prefix)


globals()[sys.argv[1]](Target(*sys.argv[2:]))
