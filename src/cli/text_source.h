// SPDX-License-Identifier: Apache-2.0
//
// Where a tokenizer or chat template comes from on the command line: a file of its own, a folder
// (repository or bundle) or a GGUF. The bridge between model/ (which reads files) and text/.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/status.h"
#include "model/open.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tessera::cli {

/// The tokenizer of an opened model. `tokenizer` may point into the model's index.
Result<std::shared_ptr<const text::Tokenizer>> MakeTokenizer(
    const std::variant<model::JsonTokenizer, model::GgufTokenizer>& tokenizer);

/// A bundle's table where it has one, else as model::OpenTokenizer finds it.
Result<std::shared_ptr<const text::Tokenizer>> ReadTokenizer(const std::filesystem::path& path);

/// The "default" chat template of a folder or GGUF. kNotFound when it has none.
Result<std::string> ReadChatTemplateText(const std::filesystem::path& path);

}  // namespace tessera::cli
