"""Packs the matrices of a Hugging Face repository as GPTQ, AWQ, compressed-tensors and FP8 writers
do, with numpy alone, and says what each matrix then stands for.

Independent of the product: written from the packers' documentation. The codes are round-to-nearest;
how good they are does not matter, only that packing and unpacking agree.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # Output that nibble n of a word holds.


def read_floats(repository: Path) -> dict[str, np.ndarray]:
    """All tensors as float32; BF16 (which numpy lacks) is widened by hand."""
    tensors = {}
    for path in sorted(repository.glob("*.safetensors")):
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:8 + size])
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + at for at in entry["data_offsets"])
            data = raw[begin:end]
            if entry["dtype"] == "BF16":
                values = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
            else:
                values = np.frombuffer(data, {"F32": "<f4", "F16": "<f2"}[entry["dtype"]])
            tensors[name] = values.astype(np.float32).reshape(entry["shape"])
    return tensors


def pack_words(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes along the last axis into int32 words, the first in the lowest bits."""
    per_word = 32 // bits
    groups = codes.reshape(*codes.shape[:-1], -1, per_word).astype(np.uint64)
    shifts = np.arange(per_word, dtype=np.uint64) * np.uint64(bits)
    return (groups << shifts).sum(-1).astype(np.uint32).view(np.int32)


