// SPDX-License-Identifier: Apache-2.0
#include "tensor/known_dtypes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace tessera::tensor {
namespace {

/// The non-empty names of one column, by alphabet.
std::string JoinNames(std::string_view DTypeInfo::*column) {
  std::vector<std::string_view> names;
  for (const DTypeInfo& info : AllDTypes())
    if (!(info.*column).empty()) names.push_back(info.*column);
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string KnownGgufIds() {
  std::vector<int32_t> ids;
  for (const DTypeInfo& info : AllDTypes())
    if (info.gguf_id >= 0) ids.push_back(info.gguf_id);
  std::ranges::sort(ids);
  std::string text;
  for (size_t begin = 0, end; begin < ids.size(); begin = end) {
    end = begin + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
    text += fmt::format("{}{}", begin == 0 ? "" : ", ", ids[begin]);
    if (end - begin > 1) text += fmt::format("-{}", ids[end - 1]);
  }
  return text;
}

std::string KnownSafetensorsNames() {
  return JoinNames(&DTypeInfo::safetensors);
}

std::string KnownTorchNames() {
  return JoinNames(&DTypeInfo::torch);
}

}  // namespace tessera::tensor
