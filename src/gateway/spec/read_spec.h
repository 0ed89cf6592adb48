// SPDX-License-Identifier: Apache-2.0
//
// Bodies of create and update requests -> EndpointSpec, or what is wrong with them. Pure functions.
//
// Deviations from llm-engine (docs/design/0013): labels and metadata may be left out; resources may
// be given in part; null in an update means keep, and `"clear": ["quantize"]` clears; a field that
// nobody knows is a warning.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "gateway/spec/endpoint_spec.h"
#include "gateway/spec/field_error.h"

namespace tessera::gateway {

template <class T>
using ApiResult = std::expected<T, ApiError>;

struct AskedSpec {
  EndpointSpec spec;
  /// What is done differently than asked, one sentence each.
  std::vector<std::string> warnings;
};

/// 422 lists every field of the wrong type or range; 400 is about their meaning.
ApiResult<AskedSpec> ReadCreate(const json::Object& body);
/// What `before` becomes. `body` names what changes.
ApiResult<AskedSpec> ReadUpdate(const EndpointSpec& before, const json::Object& body);

/// What WriteSpec wrote. kDataLoss for all else.
Result<EndpointSpec> ReadSpec(const json::Object& stored);

/// Whether the text is 1 to 63 of [a-z0-9-] that neither begins nor ends with '-'.
bool IsEndpointName(std::string_view text);

}  // namespace tessera::gateway
