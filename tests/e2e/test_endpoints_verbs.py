"""`tessera endpoints ...` and `tessera completions` against a real gateway."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Iterator

import pytest

from conftest import TESSERA, free_port, on_terminal, tessera
from test_gateway import Gateway, cache  # noqa: F401

NAMES = ("smol", "other")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Gateway]:  # noqa: F811
    made = Gateway(tmp_path_factory.mktemp("verbs"), cache)
    made.http.auth = ("root", "")
    for name in NAMES:
        done = endpoints(made, "create", name, "--model", "smol", "--per-worker", "4")
        assert done.returncode == 0, done.stderr.decode()
    for name in NAMES:
        assert endpoints(made, "wait", name).returncode == 0
    yield made
    assert made.stop() == 0


def endpoints(gateway: Gateway, *args: str | Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    return tessera("endpoints", *args, env={"TESSERA_GATEWAY": gateway.url, **env})


def said(gateway: Gateway, *args: str | Path, code: int = 0, **env: str) -> str:
    """stdout, or stderr of one that was to fail."""
    done = endpoints(gateway, *args, **env)
    assert done.returncode == code, (done.stdout, done.stderr)
    return (done.stderr if code else done.stdout).decode()


def test_list_and_get_are_tables_for_people_and_json_for_programs(gateway: Gateway) -> None:
    lines = said(gateway, "list").splitlines()
    assert lines[0].split() == ["NAME", "MODEL", "STATUS", "READY", "WORKERS", "WAITING", "REASON"]
    rows = {line.split()[0]: line for line in lines[1:]}
    assert set(NAMES) <= set(rows)
    assert re.match(r"smol +smol +READY +yes +1 of 1 +0  1 worker ready$", rows["smol"]), rows
    assert "\033" not in "".join(lines), "no colour in a pipe"
    listed = json.loads(said(gateway, "list", "--json"))["model_endpoints"]
    assert [e["name"] for e in listed] == list(NAMES)
    assert [e["name"] for e in json.loads(
        said(gateway, "list", "--order-by", "alphabetical", "--limit", "1", "--json")
    )["model_endpoints"]] == ["other"]
    facts = said(gateway, "get", "smol")
    assert re.search(r"^status +READY$", facts, re.M) and re.search(r"^owner +root$", facts, re.M)
    assert json.loads(said(gateway, "get", "smol", "--json"))["ready"] is True


@pytest.mark.parametrize("columns", [120, 60])
def test_a_terminal_gets_colours_and_no_broken_line(gateway: Gateway, columns: int) -> None:
    code, seen = on_terminal(columns, "endpoints", "list", env={"TESSERA_GATEWAY": gateway.url})
    assert code == 0 and "\033[32mREADY\033[0m" in seen
    plain = re.sub(r"\033\[\d*m", "", seen)
    assert all(len(line) <= columns for line in plain.replace("\r", "").split("\n")), plain
    _, grey = on_terminal(columns, "endpoints", "list",
                          env={"TESSERA_GATEWAY": gateway.url, "NO_COLOR": "1"})
    assert "\033" not in grey


def test_workers_events_and_logs(gateway: Gateway) -> None:
    head, row = said(gateway, "workers", "smol").splitlines()
    worker = json.loads(said(gateway, "workers", "smol", "--json"))["workers"][0]
    assert head.split()[:3] == ["ID", "PID", "STATE"]
    assert row.split()[:3] == [worker["id"], str(worker["pid"]), "ready"]
    events = said(gateway, "events", "smol").splitlines()
    assert [line.split()[2] for line in events[:3]] == ["created", "worker_started", "worker_ready"]
    assert [json.loads(line)["kind"] for line in said(gateway, "events", "smol", "--json").splitlines()
            ][:3] == ["created", "worker_started", "worker_ready"]
    logs = said(gateway, "logs", "smol")
    assert "serving smol at" in logs
    assert said(gateway, "logs", "smol", "-n", "1").count("\n") == 1
    assert said(gateway, "logs", "smol", "--worker", worker["id"]) == logs
    assert "no worker wrk_none" in said(gateway, "logs", "smol", "--worker", "wrk_none", code=1)


def test_a_completion_goes_to_stdout_alone(gateway: Gateway) -> None:
    ask = ("completions", "smol", "-n", "6", "--temperature", "0", "--gateway", gateway.url)
    done = tessera(*ask, "-p", "The capital of France is")
    assert done.returncode == 0 and b"Paris" in done.stdout and done.stderr == b""
    assert tessera(*ask, stdin=b"The capital of France is").stdout == done.stdout
    whole = json.loads(tessera(*ask, "--json", "-p", "The capital of France is").stdout)
    assert whole["output"]["text"] + "\n" == done.stdout.decode()
    wrong = tessera("completions", "smoll", "-p", "a", "--gateway", gateway.url)
    assert wrong.returncode == 1 and b'did you mean "smol"?' in wrong.stderr


def test_scale_update_and_restart(gateway: Gateway) -> None:
    assert "smol" not in said(gateway, "scale", "other", "--max", "3", "--per-worker", "2")
    spec = json.loads(said(gateway, "get", "other", "--json"))
    assert spec["spec"]["deployment_state"]["max_workers"] == 3
    assert "min_workers 4 is more than max_workers 3" in said(gateway, "scale", "other", "--min", "4",
                                                              code=1)
    said(gateway, "update", "other", "--labels", '{"team": "red"}', "--public-inference", "false")
    record = json.loads(said(gateway, "get", "other", "--json"))
    assert record["spec"]["labels"] == {"team": "red"}
    before = json.loads(said(gateway, "workers", "other", "--json"))["workers"][0]["pid"]
    said(gateway, "restart", "other", "--wait")
    for _ in range(200):
        pids = [w["pid"] for w in json.loads(said(gateway, "workers", "other", "--json"))["workers"]]
        if before not in pids:
            break
        time.sleep(0.05)
    assert pids and before not in pids


def test_fields_come_from_a_file_and_flags_go_before_them(gateway: Gateway, tmp_path: Path) -> None:
    file = tmp_path / "fields.json"
    file.write_text(json.dumps({"name": "filed", "model_name": "smol", "min_workers": 0,
                                "max_workers": 1, "per_worker": 3, "metadata": {"a": 1}}))
    try:
        said(gateway, "create", "--file", file, "--max-workers", "2")
        state = json.loads(said(gateway, "get", "filed", "--json"))["spec"]
        assert state["deployment_state"]["max_workers"] == 2 and state["metadata"] == {"a": 1}
        assert state["deployment_state"]["per_worker"] == 3
    finally:
        said(gateway, "delete", "filed", "--wait")


def test_following_events_ends_with_the_endpoint(gateway: Gateway) -> None:
    said(gateway, "create", "brief", "--model", "smol", "--min-workers", "0")
    follow = subprocess.Popen([str(TESSERA), "endpoints", "events", "brief", "-f", "--gateway",
                               gateway.url], stdout=subprocess.PIPE, text=True)
    assert follow.stdout is not None and "created" in follow.stdout.readline()
    said(gateway, "delete", "brief", "--wait")
    assert follow.wait(timeout=30) == 0


def test_wait_says_by_its_exit_code_how_it_ended(gateway: Gateway, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    toml = gateway.dir / "models.toml"
    other = Gateway.__new__(Gateway)
    other.dir, other.cache = tmp_path, gateway.cache
    other.port = free_port()
    other.url = f"http://127.0.0.1:{other.port}"
    other.http = gateway.http.__class__(base_url=other.url, auth=("root", ""), timeout=60)
    (tmp_path / "models.toml").write_text(toml.read_text() + f'broken = "{broken}"\n')
    other.start()
    try:
        said(other, "create", "bad", "--model", "broken")
        text = said(other, "wait", "bad", code=1)
        assert 'endpoint "bad" failed: ' in text and "broken.gguf" in text
        said(other, "create", "late", "--model", "smol")
        assert "is not ready after 0 ms" in said(other, "wait", "late", "--timeout", "0", code=124)
        code, seen = on_terminal(70, "endpoints", "wait", "late", env={"TESSERA_GATEWAY": other.url})
        assert code == 0 and "late: ready" in seen
        assert all(len(line) < 70 for line in re.split(r"[\r\n]|\033\[K", seen)), seen
    finally:
        assert other.stop() == 0


def test_errors_say_what_to_do(gateway: Gateway) -> None:
    nobody = said(gateway, "list", "--gateway", f"http://127.0.0.1:{free_port()}", code=1)
    assert "no gateway answers at" in nobody and "tessera gateway" in nobody
    assert 'did you mean "smol"?' in said(gateway, "get", "smoll", code=1)
    assert 'there is no endpoint "zzz"; there are other, smol' in said(gateway, "get", "zzz", code=1)
    assert 'there is no endpoint "../smol"' in said(gateway, "get", "../smol", code=1)
    assert "somebody else's" in said(gateway, "delete", "smol", code=1, TESSERA_API_KEY="mallory")
    unknown = said(gateway, "list", code=1, TESSERA_API_KEY="x" * 300)
    assert "does not know the caller" in unknown and "--api-key-file" in unknown
    assert "labels: " in said(gateway, "update", "smol", "--labels", '{"a": 3}', code=1)
    assert "--min-workers" in said(gateway, "create", "a", "--model", "smol", "--min-workers", "x",
                                   code=2)
    assert "NAME and a --model" in said(gateway, "create", "a", code=1)
    assert "expected an address" in said(gateway, "list", "--gateway", "localhost:5000", code=1)
    assert "nothing to change" in said(gateway, "update", "smol", code=1)


def test_a_key_comes_from_a_file_and_https_is_checked(tmp_path: Path, cache: Path) -> None:  # noqa: F811
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", tmp_path / "key.pem", "-out",
                    tmp_path / "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    port = free_port()
    process = subprocess.Popen(
        [str(TESSERA), "gateway", "--port", str(port), "--state-dir", str(tmp_path / "state"),
         "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")],
        stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None and "gateway at https://" in process.stderr.readline()
        (tmp_path / "key").write_text("me\n")
        ask = ("endpoints", "list", "--gateway", f"https://127.0.0.1:{port}", "--api-key-file",
               tmp_path / "key")
        trusted = tessera(*ask, "--tls-ca", tmp_path / "cert.pem")
        assert trusted.returncode == 0, trusted.stderr
        refused = tessera(*ask)
        assert refused.returncode == 1 and b"--tls-ca" in refused.stderr, refused.stderr
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
