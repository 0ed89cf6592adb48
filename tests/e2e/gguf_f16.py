"""A GGUF with the same metadata and every matrix as float16: a float source for tests, made from a quantised one."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np
from conftest import tessera

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9
F32, F16 = 0, 1
ALIGNMENT = 32


def number(file: BinaryIO, code: str) -> int:
    return struct.unpack("<" + code, file.read(struct.calcsize(code)))[0]


def string(file: BinaryIO) -> bytes:
    return file.read(number(file, "Q"))


def skip_value(file: BinaryIO, kind: int) -> None:
    if kind == STRING:
        string(file)
    elif kind == ARRAY:
        element, count = number(file, "I"), number(file, "Q")
        if element in SIZES:
            file.seek(SIZES[element] * count, 1)
        else:
            for _ in range(count):
                skip_value(file, element)
    else:
        file.seek(SIZES[kind], 1)


def with_block_count(metadata: bytes, layers: int) -> bytes:
    at = metadata.index(b".block_count") + len(b".block_count")
    kind, value = struct.unpack_from("<II", metadata, at)
    assert kind == 4 and layers <= value  # uint32
    return metadata[:at + 4] + struct.pack("<I", layers) + metadata[at + 8:]


def is_kept(name: bytes, layers: int | None) -> bool:
    return layers is None or not name.startswith(b"blk.") or int(name.split(b".")[1]) < layers


def write_f16_copy(source: Path, target: Path, layers: int | None = None) -> None:
    """`layers`: only the first so many."""
    with source.open("rb") as file:
        file.seek(8)
        tensors, pairs = number(file, "Q"), number(file, "Q")
        begin = file.tell()
        for _ in range(pairs):
            string(file)
            skip_value(file, number(file, "I"))
        end = file.tell()
        file.seek(begin)
        metadata = file.read(end - begin)
        shapes = []
        for _ in range(tensors):
            name = string(file)
            shapes.append((name, [number(file, "Q") for _ in range(number(file, "I"))]))
            file.seek(12, 1)  # Its type and offset.
    if layers is not None:
        metadata = with_block_count(metadata, layers)
        shapes = [(name, dims) for name, dims in shapes if is_kept(name, layers)]
        tensors = len(shapes)
    infos, offset = b"", 0
    with target.open("wb") as file:
        for name, dims in shapes:
            kind = F32 if len(dims) == 1 else F16
            infos += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(dims))
            infos += struct.pack(f"<{len(dims)}QIQ", *dims, kind, offset)
            offset += int(np.prod(dims)) * (4 if kind == F32 else 2)
            offset += -offset % ALIGNMENT
        head = b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + metadata + infos
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for name, dims in shapes:
            done = tessera("inspect", source, "--dump", name.decode())
            assert done.returncode == 0, done.stderr.decode()
            values = np.frombuffer(done.stdout, "<f4")
            data = values.tobytes() if len(dims) == 1 else values.astype("<f2").tobytes()
            file.write(data + bytes(-len(data) % ALIGNMENT))
