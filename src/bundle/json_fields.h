// SPDX-License-Identifier: Apache-2.0
//
// Checked reads of the members of one JSON object: what manifest, config and program share. Each
// error names the member's full path ("weights[3].rows").
//
// Types and absence are base/json.h's; this adds paths, ranges and lengths, since a bundle is of
// our own format. model/key_reader.h, over the same base, is for formats of others: it keeps
// account of the keys that were read, so that unknown ones can be told apart from harmless ones.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tessera::bundle {

class Fields {
 public:
  /// kInvalidArgument when `value` is no object. Views `value`, which must outlive the Fields.
  static Result<Fields> Of(const json::Value& value, std::string path);

  const std::string& path() const { return path_; }
  bool Has(std::string_view key) const { return json::Find(*object_, key) != nullptr; }
  /// kInvalidArgument naming the first member that is not in `known`.
  Status OnlyKnown(std::initializer_list<std::string_view> known) const;

  /// Integers must lie in [low, high].
  Result<int64_t> Int(std::string_view key, int64_t low, int64_t high) const;
  Result<int64_t> IntOr(std::string_view key, int64_t fallback, int64_t low, int64_t high) const;
  /// Finite.
  Result<double> Number(std::string_view key) const;
  Result<std::string> Text(std::string_view key) const;
  Result<std::string> TextOr(std::string_view key, std::string fallback) const;
  Result<bool> BoolOr(std::string_view key, bool fallback) const;
  /// An absent member is an empty array. At most `max` elements, each in [low, high].
  Result<std::vector<int64_t>> Ints(std::string_view key, uint64_t max, int64_t low,
                                    int64_t high) const;
  Result<std::vector<std::string>> Texts(std::string_view key, uint64_t max) const;
  /// The member's elements as objects; absent = none.
  Result<std::vector<Fields>> Objects(std::string_view key, uint64_t max) const;
  Result<Fields> Object(std::string_view key) const;

 private:
  Fields(const json::Object* object, std::string path) : object_(object), path_(std::move(path)) {}
  Status At(Status status) const;
  std::string PathOf(std::string_view key) const;
  /// Null when absent; kInvalidArgument when not an array or longer than `max`.
  Result<const json::Array*> ArrayOf(std::string_view key, uint64_t max) const;

  const json::Object* object_;
  std::string path_;
};

}  // namespace tessera::bundle
