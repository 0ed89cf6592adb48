// SPDX-License-Identifier: Apache-2.0
#include "net/openapi.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"

namespace tessera::net::openapi {

json::Value Parsed(std::string_view text) {
  auto value = json::Parse(text, {}, "schema");
  TESSERA_CHECK(value.has_value());  // It is ours.
  return *std::move(value);
}

json::Object Reference(std::string_view component) {
  return {{"$ref", "#/components/schemas/" + std::string(component)}};
}

json::Value Bound(double value) {
  constexpr double kExact = 9007199254740992.0;
  if (std::trunc(value) == value && std::abs(value) <= kExact) return static_cast<int64_t>(value);
  return value;
}

json::Object Content(std::string_view type, json::Object schema) {
  json::Object media{{"schema", std::move(schema)}};
  json::Object content;
  content[type] = std::move(media);
  return content;
}

json::Object& PathItem(std::string_view path, json::Object* paths) {
  json::Value& item = (*paths)[path];
  if (!item.is_object()) item = json::Object();
  return item.get_object();
}

std::string MethodKey(std::string_view method) {
  std::string key(method);
  for (char& c : key) c = static_cast<char>(c | 0x20);
  return key;
}

}  // namespace tessera::net::openapi
