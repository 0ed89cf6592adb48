// SPDX-License-Identifier: Apache-2.0
//
// What a ParameterIndex holds, for people and for programs: the verb `inspect`.
#pragma once

#include <string>

#include "base/json.h"
#include "formats/parameter_index.h"

namespace tessera::formats {

struct DescribeOptions {
  /// Longer arrays of metadata are shown as their count and this many first elements.
  size_t array_items = 8;
  /// Longer texts are cut in the table; JSON keeps them whole.
  size_t text_bytes = 100;
};

/// Files with format, version and metadata, then a line per tensor, then totals.
std::string DescribeText(const ParameterIndex& index, const DescribeOptions& options = {});

/// {"files": [{"path", "format", "version"?, "alignment"?, "bytes", "metadata": {key: value}}],
///  "tensors": [{"name", "dtype", "shape", "file", "offset" (null for a splat or made rows),
///  "bytes",
///               "splat"? (hex), "note"?, "is_tensor"? (false for a blob)}],
///  "totals": {"files", "tensors", "elements", "bytes"}}
/// A metadata array longer than options.array_items is
/// {"kind": "array of text", "count": n, "first": [...]}. Numbers that JSON lacks are texts: "nan",
/// "inf", "-inf".
json::Value DescribeJson(const ParameterIndex& index, const DescribeOptions& options = {});

}  // namespace tessera::formats
