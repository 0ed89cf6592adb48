// SPDX-License-Identifier: Apache-2.0
//
// What a dataset says of itself, for the verb `inspect`: properties and logical tensors.
#pragma once

#include <string>

#include "base/json.h"
#include "formats/irpa/dataset.h"

namespace tessera::formats::irpa {

/// A line a property (long arrays by their count), then a line a logical tensor: type, layout,
/// shape, how it is split, the entries of its parts.
Result<std::string> DescribeDatasetText(const ParameterIndex& index, const Dataset& dataset);

/// {"generation": "SHARK" | "AMD_SHARK", "ranks": n, "properties": {key: value}, "tensors":
///  [{"name", "type_name", "shape", "layout_type"?, "layout_metadata"?, "shard_count"?,
///    "shard_dim"?, "parts": {local: {"entry", "dtype", "shape"}}}]}
/// Arrays of more than `array_items` elements are {"count": n, "first": [...]}.
Result<json::Value> DescribeDatasetJson(const ParameterIndex& index, const Dataset& dataset,
                                        size_t array_items = 8);

}  // namespace tessera::formats::irpa
