// SPDX-License-Identifier: Apache-2.0
//
// MetadataReader: reads keys "<prefix><key>" of a file's metadata and remembers which ones were
// asked for; the counterpart of KeyReader for GGUF.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "formats/metadata.h"

namespace tessera::model {

class MetadataReader {
 public:
  /// `metadata` must outlive the reader. `prefix` ends with a dot.
  MetadataReader(const formats::Metadata& metadata, std::string prefix)
      : metadata_(metadata), prefix_(std::move(prefix)) {}

  bool Has(std::string_view key);
  Result<int64_t> NeedInt(std::string_view key);
  Result<int64_t> Int(std::string_view key, int64_t fallback);
  Result<double> NeedNumber(std::string_view key);
  Result<double> Number(std::string_view key, double fallback);
  Result<std::string> Text(std::string_view key, std::string_view fallback);
  /// The number must be absent or `value`; kUnimplemented names the key otherwise.
  Status MustEqual(std::string_view key, double value, std::string_view why);
  /// kUnimplemented naming every key under the prefix that was not asked for and is not in
  /// `harmless` (without the prefix).
  Status RefuseOthers(std::span<const std::string_view> harmless) const;

 private:
  std::string Full(std::string_view key);  // Marks it.

  const formats::Metadata& metadata_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace tessera::model
