// SPDX-License-Identifier: Apache-2.0
//
// Metadata: typed key-values of a parameter file, in file order. The types are GGUF's; safetensors
// has strings only. Large arrays (a tokenizer's vocabulary) are kept as typed vectors, never as one
// variant per element. Immutable after opening, so any thread may read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/status.h"

namespace tessera::formats {

struct NestedArray;

using MetadataValue =
    std::variant<bool, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t,
                 float, double, std::string, std::vector<bool>, std::vector<uint8_t>,
                 std::vector<int8_t>, std::vector<uint16_t>, std::vector<int16_t>,
                 std::vector<uint32_t>, std::vector<int32_t>, std::vector<uint64_t>,
                 std::vector<int64_t>, std::vector<float>, std::vector<double>,
                 std::vector<std::string>, std::vector<NestedArray>>;

/// One array inside an array; `value` holds one of the vectors.
struct NestedArray {
  MetadataValue value;
  bool operator==(const NestedArray&) const = default;
};

/// "u32", "text", "array of f32": for messages and listings.
std::string_view KindName(const MetadataValue& value);

class Metadata {
 public:
  /// kAlreadyExists for a key that is there.
  Status Add(std::string key, MetadataValue value);
  /// Null when absent.
  const MetadataValue* Find(std::string_view key) const;
  const std::vector<std::pair<std::string, MetadataValue>>& items() const { return items_; }
  bool empty() const { return items_.empty(); }

  // Typed reads. Any integer type serves as an integer and any number as a double, since writers
  // differ; kInvalidArgument names the key and both types when the kind is wrong, kNotFound the
  // key when it is absent, kOutOfRange a u64 beyond 2^63 - 1.
  Result<int64_t> Int(std::string_view key) const;
  Result<double> Number(std::string_view key) const;
  Result<bool> Bool(std::string_view key) const;
  Result<std::string> Text(std::string_view key) const;
  /// The array in place; null when absent or of another type.
  const std::vector<std::string>* Strings(std::string_view key) const;
  const std::vector<float>* Floats(std::string_view key) const;
  /// Integers of any width, widened.
  Result<std::vector<int64_t>> Ints(std::string_view key) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };
  Result<const MetadataValue*> Need(std::string_view key) const;

  std::vector<std::pair<std::string, MetadataValue>> items_;
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> by_key_;
};

}  // namespace tessera::formats
