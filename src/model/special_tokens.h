// SPDX-License-Identifier: Apache-2.0
//
// Which tokens begin and end a sequence. Repositories say it in up to three files that often
// disagree (the instruct Llamas end a turn with another token than a text), so the end is a list:
// everything that any of them names.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "formats/metadata.h"
#include "model/open.h"

namespace tessera::model {

/// The JSON files of a repository; null where it has none.
struct RepositoryJson {
  const json::Object* config = nullptr;
  const json::Object* generation = nullptr;        // generation_config.json
  const json::Object* tokenizer_config = nullptr;  // tokenizer_config.json
  /// tokenizer.json's text; parsed only if the others do not suffice.
  const std::string* tokenizer_json = nullptr;
  /// A token's id by its text, from who has loaded the tokenizer: asked instead of its text.
  std::function<std::optional<int64_t>(std::string_view)> find_token = {};
};

/// Ids outside [0, vocab_size) are kInvalidArgument.
Result<SpecialTokens> ReadHfSpecialTokens(const RepositoryJson& files, int64_t vocab_size);

/// From tokenizer.ggml.{bos,eos,eot,eom,padding}_token_id, and control tokens of the vocabulary
/// that are spelled as a known end of turn, since converters often leave those ids out.
Result<SpecialTokens> ReadGgufSpecialTokens(const formats::Metadata& metadata,
                                            const GgufTokenizer& tokenizer);

}  // namespace tessera::model
