// SPDX-License-Identifier: Apache-2.0
//
// Operations: the API as data, one row a route: what goes in, by the tables that validate it, and
// what comes out, by name of a schema in components.h. A test compares the rows with the router.
// Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

#include "server/openai/schema.h"

namespace tessera::server::openapi {

struct Operation {
  std::string_view method;
  std::string_view pattern;  // As net/router.h writes it.
  std::string_view summary;
  bool needs_key = true;
  /// The table of the body's fields and where in it they stand; null: no body.
  std::span<const openai::Field> (*fields)() = nullptr;
  unsigned api = 0;
  std::string_view required{};  // Fields that must be there, separated by blanks.
  std::string_view answer{};    // Schema of the body; empty: none; "text": text/plain.
  std::string_view event{};     // Schema of an event's data, where the answer may be a stream.
  std::string_view error{};     // Schema of what an error is.
};

std::span<const Operation> Operations();

}  // namespace tessera::server::openapi
