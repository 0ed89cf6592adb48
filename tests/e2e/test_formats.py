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

# What the message of each bad file must hold besides its path: where (an offset or a field), what
# was found, and what was expected instead.
REQUIRED: dict[str, tuple[str, ...]] = {
    "alignment_not_pow2.gguf": ("general.alignment", "is 24", "expected a power of two"),
    "alignment_zero.gguf": ("general.alignment", "is 0", "expected a power of two"),
    "array_count_overflow.gguf": ("offset 132", "metadata k", "2305843009213693953 elements", "do not fit", "92 bytes"),
    "block_misaligned_row.gguf": ("offset 128", "tensor a", "row of 33", "no multiple of Q8_0's block of 32"),
    "dims_overflow.gguf": ("offset 116", "tensor a", "[8589934592,8589934592]", "2^63 - 1"),
    "duplicate_key.gguf": ("offset 107", "general.name", "occurs twice", "expected once"),
    "duplicate_tensor.gguf": ("tensor a", "occurs twice", "expected once"),
    "empty_file.gguf": ("offset 0", "magic", "needs 4 bytes", "only 0 are left"),
    "huge_kv_count.gguf": ("offset 16", "metadata count", "18446744073709551615", "limit of"),
    "huge_tensor_count.gguf": ("offset 8", "tensor count", "4611686018427387904", "limit of"),
    "magic_only.gguf": ("offset 4", "version", "needs 4 bytes", "only 0 are left"),
    "offset_misaligned.gguf": ("offset 132", "tensor a", "data offset is 4", "expected a multiple of the alignment 32"),
    "offset_past_end.gguf": ("tensor a", "its data is at 1099511627936", "the file has 192 bytes"),
    "overlapping.gguf": ("tensor a at 192 to 256", "overlaps", "tensor b at 224"),
    "string_len_overflow.gguf": ("offset 107", "metadata key 3 of 3", "18446744073709551612 bytes", "only 77 are left"),
    "string_value_too_long.gguf": ("offset 120", "metadata k", "1000000000 bytes", "only 96 are left"),
    "too_many_dims.gguf": ("offset 116", "tensor a", "9 dimensions", "expected at most 4"),
    "truncated_data.gguf": ("tensor a", "its data is at 160 to 192", "the file has 188 bytes"),
    "truncated_in_kv.gguf": ("offset 56", "general.architecture", "needs 8 bytes", "only 4 are left"),
    "truncated_in_tensor_info.gguf": ("offset 107", "tensor infos", "do not fit", "9 bytes"),
    "unknown_kv_type.gguf": ("offset 116", "metadata k", "value type 77", "expected 0 to 12"),
    "unknown_tensor_type.gguf": ("offset 128", "tensor a", "tensor type 999", "expected a ggml type: 0-3, 6-30"),
    "version_0.gguf": ("offset 4", "version is 0", "expected 2 or 3"),
    "version_99.gguf": ("offset 4", "version is 99", "expected 2 or 3"),
    "version_byteswapped.gguf": ("offset 4", "version is 50331648", "expected 2 or 3", "big-endian"),
    "wrong_magic.gguf": ("offset 0", "magic is 0x58554747", 'expected 0x46554747 ("GGUF")'),
    "begin_after_end.safetensors": ("tensor a", "data_offsets are [16, 0]", "expected the end not before the begin"),
    "deep_nesting.safetensors": ("header", "offset 40", "nested deeper than 8 levels"),
    "duplicate_key.safetensors": ("header", "offset 56", 'duplicate key "a"', "expected each key once"),
    "empty_file.safetensors": ("offset 0", "header length", "needs 8 bytes", "only 0 are left"),
    "header_len_beyond_file.safetensors": ("offset 0", "header length is 1000000", "only 72 bytes follow"),
    "header_len_huge.safetensors": ("offset 0", "header length is 18446744073709551615", "only 72 bytes follow"),
    "hole.safetensors": ("tensor b", "data_offsets begin at 32", "expected 16", "hole"),
    "json_truncated.safetensors": ("header", "offset 32", "expected", "got the end of the text"),
    "missing_field.safetensors": ("tensor a", "data_offsets is missing", "expected an array"),
    "negative_offset.safetensors": ("tensor a", "data_offsets[0] is -16", "expected a non-negative integer"),
    "not_json.safetensors": ("header", "offset 0", "invalid JSON", "expected a value", 'got "'),
    "offset_end_past_file.safetensors": ("tensor a", "data_offsets end at 32", "the file has 16 data bytes"),
    "overlapping.safetensors": ("tensor b", "data_offsets begin at 8", "expected 16", "overlap"),
    "seven_bytes.safetensors": ("offset 0", "header length", "needs 8 bytes", "only 7 are left"),
    "shape_overflow.safetensors": ("tensor a", "shape [8589934592,8589934592,4]", "2^63 - 1"),
    "top_level_array.safetensors": ("header", "is array", "expected an object"),
    "unknown_dtype.safetensors": ("tensor a", "dtype F33", "expected one of BF16, BOOL", "F32"),
    "wrong_size_for_dtype.safetensors": ("tensor a", "data_offsets span 8 bytes", "[4] of F32 needs 16"),
}
VALID = [(kind, case["file"]) for kind in ("gguf", "safetensors")
         for case in cases(kind, "valid")]


@pytest.mark.parametrize("kind,file", MALFORMED)
def test_malformed_file_is_one_clear_error(kind: str, file: str) -> None:
    done = tessera("inspect", FIXTURES / kind / file)
    assert done.returncode == 1, done.stdout
    message = done.stderr.decode().strip()
    assert message.startswith("tessera: ") and "\n" not in message
    assert file in message
    for words in REQUIRED[Path(file).name]:
        assert words in message, words
    assert not done.stdout


def test_every_malformed_file_has_its_words() -> None:
    assert {Path(file).name for _, file in MALFORMED} == set(REQUIRED)


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
