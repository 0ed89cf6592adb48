// SPDX-License-Identifier: Apache-2.0
//
// The schemas of answers, as JSON Schema 2020-12 (OpenAPI 3.1), by name. They are closed: a member
// that is not described fails the test that validates real answers. Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

#include "server/openai/schema.h"

namespace tessera::server::openapi {

struct Component {
  std::string_view name;
  std::string_view schema;  // JSON.
};

/// Common ones, then by dialect: each table is a file.
std::span<const Component> CommonComponents();
std::span<const Component> OpenAiComponents();
std::span<const Component> MessagesComponents();
std::span<const Component> ResponsesComponents();
std::span<const Component> AdminComponents();

/// A schema for a field of a request whose type alone says too little.
struct FieldDetail {
  std::string_view name;
  std::string_view schema;  // JSON.
  /// The only table that it is for; null: every one that has such a field.
  std::span<const openai::Field> (*fields)() = nullptr;
};
std::span<const FieldDetail> FieldDetails();

}  // namespace tessera::server::openapi
