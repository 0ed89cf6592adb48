// SPDX-License-Identifier: Apache-2.0
//
// Schemas of answers and of query parameters, as JSON Schema 2020-12 (OpenAPI 3.1), by name. Tests
// compare them with what api/endpoint_json.cc writes. Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

namespace tessera::gateway::openapi {

struct Component {
  std::string_view name;
  std::string_view schema;  // JSON.
};
std::span<const Component> Components();

struct Parameter {
  std::string_view key;   // As operations.h names it.
  std::string_view name;  // As the query does.
  std::string_view schema;
  std::string_view meaning;
};
std::span<const Parameter> Parameters();

}  // namespace tessera::gateway::openapi
