# SPDX-License-Identifier: Apache-2.0
"""The hub and its store, on two ports, as huggingface.co and its CDN are two hosts."""

from __future__ import annotations

import hashlib
import ssl
import sys
import threading
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable

from .content import Content, bytes_content, file_content
from .faults import Fault, FaultPlan
from .handlers import HubHandler, StoreHandler

LFS_ENDINGS = (".safetensors", ".gguf", ".bin", ".irpa", ".pt")


@dataclass
class Served:
    """A body that was sent: [begin, begin + sent) of a file."""
    place: str  # "resolve", "store", "file", "s3"
    name: str
    begin: int
    wanted: int
    sent: int = 0


@dataclass
class Repository:
    name: str
    gated: bool = False
    private: bool = False
    licence: str = "apache-2.0"
    refs: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, Content]] = field(default_factory=dict)

    def commit_of(self, revision: str) -> str | None:
        return revision if revision in self.commits else self.refs.get(revision)


def is_lfs(name: str) -> bool:
    return name.endswith(LFS_ENDINGS)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no news."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)


class FakeHub:
    def __init__(self, port: int = 0, token: str = "hf_good", tls: Path | None = None) -> None:
        self.tls = tls  # PEM with certificate and key: https.
        self.token = token  # That gated and private repositories take.
        self.repositories: dict[str, Repository] = {}
        self.renamed: dict[str, str] = {}
        self.files: dict[str, Content] = {}  # Plain addresses: /files/NAME.
        self.buckets: dict[str, dict[str, Content]] = {}
        self.s3_keys: dict[str, str] = {}  # Access key -> secret; empty: buckets are public.
        self.s3_region = ""  # Empty: any.
        self.s3_page = 1000
        self.clock_ahead = 0.0  # Seconds that this server's clock is before the client's.
        self.before_resolve: Callable[[], None] | None = None  # Called once, by the next request of a file.
        self.rate = 0  # Bytes a second of every body; 0: no limit.
        self.faults = FaultPlan()
        self.served: list[Served] = []
        self.requests: list[str] = []  # "GET /path" of both ports, in order.
        self.leaks: list[str] = []  # Requests to the store that carried a token.
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self._hub = self._server(HubHandler, port)
        self._store = self._server(StoreHandler, 0)
        self._threads: list[threading.Thread] = []

    def _server(self, handler: type, port: int) -> ThreadingHTTPServer:
        server = Server(("127.0.0.1", port), type(handler.__name__, (handler,), {"hub": self}))
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls)
            server.socket = context.wrap_socket(server.socket, server_side=True,
                                                do_handshake_on_connect=False)
        return server

    @property
    def scheme(self) -> str:
        return "https" if self.tls is not None else "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self._hub.server_port}"

    @property
    def store_url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self._store.server_port}"

    def __enter__(self) -> "FakeHub":
        for server in (self._hub, self._store):
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05},
                                      daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: Any) -> None:
        self.stopping.set()
        for server in (self._hub, self._store):
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()

    def add_repository(self, name: str, files: Path | dict[str, bytes | Path | Content], *,
                       revision: str = "main", gated: bool = False, private: bool = False,
                       licence: str = "apache-2.0") -> str:
        """A new commit of the repository, to which `revision` then points. Gives the commit."""
        if isinstance(files, Path):
            files = {str(path.relative_to(files)): path
                     for path in sorted(files.rglob("*")) if path.is_file()}
        contents: dict[str, Content] = {}
        for file, data in files.items():
            if isinstance(data, bytes):
                contents[file] = bytes_content(data)
            else:
                contents[file] = data if isinstance(data, Content) else file_content(data)
        digest = hashlib.sha1(name.encode())
        for file, content in sorted(contents.items()):
            digest.update(f"{file} {content.sha256}\n".encode())
        commit = digest.hexdigest()
        repository = self.repositories.setdefault(name, Repository(name))
        repository.gated, repository.private, repository.licence = gated, private, licence
        repository.commits[commit] = contents
        repository.refs[revision] = commit
        return commit

    def fault(self, place: str, name: str, kind: str, **options: Any) -> Fault:
        return self.faults.add(Fault(place, name, kind, **options))

    def find_stored(self, sha256: str) -> tuple[str, Content] | None:
        for repository in self.repositories.values():
            for files in repository.commits.values():
                for name, content in files.items():
                    if content.sha256 == sha256 and is_lfs(name):
                        return name, content
        return None

    def sent_bytes(self, name: str = "*") -> int:
        with self.lock:
            return sum(row.sent for row in self.served if name in ("*", row.name))

    def forget(self) -> None:
        """Empties the records, not the faults."""
        with self.lock:
            self.served.clear()
            self.requests.clear()
            self.leaks.clear()
