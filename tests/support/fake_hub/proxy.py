# SPDX-License-Identifier: Apache-2.0
"""A proxy as companies have them: CONNECT for https, whole addresses for http, names that only it knows."""

from __future__ import annotations

import base64
import select
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class Proxy:
    """`names` maps hosts to ports of this machine. With `login` ("user:password") it asks for that."""

    def __init__(self, names: dict[str, int], login: str = "") -> None:
        self.names, self.login = names, login
        self.asked: list[str] = []  # "CONNECT host:port" or "GET http://...".
        self.tokens: list[str] = []  # Authorization headers that it could read.
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("P", (_Handler,), {"proxy": self}))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://{self.login + '@' if self.login else ''}127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy

    def log_message(self, *args: Any) -> None:
        pass

    def dial(self, host: str, port: int) -> socket.socket | None:
        self.close_connection = True
        self.proxy.asked.append(f"{self.command} {self.path}")
        wanted = "Basic " + base64.b64encode(self.proxy.login.encode()).decode()
        if self.proxy.login and self.headers.get("Proxy-Authorization") != wanted:
            self.send_error(407)
            return None
        if host not in self.proxy.names and host != "127.0.0.1":
            self.send_error(502)
            return None
        return socket.create_connection(("127.0.0.1", self.proxy.names.get(host, port)))

    def do_CONNECT(self) -> None:  # noqa: N802 (the base class names it)
        host, _, port = self.path.partition(":")
        if self.headers.get("Authorization"):
            self.proxy.tokens.append(self.headers["Authorization"])
        if (there := self.dial(host, int(port))) is None:
            return
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.relay(there)

    def do_GET(self) -> None:  # noqa: N802
        url = urlsplit(self.path)
        if (there := self.dial(url.hostname or "", url.port or 80)) is None:
            return
        lines = [f"GET {url.path}{'?' + url.query if url.query else ''} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()
                  if not name.lower().startswith(("proxy-", "connection"))]
        there.sendall("\r\n".join(lines + ["Connection: close", "", ""]).encode())
        self.relay(there)

    def relay(self, there: socket.socket) -> None:
        ends = [self.connection, there]
        try:
            while True:
                for end in select.select(ends, [], [], 30)[0]:
                    if not (piece := end.recv(65536)):
                        return
                    (there if end is self.connection else self.connection).sendall(piece)
        except OSError:
            pass
        finally:
            there.close()
