# SPDX-License-Identifier: Apache-2.0
"""Repositories of any size in a few kilobytes: every tensor of the archive is one value (a splat)."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

HEADER, ENTRY, ALIGNMENT = 88, 85, 16
FIRST = -(-HEADER // ALIGNMENT) * ALIGNMENT
SPLAT = 1


def entry(text_at: int, name: str, metadata: str, size: int, pattern: bytes) -> bytes:
    """One row of the table: what kind, where its texts are, how long, of what."""
    return struct.pack("<QIQ", ENTRY, SPLAT, 0) + struct.pack(
        "<QQQQQ", text_at, len(name), text_at + len(name), len(metadata), 0) + struct.pack(
        "<Q16sB", size, pattern, len(pattern))


def write_splats(path: Path, tensors: list[tuple[str, list[int]]], pattern: bytes) -> None:
    """An IREE parameter archive of bfloat16 tensors that repeat `pattern`."""
    table, texts = b"", ""
    for name, shape in tensors:
        metadata = "PYTORCH:" + json.dumps({"type": "Tensor", "dtype": "bfloat16", "shape": shape})
        table += b"\0" * (-len(table) % ALIGNMENT)
        table += entry(len(texts), name, metadata, 2 * math.prod(shape), pattern)
        texts += name + metadata
    texts_at = FIRST + len(table)
    header = struct.pack("<4sHHQQQQQQQQQQ", b"IRPA", 0, 0, HEADER, 0, 0, len(tensors), FIRST,
                         len(table), texts_at, len(texts), texts_at + len(texts), 0)
    body = header.ljust(FIRST, b"\0") + table + texts.encode()
    path.write_bytes(body.ljust(-(-len(body) // 4096) * 4096, b"\0"))
