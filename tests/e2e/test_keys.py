"""Keys over real HTTP: scopes, limits, owners, fairness, reload by SIGHUP, mutual TLS, /admin."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import httpx
import openai
import pytest

from conftest import GGUF, TESSERA, Served, free_port, start_server, tessera

PROMPT = {"model": "smollm2", "prompt": "Rivers are", "max_tokens": 4, "temperature": 0}


def make_key(file: Path, name: str, *args: str) -> str:
    done = tessera("key", name, "--add", file, *args)
    assert done.returncode == 0, done.stderr.decode()
    key = done.stdout.decode().strip()
    assert key.startswith("tessera-") and len(key) == 51
    assert key not in file.read_text()
    return key


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def wait_for(what: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


class Keyed:
    """A server with a key file, and its keys by name."""

    def __init__(self, folder: Path, cache: Path, *args: str | Path) -> None:
        self.file = folder / "keys.json"
        self.keys = {name: make_key(self.file, name, *rest) for name, *rest in (
            ("alice",), ("bob",), ("limited", "--rpm", "3", "--tpm", "100"),
            ("batch", "--priority", "10"), ("prom", "--scope", "metrics"),
            ("root", "--scope", "admin,inference"))}
        self.server = start_server(folder / "log", GGUF, "--cache-dir", cache,
                                   "--served-model-name", "smollm2", "--api-keys", self.file, *args)

    def call(self, key: str, method: str, path: str, body: Any = None,
             **kw: Any) -> httpx.Response:
        headers = {**bearer(self.keys[key]), **kw.pop("headers", {})}
        return httpx.request(method, self.server.url + path, json=body, headers=headers,
                             timeout=120, **kw)

    def log(self) -> str:
        return self.server.log.read_text()


@pytest.fixture(scope="module")
def keyed(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    keyed = Keyed(tmp_path_factory.mktemp("keyed"), cache, "--max-batch", "2")
    yield keyed
    keyed.server.process.terminate()
    assert keyed.server.process.wait(30) == 0, keyed.log()
    for key in keyed.keys.values():
        assert key not in keyed.log()


def test_each_key_may_call_what_its_scopes_say(keyed: Keyed) -> None:
    assert keyed.call("alice", "POST", "/v1/completions", PROMPT).status_code == 200
    assert keyed.call("prom", "POST", "/v1/completions", PROMPT).status_code == 403
    assert keyed.call("prom", "GET", "/metrics").status_code == 200
    assert keyed.call("alice", "GET", "/metrics").status_code == 403
    assert keyed.call("alice", "GET", "/admin/stats").status_code == 403
    assert keyed.server.get("/metrics").status_code == 401
    assert keyed.server.post("/v1/completions", PROMPT).status_code == 401
    assert keyed.server.get("/readyz").status_code == 200


def test_the_openai_client_sees_its_errors_and_limits(keyed: Keyed) -> None:
    def client(key: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=keyed.server.url + "/v1", api_key=key, max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        client("tessera-wrong").models.list()
    with pytest.raises(openai.PermissionDeniedError):
        client(keyed.keys["prom"]).models.list()
    limited = client(keyed.keys["limited"])
    for left in (2, 1, 0):
        raw = limited.completions.with_raw_response.create(**PROMPT)
        assert raw.headers["x-ratelimit-limit-requests"] == "3"
        assert raw.headers["x-ratelimit-remaining-requests"] == str(left)
        assert raw.headers["x-ratelimit-limit-tokens"] == "100"
    usage = raw.parse().usage
    assert int(raw.headers["x-ratelimit-remaining-tokens"]) < 100 - usage.total_tokens
    with pytest.raises(openai.RateLimitError) as refused:
        limited.completions.create(**PROMPT)
    assert 1 <= int(refused.value.response.headers["retry-after"]) <= 20
    assert refused.value.code == "rate_limit_exceeded"
    message = keyed.call("limited", "POST", "/v1/messages", {})
    assert message.status_code == 429 and message.json()["error"]["type"] == "rate_limit_error"


def test_a_class_bounds_the_priority(keyed: Keyed) -> None:
    assert keyed.call("batch", "POST", "/v1/completions", PROMPT).status_code == 200
    refused = keyed.call("batch", "POST", "/v1/completions", {**PROMPT, "priority": 0})
    assert refused.status_code == 403 and refused.json()["error"]["param"] == "priority"


def test_a_flood_of_one_key_does_not_starve_another(keyed: Keyed) -> None:
    """12 long requests of one key wait for 2 places; one of another key comes next, not last."""
    ends: list[float] = []
    long = {**PROMPT, "max_tokens": 200, "ignore_eos": True}

    def flood() -> None:
        assert keyed.call("alice", "POST", "/v1/completions", long).status_code == 200
        ends.append(time.monotonic())
    threads = [threading.Thread(target=flood) for _ in range(12)]
    for thread in threads:
        thread.start()
    wait_for(lambda: keyed.call("root", "GET", "/admin/stats").json()["engine"]["waiting"] >= 8)
    assert keyed.call("bob", "POST", "/v1/completions", PROMPT).status_code == 200
    end = time.monotonic()
    for thread in threads:
        thread.join()
    earlier = sum(other < end for other in ends)
    assert earlier <= 6, f"{earlier} of {len(ends)} of the flood were answered before"


def test_only_its_key_ends_a_request(keyed: Keyed) -> None:
    long = {**PROMPT, "max_tokens": 5000, "ignore_eos": True}
    answer: list[int] = []
    thread = threading.Thread(target=lambda: answer.append(keyed.call(
        "alice", "POST", "/v1/completions", long, headers={"X-Request-Id": "mine"}).status_code))
    thread.start()
    wait_for(lambda: keyed.call("root", "GET", "/admin/stats").json()["engine"]["running"] == 1)
    assert keyed.call("bob", "DELETE", "/v1/requests/mine").status_code == 404
    assert keyed.call("alice", "DELETE", "/v1/requests/mine").status_code == 200
    thread.join()
    assert answer == [499]


def test_only_its_key_goes_on_with_a_stream(keyed: Keyed) -> None:
    body = {**PROMPT, "stream": True, "stream_options": {"resumable": True}}
    stream = keyed.call("alice", "POST", "/v1/completions", body)
    event = next(line for line in stream.text.splitlines() if line.startswith("id: "))
    path = f"/v1/requests/{event.removeprefix('id: ').split(':')[0]}/events"
    assert keyed.call("bob", "GET", path).status_code == 404
    assert keyed.call("alice", "GET", path).text == stream.text
    assert keyed.call("root", "GET", path).status_code == 200


def test_sighup_reads_the_keys_again_and_a_bad_file_changes_nothing(keyed: Keyed) -> None:
    good = keyed.file.read_text()
    hangup = lambda: keyed.server.process.send_signal(signal.SIGHUP)  # noqa: E731
    carol = make_key(keyed.file, "carol")
    assert httpx.get(keyed.server.url + "/v1/models", headers=bearer(carol)).status_code == 401
    hangup()
    wait_for(lambda: httpx.get(keyed.server.url + "/v1/models",
                               headers=bearer(carol)).status_code == 200)
    keyed.file.write_text(good.replace('"rpm"', '"rmp"'))
    hangup()
    wait_for(lambda: "unknown member 'rmp'" in keyed.log())
    assert httpx.get(keyed.server.url + "/v1/models", headers=bearer(carol)).status_code == 200
    refused = keyed.call("root", "POST", "/admin/reload")
    assert refused.status_code == 400 and "rmp" in refused.json()["error"]["message"]
    keyed.file.write_text(good)
    assert keyed.call("root", "POST", "/admin/reload").json()["keys"] == 6
    assert httpx.get(keyed.server.url + "/v1/models", headers=bearer(carol)).status_code == 401
    assert keyed.call("limited", "POST", "/tokenize", {"prompt": "x"}).headers[
        "x-ratelimit-limit-requests"] == "3"


def test_stats_count_each_key(keyed: Keyed) -> None:
    before = {key["name"]: key for key in keyed.call("root", "GET", "/admin/stats").json()["keys"]}
    usage = keyed.call("bob", "POST", "/v1/completions", PROMPT).json()["usage"]
    after = {key["name"]: key for key in keyed.call("root", "GET", "/admin/stats").json()["keys"]}
    assert set(after) == set(keyed.keys)
    assert after["bob"]["requests"] == before["bob"]["requests"] + 1
    for name in ("prompt_tokens", "completion_tokens"):
        assert after["bob"][name] == before["bob"][name] + usage[name]
    assert after["bob"]["open"] == 0


def test_a_drain_finishes_what_runs(cache: Path, tmp_path: Path) -> None:
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache, "--served-model-name",
                          "smollm2")
    answer: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answer.append(server.post(
        "/v1/completions", {**PROMPT, "max_tokens": 150, "ignore_eos": True})))
    thread.start()
    wait_for(lambda: server.get("/admin/stats").json()["engine"]["running"] == 1)
    assert server.post("/admin/drain", {}).status_code == 400
    report = server.post("/admin/drain", {"confirm": "smollm2", "timeout": 60})
    assert report.status_code == 200 and report.json()["finished"] is True, report.text
    thread.join()
    assert answer[0].json()["usage"]["completion_tokens"] == 150
    assert server.get("/readyz").status_code == 503
    assert server.post("/v1/completions", PROMPT).status_code == 503
    assert server.get("/livez").status_code == 200
    server.process.terminate()
    assert server.process.wait(30) == 0


def run_openssl(folder: Path, *args: str) -> None:
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


def make_ca(folder: Path, name: str) -> None:
    run_openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2",
                "-subj", f"/CN={name}")


def make_certificate(folder: Path, name: str, ca: str) -> None:
    run_openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost")
    run_openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey",
                f"{ca}.key", "-CAcreateserial", "-days", "2", "-extfile", "names",
                "-out", f"{name}.pem")


def test_mutual_tls_and_its_reload(cache: Path, tmp_path: Path) -> None:
    for ca in ("ca", "other"):
        make_ca(tmp_path, ca)
    for name, ca in (("server", "ca"), ("client", "ca"), ("stranger", "other")):
        make_certificate(tmp_path, name, ca)
    clients = tmp_path / "clients.pem"
    clients.write_text((tmp_path / "ca.pem").read_text())
    port, log = free_port(), tmp_path / "log"
    # Certificates are asked for, so no key has to be.
    process = subprocess.Popen(
        [str(TESSERA), "serve", str(GGUF), "--cache-dir", str(cache), "--port", str(port), "--host",
         "0.0.0.0", "--tls-cert", str(tmp_path / "server.pem"), "--tls-key",
         str(tmp_path / "server.key"), "--tls-client-ca", str(clients)],
        stdout=log.open("wb"), stderr=subprocess.STDOUT)

    def client(name: str | None) -> httpx.Client:
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        if name is not None:
            context.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        return httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=context, timeout=30)

    def status(name: str | None) -> int | None:
        try:
            with client(name) as fresh:
                return fresh.get("/livez").status_code
        except httpx.TransportError:
            return None
    try:
        wait_for(lambda: "serving " in log.read_text() or process.poll() is not None, 120)
        assert process.poll() is None, log.read_text()
        assert [status(name) for name in ("client", "stranger", None)] == [200, None, None]
        with client("client") as kept:
            assert kept.get("/livez").status_code == 200
            clients.write_text("no certificate")
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: "nothing was changed" in log.read_text())
            assert str(clients) in log.read_text()
            assert status("client") == 200
            clients.write_text((tmp_path / "other.pem").read_text())
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: status("stranger") == 200)
            assert status("client") is None
            assert kept.get("/livez").status_code == 200, "an open connection goes on"
        # A new certificate of the server's own.
        make_certificate(tmp_path, "server", "other")
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: status("stranger") is None)  # It trusts the first CA only.
    finally:
        process.terminate()
        assert process.wait(30) == 0, log.read_text()


@pytest.mark.parametrize("args,word", [
    (("--host", "0.0.0.0"), "--allow-unauthenticated"),
    (("--tls-client-ca", "ca.pem"), "--tls-cert"),
    (("--api-keys", "no-such-file"), "no-such-file"),
])
def test_an_open_server_is_no_accident(args: tuple[str, ...], word: str, cache: Path) -> None:
    done = tessera("serve", GGUF, "--cache-dir", cache, "--port", free_port(), *args,
                   env={"TESSERA_API_KEY": ""})
    assert done.returncode == 1
    error = done.stderr.decode()
    assert word in error and error.count("\n") == 1, error


def test_an_open_server_can_be_asked_for(cache: Path, tmp_path: Path) -> None:
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache, "--host", "0.0.0.0",
                          "--allow-unauthenticated")
    assert server.get("/v1/models").status_code == 200
    server.process.terminate()
    assert server.process.wait(30) == 0


def test_a_key_is_made_with_its_entry(tmp_path: Path) -> None:
    done = tessera("key", "alice", "--rpm", "5", "--expires", "2999-01-01", "--scope", "metrics",
                   "--scope", "inference")
    key, entry = done.stdout.decode().splitlines()
    assert json.loads(entry)["expires"] == "2999-01-01T00:00:00Z"
    assert json.loads(entry)["scopes"] == ["inference", "metrics"]
    assert key not in entry
    file = tmp_path / "keys.json"
    make_key(file, "alice")
    for args, word in ((("alice", "--add", file), "two keys are named alice"),
                       (("a b",), "NAME"), (("x", "--expires", "2001-01-01"), "is over"),
                       (("x", "--expires", "soon"), "2027-01-31")):
        done = tessera("key", *args)
        assert done.returncode == 1 and word in done.stderr.decode(), done.stderr
        assert not done.stdout
    assert tessera("key", "x", "--rpm", "0").returncode == 2
