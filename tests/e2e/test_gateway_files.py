"""Files at the gateway: through llm-engine's client, OpenAI's and raw HTTP; limits and restarts."""

from __future__ import annotations

import hashlib
import os
import resource
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Iterator

import httpx
import openai
import pytest

from conftest import TESSERA, free_port, wait_for_gateway

MIB = 1 << 20


class Gateway:
    """Without workers: files need none."""

    def __init__(self, dir: Path, *flags: str) -> None:
        self.dir, self.flags = dir, flags
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=self.url, auth=("me", ""), timeout=60)
        self.start()

    def start(self, file_bytes_max: int | None = None) -> None:
        def limit() -> None:
            if file_bytes_max is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))

        log = (self.dir / "gateway.log").open("ab")
        self.process = subprocess.Popen(
            [str(TESSERA), "gateway", "--port", str(self.port), "--state-dir",
             str(self.dir / "state"), *self.flags], stdout=log, stderr=log, preexec_fn=limit)
        wait_for_gateway(self.process, self.http, self.dir / "gateway.log")

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(timeout=30) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def upload(self, name: str, content: bytes, **more: Any) -> httpx.Response:
        return self.http.post("/v1/files", files={"file": (name, content)}, **more)

    def ids(self) -> list[str]:
        return [f["id"] for f in self.http.get("/v1/files").json()["files"]]

    def on_disk(self) -> set[str]:
        folder = self.dir / "state" / "files"
        return {p.name for p in folder.rglob("*") if p.is_file()}

    def peak_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(l for l in status.splitlines() if l.startswith("VmHWM")).split()[1])


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path)
    yield made
    if made.process.poll() is None:
        made.stop()


def test_life_of_a_file(gateway: Gateway) -> None:
    made = gateway.upload("zeilen ü.jsonl", b"{}\n", data={"purpose": "batch"})
    assert made.status_code == 200
    record = made.json()
    assert record["filename"] == "zeilen ü.jsonl" and record["size"] == record["bytes"] == 3
    assert record["purpose"] == "batch" and record["sha256"] == hashlib.sha256(b"{}\n").hexdigest()
    one = f"/v1/files/{record['id']}"
    assert gateway.http.get(one).json() == record
    assert gateway.http.get(one + "/content").json() == {"id": record["id"], "content": "{}\n"}
    raw = gateway.http.get(one + "/content?raw=1")
    assert raw.content == b"{}\n" and raw.headers["content-type"] == "application/octet-stream"
    assert gateway.http.delete(one).json()["deleted"] is True
    for call in (gateway.http.get, gateway.http.delete):
        assert call(one).status_code == 404 and isinstance(call(one).json()["detail"], str)
    assert gateway.on_disk() == set()


def test_openai_client(gateway: Gateway) -> None:
    for version in ("v1", "v2"):
        ai = openai.OpenAI(base_url=f"{gateway.url}/{version}", api_key="me", max_retries=0)
        made = ai.files.create(file=("a.jsonl", b"\xff\x00binary"), purpose="batch")
        assert made.object == "file" and made.bytes == 8 and made.purpose == "batch"
        assert ai.files.retrieve(made.id).filename == "a.jsonl"
        assert [f.id for f in ai.files.list()] == [made.id]
        assert [f.id for f in ai.files.list(purpose="fine-tune")] == []
        assert ai.files.content(made.id).read() == b"\xff\x00binary"
        assert ai.files.delete(made.id).deleted is True
        with pytest.raises(openai.NotFoundError):
            ai.files.retrieve(made.id)


def test_lists_are_paged(gateway: Gateway) -> None:
    ids = [gateway.upload(f"{i}", b"x").json()["id"] for i in range(5)]
    assert gateway.ids() == ids[::-1], "newest first, all of them"
    ai = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="me", max_retries=0)
    assert [f.id for f in ai.files.list(limit=2, order="asc")] == ids, "the client follows pages"
    page = gateway.http.get("/v1/files", params={"limit": 2, "after": ids[3]}).json()
    assert [f["id"] for f in page["data"]] == [ids[2], ids[1]] and page["has_more"] is True
    for query in ({"limit": 0}, {"limit": "x"}, {"after": "file-none"}, {"order": "up"}):
        assert gateway.http.get("/v1/files", params=query).status_code == 422, query


def test_owners_are_apart(gateway: Gateway) -> None:
    mine = gateway.upload("a", b"secret").json()["id"]
    other = httpx.Client(base_url=gateway.url, auth=("other", ""))
    assert other.get("/v1/files").json()["files"] == []
    for call in (other.get, other.delete):
        assert call(f"/v1/files/{mine}").status_code == 404
    assert other.get(f"/v1/files/{mine}/content").status_code == 404
    nobody = httpx.post(f"{gateway.url}/v1/files", files={"file": b"x" * MIB})
    assert nobody.status_code == 401 and nobody.headers["www-authenticate"] == "Bearer"
    assert gateway.ids() == [mine] and gateway.on_disk() == {mine}


