// SPDX-License-Identifier: Apache-2.0
#include "server/chat/field_names.h"

#include <string>
#include <utility>

namespace tessera::server::chat {
namespace {

/// Only what begins with the field's name is about it: anything else may quote the client.
void Rename(std::span<const FieldName> names, std::string* param, std::string* message) {
  for (const FieldName& name : names) {
    if (*param != name.chat) continue;
    *param = name.client;
    if (message->starts_with(name.chat)) message->replace(0, name.chat.size(), name.client);
    return;
  }
}

}  // namespace

json::Object InChatWords(const json::Object& body, std::span<const FieldName> names) {
  json::Object renamed;
  for (const FieldName& name : names)
    if (const json::Value* value = json::Find(body, name.client)) renamed[name.chat] = *value;
  return renamed;
}

openai::ApiError InClientWords(openai::ApiError error, std::span<const FieldName> names) {
  Rename(names, &error.param, &error.message);
  return error;
}

void PutInClientWords(std::vector<openai::Warning>* warnings, std::span<const FieldName> names) {
  for (openai::Warning& warning : *warnings) Rename(names, &warning.param, &warning.message);
}

}  // namespace tessera::server::chat
