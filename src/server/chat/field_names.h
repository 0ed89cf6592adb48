// SPDX-License-Identifier: Apache-2.0
//
// Field names: dialects that bring their requests to the words of /v1/chat/completions, whose
// readers are shared, and errors and warnings back to the words of their clients. Pure functions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"

namespace tessera::server::chat {

struct FieldName {
  std::string_view chat;    // "stop"
  std::string_view client;  // "stop_sequences"
};

/// The members of `body` that `names` has, under chat's names.
json::Object InChatWords(const json::Object& body, std::span<const FieldName> names);
/// `error` as its client knows the field.
openai::ApiError InClientWords(openai::ApiError error, std::span<const FieldName> names);
void PutInClientWords(std::vector<openai::Warning>* warnings, std::span<const FieldName> names);

}  // namespace tessera::server::chat