def test_bad_uploads_are_refused_in_words(gateway: Gateway) -> None:
    missing = gateway.http.post("/v1/files", files={"other": ("a", b"x")})
    assert missing.status_code == 422 and missing.json()["detail"][0]["loc"] == ["body", "file"]
    assert gateway.http.post("/v1/files", json={"file": "x"}).status_code == 415
    assert gateway.http.post("/v1/files").status_code == 415
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    for body, status in [(b"", 422), (b"garbage", 400), (b"--b\r\n\r\nx\r\n--b--", 400),
                         (b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\ncut', 400)]:
        reply = gateway.http.post("/v1/files", content=body, headers=form)
        assert reply.status_code == status and reply.json()["detail"], (body, reply.text)
    two = [("file", ("a", b"1")), ("file", ("b", b"2"))]
    assert "twice" in gateway.http.post("/v1/files", files=two).json()["detail"]
    assert gateway.ids() == [] and gateway.on_disk() == set()


def test_names_never_become_paths(gateway: Gateway) -> None:
    for name in ("../../etc/passwd", "..\\..\\x\\passwd", "/etc/passwd"):
        assert gateway.upload(name, b"x").json()["filename"] == "passwd"
    assert not any("passwd" in name for name in gateway.on_disk())
    for path in ("/v1/files/..%2Fgateway.db/content", "/v1/files/%2e%2e/content",
                 "/v1/files/incoming/content"):
        assert gateway.http.get(path).status_code in {400, 404}


def test_ranges(gateway: Gateway) -> None:
    data = os.urandom(3 * MIB)
    id = gateway.upload("a.bin", data).json()["id"]
    url = f"/v1/files/{id}/content?raw=1"
    part = gateway.http.get(url, headers={"Range": "bytes=1000000-1999999"})
    assert part.status_code == 206 and part.content == data[1000000:2000000]
    assert gateway.http.get(url, headers={"Range": f"bytes={len(data)}-"}).status_code == 416
    assert gateway.http.get(url).content == data
    refused = gateway.http.get(f"/v1/files/{id}/content")
    assert refused.status_code == 415 and "raw" in refused.json()["detail"], "no text"


def test_large_uploads_are_not_held_in_memory(gateway: Gateway) -> None:
    gateway.upload("warm", b"x" * MIB)
    before = gateway.peak_kib()
    piece, pieces = os.urandom(MIB), 192
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="big"\r\n\r\n'

    def body() -> Iterator[bytes]:
        yield head
        for _ in range(pieces):
            yield piece
        yield b"\r\n--b--\r\n"

    form = {"Content-Type": "multipart/form-data; boundary=b"}
    made = gateway.http.post("/v1/files", content=body(), headers=form).json()
    assert made["size"] == pieces * MIB, "beyond the limit of other bodies"
    assert made["sha256"] == hashlib.sha256(piece * pieces).hexdigest()
    digest = hashlib.sha256()
    with gateway.http.stream("GET", f"/v1/files/{made['id']}/content?raw=1") as reply:
        for got in reply.iter_bytes():
            digest.update(got)
    assert digest.hexdigest() == made["sha256"]
    assert gateway.peak_kib() - before < 24 * 1024


def test_limits(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, "--file-size-max", "1MiB", "--files-quota", "2MiB")
    assert gateway.upload("a", b"x" * MIB).status_code == 200
    large = gateway.upload("b", b"x" * (MIB + 1))
    assert large.status_code == 413 and str(MIB) in large.json()["detail"]
    assert gateway.upload("c", b"x" * MIB).status_code == 200
    quota = gateway.upload("d", b"x")
    assert quota.status_code == 413 and str(2 * MIB) in quota.json()["detail"]
    gateway.http.delete(f"/v1/files/{gateway.ids()[0]}")
    assert gateway.upload("e", b"x").status_code == 200
    announced = gateway.http.post("/v1/files", content=b"x" * (3 * MIB),
                                  headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert announced.status_code == 413
    gateway.stop()


def test_nothing_partial_survives_a_kill_and_what_was_answered_does(gateway: Gateway) -> None:
    kept = gateway.upload("kept", b"keep me").json()["id"]
    half = socket.create_connection(("127.0.0.1", gateway.port))
    half.sendall(b"POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer me\r\n"
                 b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n"
                 b'--b\r\nContent-Disposition: form-data; name="file"; filename="h"\r\n\r\n'
                 + b"x" * 400000)
    for _ in range(100):
        if len(gateway.on_disk()) == 2:
            break
        time.sleep(0.02)
    assert len(gateway.on_disk()) == 2 and gateway.ids() == [kept], "stored, not shown"
    gateway.kill()
    half.close()
    gateway.start()
    assert gateway.ids() == [kept] and gateway.on_disk() == {kept}
    assert gateway.http.get(f"/v1/files/{kept}/content").json()["content"] == "keep me"


def test_an_upload_that_stops_leaves_nothing(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port)) as half:
        half.sendall(b"POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer me\r\n"
                     b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\n\r\n"
                     b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nxxxx' + b"y" * 200)
        for _ in range(100):
            if gateway.on_disk():
                break
            time.sleep(0.02)
        assert len(gateway.on_disk()) == 1
    for _ in range(100):
        if not gateway.on_disk():
            break
        time.sleep(0.02)
    assert gateway.on_disk() == set()


def test_a_full_disk_refuses_and_keeps_the_state(gateway: Gateway) -> None:
    kept = gateway.upload("kept", b"keep me").json()["id"]
    gateway.stop()
    gateway.start(file_bytes_max=2 * MIB)  # Writes beyond fail, as on a full disk.
    full = gateway.upload("large", b"x" * (4 * MIB))
    assert full.status_code == 507 and "nothing of it was kept" in full.json()["detail"]
    assert gateway.ids() == [kept] and gateway.on_disk() == {kept}
    assert gateway.upload("small", b"x").status_code == 200
