#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a repository as Hugging Face has them, with random weights in the shapes of a Llama.

    bench/random_llama.py FOLDER --shape 8B --tokenizer FOLDER [--layers 8]

Safetensors in bfloat16, one file a gigabyte or so. Values are normal with the deviation of trained
weights; they repeat after 16 million, which no part of a compiler notices. `--tokenizer` is a
folder with a tokenizer.json: of a repository or a bundle.
"""

from __future__ import annotations

import argparse
import json
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy

# layers, hidden, ffn, heads, kv heads, head size, vocabulary
SHAPES = {"135M": (30, 576, 1536, 9, 3, 64, 49152),
          "1B": (16, 2048, 8192, 32, 8, 64, 128256),
          "8B": (32, 4096, 14336, 32, 8, 128, 128256),
          "70B": (80, 8192, 28672, 64, 8, 128, 128256)}
TIED = {"135M"}
POOL = 16 << 20  # Values.
SHARD_BYTES = 1 << 30

Tensor = tuple[str, tuple[int, ...]]


def tensors_of(shape: str, layers: int) -> list[Tensor]:
    _, hidden, ffn, heads, kv_heads, size, vocab = SHAPES[shape]
    found: list[Tensor] = [("model.embed_tokens.weight", (vocab, hidden))]
    for i in range(layers):
        at = f"model.layers.{i}"
        found += [(f"{at}.input_layernorm.weight", (hidden,)),
                  (f"{at}.post_attention_layernorm.weight", (hidden,)),
                  (f"{at}.self_attn.q_proj.weight", (heads * size, hidden)),
                  (f"{at}.self_attn.k_proj.weight", (kv_heads * size, hidden)),
                  (f"{at}.self_attn.v_proj.weight", (kv_heads * size, hidden)),
                  (f"{at}.self_attn.o_proj.weight", (hidden, heads * size)),
                  (f"{at}.mlp.gate_proj.weight", (ffn, hidden)),
                  (f"{at}.mlp.up_proj.weight", (ffn, hidden)),
                  (f"{at}.mlp.down_proj.weight", (hidden, ffn))]
    found.append(("model.norm.weight", (hidden,)))
    return found if shape in TIED else found + [("lm_head.weight", (vocab, hidden))]


def bytes_of(shape: tuple[int, ...]) -> int:
    return 2 * int(numpy.prod(shape))


def pool_of_values() -> numpy.ndarray:
    """Normal values of deviation 0.02 as bfloat16."""
    values = numpy.random.default_rng(1).standard_normal(POOL, dtype=numpy.float32) * 0.02
    return (values.view(numpy.uint32) >> 16).astype(numpy.uint16)


def write_tensor(file: BinaryIO, shape: tuple[int, ...], pool: numpy.ndarray, at: int) -> None:
    if len(shape) == 1:
        file.write(numpy.full(shape, 0x3f80, numpy.uint16).tobytes())  # Norms: ones.
        return
    left = int(numpy.prod(shape))
    while left > 0:
        piece = pool[at:at + left]
        file.write(memoryview(piece))
        left -= len(piece)
        at = 0


def write_shard(path: Path, tensors: list[Tensor], pool: numpy.ndarray) -> None:
    header, end = {}, 0
    for name, shape in tensors:
        begin, end = end, end + bytes_of(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors:
            write_tensor(file, shape, pool, zlib.crc32(name.encode()) % POOL)


def shards_of(tensors: list[Tensor]) -> list[list[Tensor]]:
    shards: list[list[Tensor]] = [[]]
    filled = 0
    for tensor in tensors:
        if shards[-1] and filled + bytes_of(tensor[1]) > SHARD_BYTES:
            shards.append([])
            filled = 0
        shards[-1].append(tensor)
        filled += bytes_of(tensor[1])
    return shards


def write_config(folder: Path, shape: str, layers: int, tokenizer: Path) -> None:
    _, hidden, ffn, heads, kv_heads, size, vocab = SHAPES[shape]
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
              "num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": ffn,
              "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": size,
              "vocab_size": vocab, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
              "rope_theta": 500000.0, "hidden_act": "silu", "tie_word_embeddings": shape in TIED,
              "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "tokenizer.json").write_bytes((tokenizer / "tokenizer.json").read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--layers", type=int, default=0, help="fewer than the shape has")
    parser.add_argument("--tokenizer", type=Path, required=True)
    args = parser.parse_args()
    layers = args.layers or SHAPES[args.shape][0]
    args.folder.mkdir(parents=True)
    write_config(args.folder, args.shape, layers, args.tokenizer)
    pool = pool_of_values()
    shards = shards_of(tensors_of(args.shape, layers))
    weight_map = {}
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        write_shard(args.folder / name, tensors, pool)
        weight_map.update({tensor: name for tensor, _ in tensors})
    total = sum(bytes_of(shape) for tensors in shards for _, shape in tensors)
    (args.folder / "model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {"total_size": total}, "weight_map": weight_map}))
    print(f"{args.folder}: {total / 1e9:.2f} GB in {len(shards)} files")


if __name__ == "__main__":
    main()
