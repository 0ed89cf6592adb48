// SPDX-License-Identifier: Apache-2.0
//
// Where repositories keep chat templates: a string or a list of named ones in
// tokenizer_config.json, chat_template.json, chat_template.jinja (which wins, as in transformers),
// further ones in additional_chat_templates/NAME.jinja; in a GGUF tokenizer.chat_template and
// tokenizer.chat_template.NAME. Text only: nothing is rendered here.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "formats/metadata.h"
#include "model/open.h"

namespace tessera::model {

/// `tokenizer_config` may be null. "default" first, the others by name.
Result<std::vector<NamedTemplate>> ReadHfChatTemplates(const std::filesystem::path& folder,
                                                       const json::Object* tokenizer_config);
Result<std::vector<NamedTemplate>> ReadGgufChatTemplates(const formats::Metadata& metadata);

}  // namespace tessera::model
