# SPDX-License-Identifier: Apache-2.0
"""Requests of the two ports. Answers have the status, headers and bodies of the real hub."""

from __future__ import annotations

import json
import re
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from . import s3
from .content import Content, git_oid
from .faults import Fault

if TYPE_CHECKING:
    from .server import FakeHub, Repository

PIECE = 64 << 10


class Handler(BaseHTTPRequestHandler):
    hub: "FakeHub"
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:  # noqa: N802 (the base class names it)
        self.do_GET()

    def do_GET(self) -> None:  # noqa: N802
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        with self.hub.lock:
            self.hub.requests.append(f"{self.command} {url.path}")
        try:
            self.route(urllib.parse.unquote(url.path))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def route(self, path: str) -> None:
        raise NotImplementedError

    def answer(self, code: int, body: bytes = b"", kind: str = "text/plain; charset=utf-8",
               headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_json(self, value: Any, headers: dict[str, str] | None = None) -> None:
        self.answer(200, json.dumps(value).encode(), "application/json; charset=utf-8", headers)

    def refuse(self, code: int, error: str, message: str) -> None:
        headers = {"X-Error-Code": error, "X-Error-Message": message} if error else {}
        self.answer(code, json.dumps({"error": message}).encode(), "application/json", headers)

    def took_fault(self, fault: Fault | None) -> bool:
        """Faults that are an answer of their own."""
        if fault is None:
            return False
        if fault.kind == "status":
            self.answer(fault.code, b"", headers=fault.headers)
        elif fault.kind == "loop":
            self.answer(302, headers={"Location": self.path})
        elif fault.kind == "downgrade":
            self.answer(302, headers={"Location": fault.value})
        elif fault.kind == "drop":
            self.close_connection = True
        else:
            return False
        return True

    def range_of(self, size: int, etag: str) -> tuple[int, int] | None:
        """The range that was asked for; (0, 0) when it cannot be satisfied."""
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if match is None or self.headers.get("If-Range", etag) != etag:
            return None
        first, last = match.groups()
        if not first:
            return (max(0, size - int(last)), size) if last else None
        begin, end = int(first), min(size, int(last) + 1 if last else size)
        return (begin, end) if begin < end else (0, 0)

    def send_content(self, place: str, name: str, content: Content, etag: str,
                     headers: dict[str, str], fault: Fault | None) -> None:
        if fault is not None and fault.kind == "etag":
            etag = fault.value
        span = self.range_of(content.size, etag)
        if fault is not None and fault.kind == "no_range":
            span = None
        total = int(fault.value) if fault is not None and fault.kind == "total" else content.size
        if span == (0, 0) and content.size > 0:
            self.answer(416, headers={"Content-Range": f"bytes */{total}"})
            return
        begin, end = span if span is not None else (0, content.size)
        self.send_response(200 if span is None else 206)
        for key, value in headers.items():
            self.send_header(key, value)
        if span is not None:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{total}")
        self.send_header("ETag", etag)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(end - begin if span is not None else total))
        self.end_headers()
        if self.command != "HEAD":
            self.send_body(place, name, content, begin, end, fault)

    def send_body(self, place: str, name: str, content: Content, begin: int, end: int,
                  fault: Fault | None) -> None:
        from .server import Served
        record = Served(place, name, begin, end - begin)
        with self.hub.lock:
            self.hub.served.append(record)
        kind = fault.kind if fault is not None else ""
        stop = begin + fault.after if kind in ("truncate", "stall") else end
        rate = fault.rate if kind == "slow" else self.hub.rate
        started = time.monotonic()
        for at in range(begin, min(stop, end), PIECE):
            piece = content.read(at, min(at + PIECE, stop, end))
            if kind == "corrupt" and at <= begin + fault.after < at + len(piece):
                spot = begin + fault.after - at
                piece = piece[:spot] + bytes([piece[spot] ^ 1]) + piece[spot + 1:]
            self.wfile.write(piece)
            with self.hub.lock:
                record.sent += len(piece)
            if rate:
                ahead = (at + len(piece) - begin) / rate - (time.monotonic() - started)
                if ahead > 0 and self.hub.stopping.wait(ahead):
                    break
        if kind == "stall":
            self.hub.stopping.wait(60)
        if stop < end or self.hub.stopping.is_set():
            self.close_connection = True


