// SPDX-License-Identifier: Apache-2.0
//
// Operations: the gateway's API as data, one row a route. A test compares the rows with the router:
// a route that is added needs its row here. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tessera::gateway::openapi {

/// What a request brings.
enum class Body : uint8_t {
  kNone,
  kCreate,      // spec/field_table.h
  kUpdate,      // The same, without what may not change.
  kCompletion,  // api/completion_v1.h
  kObject,      // Described in docs/.
  kForm,        // multipart/form-data with a part `file`.
  kOpenAi,      // `model`; all else is the worker's, whose own document describes it.
};

struct Operation {
  std::string_view method;
  std::string_view pattern;  // As net/router.h writes it.
  std::string_view summary;
  Body body = Body::kNone;
  std::string_view query{};  // Names of parameters.h, separated by blanks; '*': required.
  std::string_view
      answer{};  // Component of a 200; empty: any object; "text/html": a page; "bytes".
  std::string_view
      event{};  // Component of an event's data, where the answer is or may be a stream.
  bool needs_user = true;
};

std::span<const Operation> Operations();

}  // namespace tessera::gateway::openapi