def quantise(weight: np.ndarray, bits: int, group: int, symmetric: bool):
    """Codes [R, K], f16 scales [R, G], zero points [R, G]; weight ~ scale * (code - zero)."""
    rows, columns = weight.shape
    w = weight.reshape(rows, columns // group, group)
    top = 2 ** bits - 1
    if symmetric:
        scales = (np.abs(w).max(-1) / (2 ** (bits - 1) - 1)).astype(np.float16)
        zeros = np.full(scales.shape, 2 ** (bits - 1))
    else:
        low, high = np.minimum(w.min(-1), 0), np.maximum(w.max(-1), 0)
        scales = ((high - low) / top).astype(np.float16)
        zeros = np.clip(np.round(-low / scales.astype(np.float32)), 1, top)
    steps = scales.astype(np.float32)[..., None]
    codes = np.clip(np.round(w / steps) + zeros[..., None], 0, top).astype(np.int64)
    return codes.reshape(rows, columns), scales, zeros.astype(np.int64)


def meaning(codes, scales, zeros, group_of):
    """What the codes stand for, in float64: exact."""
    return scales.astype(np.float64)[:, group_of] * (codes - zeros[:, group_of])


def gptq(name, weight, out, *, bits, group, symmetric, act_order=False, v2=False):
    columns = weight.shape[1]
    group = group or columns
    codes, scales, zeros = quantise(weight, bits, group, symmetric)
    group_of = np.arange(columns) // group
    if act_order:
        group_of = np.random.default_rng(7).permutation(group_of)
    out[f"{name}.qweight"] = pack_words(codes.T.reshape(columns // (32 // bits), 32 // bits, -1)
                                        .transpose(0, 2, 1), bits)[..., 0]
    stored = zeros.T - (0 if v2 else 1)
    out[f"{name}.qzeros"] = pack_words(stored, bits)
    out[f"{name}.scales"] = np.ascontiguousarray(scales.T)
    out[f"{name}.g_idx"] = group_of.astype(np.int32)
    return meaning(codes, scales, zeros, group_of)


def awq(name, weight, out, *, group):
    codes, scales, zeros = quantise(weight, 4, group, symmetric=False)

    def pack(values):  # [..., R] -> [..., R/8]
        eights = values.reshape(*values.shape[:-1], -1, 8)[..., AWQ_ORDER]
        return pack_words(eights.reshape(values.shape), 4)

    out[f"{name}.qweight"] = pack(codes.T)
    out[f"{name}.qzeros"] = pack(zeros.T)
    out[f"{name}.scales"] = np.ascontiguousarray(scales.T)
    return meaning(codes, scales, zeros, np.arange(weight.shape[1]) // group)


def compressed(name, weight, out, *, bits, group, symmetric, act_order=None):
    """`act_order`: "group" permutes the columns' groups, "unset" leaves the writer's -1."""
    columns = weight.shape[1]
    group = group or columns
    codes, scales, zeros = quantise(weight, bits, group, symmetric)
    group_of = np.arange(columns) // group
    if act_order == "group":
        group_of = np.random.default_rng(7).permutation(group_of)
    if act_order:
        stored = group_of if act_order == "group" else np.full(columns, -1)
        out[f"{name}.weight_g_idx"] = stored.astype(np.int32)
    out[f"{name}.weight_packed"] = pack_words(codes, bits)
    out[f"{name}.weight_scale"] = scales
    out[f"{name}.weight_shape"] = np.array(weight.shape, np.int64)
    if not symmetric:
        out[f"{name}.weight_zero_point"] = np.ascontiguousarray(pack_words(zeros.T, bits).T)
    return meaning(codes, scales, zeros, group_of)


def compressed_config(fmt, **weights):
    return {"quant_method": "compressed-tensors", "format": fmt, "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


def e4m3(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest float8 e4m3fn: bytes and the values that they stand for."""
    table = []
    for byte in range(127):  # Without the NaN at 0x7f.
        exponent, fraction = byte >> 3, byte & 7
        table.append(fraction / 8 * 2.0 ** -6 if exponent == 0
                     else (1 + fraction / 8) * 2.0 ** (exponent - 7))
    table = np.array(table)
    at = np.clip(np.searchsorted(table, np.abs(values)), 1, len(table) - 1)
    at = at - (np.abs(values) - table[at - 1] < table[at] - np.abs(values))
    return (at + np.where(values < 0, 128, 0)).astype(np.uint8), np.sign(values) * table[at]


def fp8(name, weight, out, *, scale_shape, block=None):
    rows, columns = weight.shape
    if block:
        down, right = -(-rows // block), -(-columns // block)
        padded = np.zeros((down * block, right * block), np.float32)
        padded[:rows, :columns] = weight
        scales = np.abs(padded).reshape(down, block, right, block).max((1, 3)) / 448
        scales = np.maximum(scales, 1e-6).astype(np.float32)
        spread = scales.repeat(block, 0).repeat(block, 1)[:rows, :columns]
    else:
        per_row = scale_shape == "row"
        scales = (np.abs(weight).max(1 if per_row else None, keepdims=True) / 448)
        scales = scales.astype(np.float32)
        spread = np.broadcast_to(scales, weight.shape)
        scales = scales if per_row else scales.reshape(() if scale_shape == "tensor" else (1,))
    codes, numbers = e4m3(weight / spread)
    out[f"{name}.weight"] = codes  # The dtype is set in the header below.
    out[f"{name}.weight_scale_inv" if block else f"{name}.weight_scale"] = scales
    return numbers * spread.astype(np.float64)


METHODS = {
    "gptq4": (gptq, dict(bits=4, group=32, symmetric=True),
              {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True,
               "desc_act": False}),
    "gptq4_zeros": (gptq, dict(bits=4, group=64, symmetric=False),
                    {"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": False,
                     "desc_act": False, "checkpoint_format": "gptq"}),
    "gptq4_v2": (gptq, dict(bits=4, group=32, symmetric=False, v2=True),
                 {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False,
                  "checkpoint_format": "gptq_v2"}),
    "gptq4_act_order": (gptq, dict(bits=4, group=32, symmetric=True, act_order=True),
                        {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True,
                         "desc_act": True}),
    "gptq8": (gptq, dict(bits=8, group=32, symmetric=True),
              {"quant_method": "gptq", "bits": 8, "group_size": 32, "sym": True,
               "desc_act": False}),
    "awq": (awq, dict(group=32),
            {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True,
             "version": "gemm"}),
    "gptq4_channel": (gptq, dict(bits=4, group=None, symmetric=True),
                      {"quant_method": "gptq", "bits": 4, "group_size": -1, "sym": True}),
    "gptq8_zeros": (gptq, dict(bits=8, group=32, symmetric=False, v2=True),
                    {"quant_method": "gptq", "bits": 8, "group_size": 32, "sym": False,
                     "checkpoint_format": "gptq_v2"}),
    "gptq4_file": (gptq, dict(bits=4, group=64, symmetric=True),
                   ("quantize_config.json",
                    {"bits": 4, "group_size": 64, "damp_percent": 0.01, "desc_act": False,
                     "sym": True, "true_sequential": True})),
    "awq_file": (awq, dict(group=64),
                 ("quant_config.json",
                  {"zero_point": True, "q_group_size": 64, "w_bit": 4, "version": "GEMM"})),
    "compressed4": (compressed, dict(bits=4, group=32, symmetric=True),
                    compressed_config("pack-quantized", num_bits=4, type="int", symmetric=True,
                                      strategy="group", group_size=32)),
    "compressed4_zeros": (compressed, dict(bits=4, group=64, symmetric=False),
                          compressed_config("pack-quantized", num_bits=4, type="int",
                                            symmetric=False, strategy="group", group_size=64)),
    "compressed4_act_order": (compressed, dict(bits=4, group=32, symmetric=True, act_order="group"),
                              compressed_config("pack-quantized", num_bits=4, type="int",
                                                symmetric=True, strategy="group", group_size=32,
                                                actorder="group")),
    "compressed4_unset": (compressed, dict(bits=4, group=32, symmetric=True, act_order="unset"),
                          compressed_config("pack-quantized", num_bits=4, type="int",
                                            symmetric=True, strategy="group", group_size=32,
                                            actorder="weight")),
    "compressed8": (compressed, dict(bits=8, group=None, symmetric=True),
                    compressed_config("pack-quantized", num_bits=8, type="int", symmetric=True,
                                      strategy="channel", group_size=None)),
    "fp8_tensor": (fp8, dict(scale_shape="tensor"),
                   {"quant_method": "fp8", "activation_scheme": "static"}),
    "fp8_tensor_compressed": (fp8, dict(scale_shape="one"),
                              compressed_config("float-quantized", num_bits=8, type="float",
                                                symmetric=True, strategy="tensor")),
    "fp8_modelopt": (fp8, dict(scale_shape="tensor"),
                     ("hf_quant_config.json",
                      {"producer": {"name": "modelopt", "version": "0.23.0"},
                       "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8",
                                        "exclude_modules": ["lm_head"]}})),
    "fp8_row": (fp8, dict(scale_shape="row"),
                compressed_config("float-quantized", num_bits=8, type="float", symmetric=True,
                                  strategy="channel")),
    "fp8_block": (fp8, dict(scale_shape="block", block=48),
                  {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [48, 48]}),
}


def save(path: Path, tensors: dict[str, np.ndarray], fp8_names: set[str]) -> None:
    save_file(tensors, path)
    if not fp8_names:
        return
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    for name in fp8_names:
        header[name]["dtype"] = "F8_E4M3"
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + size:])


def make(source: Path, target: Path, method: str) -> dict[str, np.ndarray]:
    """Writes the repository; returns what every layer's matrix stands for, by NAME.weight."""
    pack, options, config = METHODS[method]
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.suffix != ".safetensors" and not path.name.endswith(".index.json"):
            shutil.copy(path, target / path.name)
    text = json.loads((source / "config.json").read_text())
    if isinstance(config, tuple):  # A file of its own.
        (target / config[0]).write_text(json.dumps(config[1]))
    else:
        text["quantization_config"] = config
    (target / "config.json").chmod(0o644)
    (target / "config.json").write_text(json.dumps(text))
    tensors, expected, fp8_names = {}, {}, set()
    for name, values in read_floats(source).items():
        if ".layers." in name and name.endswith("_proj.weight"):
            module = name.removesuffix(".weight")
            expected[name] = pack(module, values, tensors, **options)
            if pack is fp8:
                fp8_names.add(name)
                tensors[f"{module}.input_scale"] = np.float32(0.5).reshape(())
        else:
            tensors[name] = values
    tensors = {name: np.ascontiguousarray(values).reshape(np.shape(values))
               for name, values in tensors.items()}
    save(target / "model.safetensors", tensors, fp8_names)
    return expected


__all__ = ["METHODS", "make", "read_floats", "safe_open"]
