"""inspect on every fixture: right facts for good files, one clear error for bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import SHARED, tessera

FIXTURES = SHARED / "fixtures"


def cases(kind: str, group: str) -> list[dict[str, Any]]:
    return json.loads((FIXTURES / kind / "cases.json").read_text())[group]


MALFORMED = [(kind, case["file"]) for kind in ("gguf", "safetensors")
             for case in cases(kind, "malformed") if case["must_reject"]]
VALID = [(kind, case["file"]) for kind in ("gguf", "safetensors")
         for case in cases(kind, "valid")]


@pytest.mark.parametrize("kind,file", MALFORMED)
def test_malformed_file_is_one_clear_error(kind: str, file: str) -> None:
    done = tessera("inspect", FIXTURES / kind / file)
    assert done.returncode == 1, done.stdout
    message = done.stderr.decode().strip()
    assert message.startswith("tessera: ") and "\n" not in message
    assert Path(file).name in message and len(message) > len(file) + 40
    assert not done.stdout


@pytest.mark.parametrize("kind,file", VALID)
def test_valid_corner_file_is_described(kind: str, file: str) -> None:
    done = tessera("inspect", FIXTURES / kind / file, "--json")
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)
    assert tessera("inspect", FIXTURES / kind / file).returncode == 0


def test_dump_of_every_gguf_type_is_exact() -> None:
    """float32 equality, bit for bit, through the verb."""
    expected = np.fromfile(FIXTURES / "gguf/types_expected.f32", dtype="<u4")
    rows = json.loads((FIXTURES / "gguf/types_expected.json").read_text())["tensors"]
    index = json.loads(tessera("inspect", FIXTURES / "gguf/types.gguf", "--json").stdout)
    assert {t["name"] for t in index["tensors"]} == set(rows)
    for name, row in rows.items():
        done = tessera("inspect", FIXTURES / "gguf/types.gguf", "--dump", name)
        assert done.returncode == 0, done.stderr
        begin = row["f32_offset"] // 4
        want = expected[begin:begin + row["f32_bytes"] // 4].view("<f4")
        got = np.frombuffer(done.stdout, dtype="<f4")
        assert got.shape == want.shape, name
        same = (got.view("<u4") == want.view("<u4")) | (np.isnan(got) & np.isnan(want))
        assert same.all(), name


@pytest.mark.parametrize("path", sorted(p.name for p in (SHARED / "samples/shark/irpa").glob("*.irpa")))
def test_irpa_archives(path: str) -> None:
    """Names, lengths and offsets as the reference tools report them."""
    folder = SHARED / "samples/shark/irpa"
    expected = json.loads((folder / "expected.json").read_text())[path]
    done = tessera("inspect", folder / path, "--json")
    if expected.get("header_offset", 0) != 0:
        assert done.returncode == 1 and path in done.stderr.decode()
        return
    assert done.returncode == 0, done.stderr
    tensors = json.loads(done.stdout)["tensors"]
    wanted = [e for e in expected["entries"] if e["type"] != "SKIP"]
    assert [t["name"] for t in tensors] == [e["name"] for e in wanted]
    for tensor, entry in zip(tensors, wanted):
        assert tensor["bytes"] == entry["length"]
        if entry["type"] == "DATA":
            assert tensor["offset"] == entry["file_offset"]


def test_missing_and_unknown_files(tmp_path: Path) -> None:
    done = tessera("inspect", tmp_path / "none.gguf")
    assert done.returncode == 1 and b"none.gguf" in done.stderr
    other = tmp_path / "x.bin"
    other.write_bytes(b"\x80\x02" + b"x" * 100)
    done = tessera("inspect", other)
    assert done.returncode == 1 and b"x.bin" in done.stderr
