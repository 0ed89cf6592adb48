// SPDX-License-Identifier: Apache-2.0
//
// The texts of a model without its weights: tokenizer, chat templates and the small JSON files
// beside them, each under its limit (limits.h). OpenModel reads them through here, and so do the
// verbs that need nothing else of a model. Stateless; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/open.h"

namespace tessera::model {

/// A JSON object of a repository or bundle, with its text as it is.
struct JsonFile {
  std::string text;   // Empty when the file is absent.
  json::Value value;  // An object, or null when the file is absent.
};

/// kInvalidArgument for something else than an object or a key that stands twice.
Result<JsonFile> ReadJsonFile(const std::filesystem::path& path, uint64_t max_bytes);
/// The same, but an absent file gives a null value.
Result<JsonFile> ReadOptionalJsonFile(const std::filesystem::path& path, uint64_t max_bytes);

struct TokenizerSource {
  std::variant<JsonTokenizer, GgufTokenizer> tokenizer;
  formats::ParameterIndex index;  // Owns what a GgufTokenizer points to; empty for tokenizer.json.
};

/// `path`: a .json file, a folder with tokenizer.json (repository or bundle) or with a GGUF, or a
/// GGUF, also one without weights.
Result<TokenizerSource> OpenTokenizer(const std::filesystem::path& path);

/// Of a folder (repository or bundle) or GGUF, "default" first; empty when it has none.
Result<std::vector<NamedTemplate>> OpenChatTemplates(const std::filesystem::path& path);

/// A Jinja file.
Result<std::string> ReadTemplateFile(const std::filesystem::path& path);

}  // namespace tessera::model
