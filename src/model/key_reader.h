// SPDX-License-Identifier: Apache-2.0
//
// KeyReader: reads members of a JSON object and remembers which ones were asked for, so that at the
// end whatever nobody asked for can be refused by name. A null member counts as absent, as the
// configuration classes that write these files mean it.
//
// Reads by base/json.h and adds the account of keys, which bundle/json_fields.h (our own format, a
// closed list of members with ranges) has no use for: which keys a config may have depends on what
// was read before.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tessera::model {

class KeyReader {
 public:
  /// `object` must outlive the reader. `prefix` ("rope_scaling.") goes before keys in messages.
  explicit KeyReader(const json::Object& object, std::string prefix = {})
      : object_(object), prefix_(std::move(prefix)) {}

  // Like the functions of json.h, with the prefix in messages.
  Result<int64_t> NeedInt(std::string_view key);
  Result<int64_t> Int(std::string_view key, int64_t fallback);
  Result<double> NeedDouble(std::string_view key);
  Result<double> Double(std::string_view key, double fallback);
  Result<bool> Bool(std::string_view key, bool fallback);
  Result<std::string> String(std::string_view key, std::string_view fallback);
  Result<std::string> NeedString(std::string_view key);
  /// Null when absent.
  Result<const json::Object*> ObjectAt(std::string_view key);
  /// Empty when absent.
  Result<std::vector<std::string>> Strings(std::string_view key);
  /// Integers of a member that is one integer or a list of them; empty when absent.
  Result<std::vector<int64_t>> IntOrInts(std::string_view key, size_t max_count);

  /// Whether the member is there and not null. Marks it.
  bool Has(std::string_view key);
  /// Whether the member is there and null: "none", where absence would mean a default. Marks it.
  bool IsNull(std::string_view key);
  /// The member must be absent or equal `value` ("1", "false", ... as compact JSON; 1.0 equals 1);
  /// kUnimplemented names it and says why otherwise.
  Status MustEqual(std::string_view key, std::string_view value, std::string_view why);
  /// kUnimplemented naming every member that is neither null, nor was asked for, nor is in
  /// `harmless`.
  Status RefuseOthers(std::span<const std::string_view> harmless) const;

 private:
  const json::Value* Look(std::string_view key);
  template <class T>
  Result<T> Named(Result<T> result) const;

  const json::Object& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace tessera::model
