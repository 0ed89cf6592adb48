"""Downloads of a model's files through the gateway: signed addresses that expire."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import httpx

os.environ.setdefault("LLM_ENGINE_DISABLE_VERSION_CHECK", "1")
from llmengine import Model, api_engine

from conftest import GGUF
from test_gateway import Gateway, cache, gateway  # noqa: F401  (fixtures)

ASK = "/v1/llm/model-endpoints/download"


def off(gateway: Gateway, name: str, **fields: object) -> None:
    """An endpoint that starts nothing: its files are there all the same."""
    made = gateway.create(name, min_workers=0, max_workers=0, **fields)
    assert made.status_code == 200, made.text


def test_the_client_gets_the_files_of_its_model(gateway: Gateway) -> None:
    off(gateway, "a")
    api_engine.set_base_path(gateway.url)
    api_engine.set_api_key("me")
    urls = Model.download("a").urls
    assert list(urls) == [GGUF.name]
    url = urls[GGUF.name]
    digest = hashlib.sha256()
    with httpx.stream("GET", url) as reply:  # Without a login.
        assert reply.status_code == 200
        for piece in reply.iter_bytes():
            digest.update(piece)
    assert digest.hexdigest() == hashlib.sha256(GGUF.read_bytes()).hexdigest()
    part = httpx.get(url, headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"GGUF")


def test_an_address_serves_what_it_was_signed_for(gateway: Gateway) -> None:
    off(gateway, "a")
    off(gateway, "b")
    url = gateway.http.post(ASK, json={"model_name": "a"}).json()["urls"][GGUF.name]
    head, token, file = re.fullmatch(r"(.*)/(\d+\.[0-9a-f]{64})/(.*)", url).groups()  # type: ignore
    later = str(int(token.split(".")[0]) + 1) + token[token.index("."):]
    for changed in (f"{head}/{later}/{file}", f"{head}/{token}/other", f"{head}/{token}x/{file}",
                    f"{head}/{token}/..%2F{file}", f"{head}0/{token}/{file}"):
        assert httpx.get(changed).status_code in {400, 403}, changed
    other = gateway.http.post(ASK, json={"model_name": "b"}).json()["urls"][GGUF.name]
    assert httpx.get(other.replace(other.split("/")[-2], token)).status_code == 403
    gateway.stop()
    gateway.start()
    assert httpx.get(url, headers={"Range": "bytes=0-3"}).content == b"GGUF", "after a restart, too"
    assert gateway.http.delete("/v1/llm/model-endpoints/a").status_code == 200
    for _ in range(200):
        if gateway.http.get("/v1/llm/model-endpoints/a").status_code == 404:
            break
    assert httpx.get(url).status_code == 404, "the endpoint is gone"


def test_what_is_refused(gateway: Gateway) -> None:
    off(gateway, "a")
    for body, status in [({"model_name": "ghost"}, 404), ({}, 422), ({"model_name": 7}, 422),
                         ({"model_name": "a", "download_format": "nemo"}, 400)]:
        assert gateway.http.post(ASK, json=body).status_code == status, body
    other = httpx.Client(base_url=gateway.url, auth=("other", ""))
    assert other.post(ASK, json={"model_name": "a"}).status_code == 404, "its owner's only"
    assert httpx.post(gateway.url + ASK, json={"model_name": "a"}).status_code == 401
    off(gateway, "hub", model_name="org/not-downloaded")
    reply = gateway.http.post(ASK, json={"model_name": "hub"})
    assert reply.status_code == 404 and "not downloaded" in reply.json()["detail"]


def test_a_folder_gives_its_regular_files(gateway: Gateway, tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    (folder / "sub").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "sub" / "a b.txt").write_text("x")
    (folder / "link").symlink_to("/etc/hostname")
    (tmp_path / "models.toml").write_text(f'[models]\nsmol = "{GGUF}"\nrepo = "{folder}"\n')
    gateway.stop()
    gateway.start()
    off(gateway, "r", model_name="repo")
    urls = gateway.http.post(ASK, json={"model_name": "r"}).json()["urls"]
    assert list(urls) == ["config.json", "sub/a b.txt"]
    assert httpx.get(urls["sub/a b.txt"]).text == "x"
