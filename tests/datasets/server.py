"""A web server on the loopback interface that serves one file and fails as it is told to."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import create_server
from threading import Event, Thread
from typing import ClassVar


class Handler(BaseHTTPRequestHandler):
    """Serves `content`; each request takes the first of `faults`, if any is left.

    Faults: an int below 100 cuts the answer after that many percent of what is left, an int from 400 is a status,
    "whole" ignores the range that was asked for.
    """

    content: ClassVar[bytes]
    faults: ClassVar[list[int | str]]
    ranges: ClassVar[list[str | None]]
    paths: ClassVar[list[str]]
    authorizations: ClassVar[list[str | None]]

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.ranges.append(asked)
        self.paths.append(self.path)
        self.authorizations.append(self.headers.get("Authorization"))
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, int) and fault >= 400:
            self.send_error(fault)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and fault != "whole" else 0
        if start and start >= len(self.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(self.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) * fault // 100] if isinstance(fault, int) else body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve(content: bytes, *faults: int | str) -> Iterator[tuple[str, type[Handler]]]:
    """Yield the server's address and the handler, whose lists tell what was asked for."""
    handler = type(
        "Once",
        (Handler,),
        {"content": content, "faults": list(faults), "ranges": [], "paths": [], "authorizations": []},
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


@contextmanager
def trickle(slow: str) -> Iterator[str]:
    """Yield the address of a server that sends a byte of the body, or of a header, every hundredth of a second."""
    length = "" if slow == "unknown length" else "Content-Length: 300000\r\n"
    begins = "X-Slow: " if slow == "header" else f"{length}\r\n"
    over = Event()

    def answer() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(f"HTTP/1.1 200 OK\r\n{begins}".encode())
            for _ in range(300_000):
                if over.wait(0.01):
                    return
                connection.sendall(b"x")

    with create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            thread.join(timeout=5)
