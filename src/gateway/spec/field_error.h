// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a request, in the two shapes that clients of the llm-engine API know: a list
// of field errors (422, as pydantic writes them) or one text (400, 404, ...). Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tessera::gateway {

/// One entry of a 422's `detail`.
struct FieldError {
  std::string type;              // "missing", "int_type", "greater_than_equal", "enum", ...
  std::vector<std::string> loc;  // {"body", "min_workers"}.
  std::string msg;               // Names what was expected.
  json::Value input{};           // What came.
};

/// An HTTP status and what `detail` holds.
struct ApiError {
  int status = 400;
  std::string text{};                // Of `detail`, if there are no field errors.
  std::vector<FieldError> fields{};  // Else these.
};

/// {"detail": ...}: always an object, since clients of this API crash on anything else.
std::string ErrorBody(const ApiError& error);

}  // namespace tessera::gateway