class HubHandler(Handler):
    def route(self, path: str) -> None:
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/(.+?))?/?", path):
            self.api(*match.groups())
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self.resolve(*match.groups())
        elif path.startswith("/files/"):
            self.plain_file(path.removeprefix("/files/"))
        elif s3.route(self, path):
            return
        else:
            self.refuse(404, "", "not found")

    def repository(self, name: str) -> "Repository | None":
        """The repository, or nothing after a refusal or a redirect to its new name."""
        if name in self.hub.renamed:
            new = self.path.replace(name, self.hub.renamed[name], 1)
            self.answer(307, headers={"Location": new})
            return None
        repository = self.hub.repositories.get(name)
        authorization = self.headers.get("Authorization")
        is_known = authorization == f"Bearer {self.hub.token}"
        if authorization is not None and not is_known:
            self.refuse(401, "", "Invalid credentials in Authorization header")
        elif repository is None or (repository.private and not is_known):
            # Who is not known learns not even whether it exists.
            self.refuse(404 if is_known else 401, "RepoNotFound", "Repository not found")
        else:
            return repository
        return None

    def gate(self, repository: "Repository") -> bool:
        if not repository.gated or self.headers.get("Authorization") is not None:
            return True
        self.refuse(401, "GatedRepo", f"Access to model {repository.name} is restricted. You must "
                    "have access to it and be authenticated to access it. Please log in.")
        return False

    def api(self, name: str, view: str | None, revision: str | None) -> None:
        if self.took_fault(fault := self.hub.faults.take("api", name)):
            return
        if (repository := self.repository(name)) is None:
            return
        commit = repository.commit_of(revision or "main")
        if commit is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return
        files = repository.commits[commit]
        if view == "tree":
            self.answer_json([self.tree_entry(*item) for item in files.items()])
            return
        body = {"_id": commit[:24], "id": name, "modelId": name, "sha": commit, "private": False,
                "gated": "manual" if repository.gated else False, "disabled": False,
                "downloads": 1, "likes": 0, "tags": [f"license:{repository.licence}"],
                "cardData": {"license": repository.licence},
                "siblings": [self.sibling(*item) for item in files.items()]}
        if fault is not None and fault.kind == "corrupt":
            self.answer(200, json.dumps(body).encode()[:-fault.after or None], "application/json")
            return
        self.answer_json(body)

    def sibling(self, name: str, content: Content) -> dict[str, Any]:
        from .server import is_lfs
        row: dict[str, Any] = {"rfilename": name}
        if "blobs" not in self.query:
            return row
        row["size"] = content.size
        row["blobId"] = git_oid(content.pointer) if is_lfs(name) else content.git_oid
        if is_lfs(name):
            row["lfs"] = {"sha256": content.sha256, "size": content.size,
                          "pointerSize": len(content.pointer)}
        return row

    def tree_entry(self, name: str, content: Content) -> dict[str, Any]:
        from .server import is_lfs
        row: dict[str, Any] = {"type": "file", "path": name, "size": content.size,
                               "oid": content.git_oid}
        if is_lfs(name):
            row["oid"] = git_oid(content.pointer)
            row["lfs"] = {"oid": content.sha256, "size": content.size,
                          "pointerSize": len(content.pointer)}
        return row

    def resolve(self, name: str, revision: str, file: str) -> None:
        from .server import is_lfs
        with self.hub.lock:
            hook, self.hub.before_resolve = self.hub.before_resolve, None
            if hook is not None:
                hook()
        fault = self.hub.faults.take("resolve", file)
        if self.took_fault(fault) or (repository := self.repository(name)) is None:
            return
        if not self.gate(repository):
            return
        commit = repository.commit_of(revision)
        if commit is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return
        content = repository.commits[commit].get(file)
        if content is None:
            self.refuse(404, "EntryNotFound", "Entry not found")
            return
        headers = {"X-Repo-Commit": commit}
        if not is_lfs(file):
            self.send_content("resolve", file, content, f'"{content.git_oid}"', headers, fault)
            return
        headers |= {"X-Linked-Size": str(content.size), "X-Linked-Etag": f'"{content.sha256}"',
                    "Location": f"{self.hub.store_url}/repos/{content.sha256}?Expires=1&Signature=x"}
        self.answer(302, headers=headers)

    def plain_file(self, name: str) -> None:
        fault = self.hub.faults.take("file", name)
        content = self.hub.files.get(name)
        if self.took_fault(fault):
            return
        if content is None:
            self.answer(404)
            return
        self.send_content("file", name, content, f'"{content.sha256[:32]}"', {}, fault)


class StoreHandler(Handler):
    """The CDN: signed addresses, no tokens, no names."""

    def route(self, path: str) -> None:
        if self.headers.get("Authorization") is not None:
            with self.hub.lock:
                self.hub.leaks.append(path)
        found = self.hub.find_stored(path.removeprefix("/repos/"))
        if found is None:
            self.answer(403, b"<Error><Code>AccessDenied</Code></Error>", "application/xml")
            return
        name, content = found
        fault = self.hub.faults.take("store", name)
        if not self.took_fault(fault):
            # A store of parts has ETags that are no hash of the content.
            self.send_content("store", name, content, f'"{content.sha256[:32]}-2"', {}, fault)
