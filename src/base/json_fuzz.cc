// SPDX-License-Identifier: Apache-2.0
//
// Any bytes are refused with a message of one printable line, or give a value whose text, compact
// and indented, reads back as the same value. Small limits too: refused or within them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"

namespace {

namespace json = tessera::json;

void CheckMessage(const tessera::Status& status) {
  const std::string text = status.ToString();
  TESSERA_CHECK(text.size() < 1024);
  for (const char c : text.substr(0, text.find("duplicate key")))
    TESSERA_CHECK(c >= 0x20 && c < 0x7f);
}

uint32_t Depth(const json::Value& value) {
  uint32_t deepest = 0;
  if (const json::Object* object = value.if_object()) {
    for (const auto& member : *object) deepest = std::max(deepest, Depth(member.value()));
    return deepest + 1;
  }
  if (const json::Array* array = value.if_array()) {
    for (const json::Value& element : *array) deepest = std::max(deepest, Depth(element));
    return deepest + 1;
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const json::Limits small{.max_bytes = 1024, .max_depth = 4, .max_keys = 8};
  if (const auto value = json::Parse(text, small, "small"); value.has_value())
    TESSERA_CHECK(size <= small.max_bytes && Depth(*value) <= small.max_depth);
  const auto value = json::Parse(text, json::Limits{}, "input");
  if (!value.has_value()) {
    CheckMessage(value.error());
    return 0;
  }
  const auto compact = json::Parse(json::Serialize(*value), json::Limits{}, "compact");
  TESSERA_CHECK(compact.has_value() && *compact == *value);
  const auto pretty = json::Parse(json::SerializePretty(*value), json::Limits{}, "pretty");
  TESSERA_CHECK(pretty.has_value() && *pretty == *value);
  return 0;
}
