// SPDX-License-Identifier: Apache-2.0
//
// Pieces of OpenAPI 3.1 documents, for the layers that describe their routes. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace tessera::net::openapi {

/// JSON of our own (CHECK).
json::Value Parsed(std::string_view text);

/// {"$ref": "#/components/schemas/NAME"}
json::Object Reference(std::string_view component);

/// A whole number as one, so that 20 is not written 20.0.
json::Value Bound(double value);

/// {TYPE: {"schema": SCHEMA}}
json::Object Content(std::string_view type, json::Object schema);

/// The path item of `path`, made when it is not there yet.
json::Object& PathItem(std::string_view path, json::Object* paths);

/// "POST" -> "post".
std::string MethodKey(std::string_view method);

}  // namespace tessera::net::openapi
