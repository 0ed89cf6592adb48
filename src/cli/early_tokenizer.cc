// SPDX-License-Identifier: Apache-2.0
#include "cli/early_tokenizer.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "cli/plan_check.h"
#include "cli/text_source.h"

#include "base/thread.h"
#include "bundle/bundle.h"
#include "text/tokenizer_table.h"

namespace tessera::cli {
namespace {

using Source = std::variant<model::JsonTokenizer, model::GgufTokenizer>;

Result<compiler::TokenizerFiles> MakeFiles(const Source& source) {
  compiler::TokenizerFiles files;
  const auto* json = std::get_if<model::JsonTokenizer>(&source);
  auto tokenizer = MakeTokenizer(source);
  if (!tokenizer.has_value()) return Fail(tokenizer.error().WithContext("the model's tokenizer"));
  files.json = json != nullptr ? json->json : (*tokenizer)->ToJson();
  auto table = text::MakeTokenizerTable(**tokenizer);
  if (table.has_value()) {
    files.table = *std::move(table);
  } else {
    files.note =
        fmt::format("the bundle has no {}, so starts read {}: {}", bundle::kTokenizerTableFile,
                    bundle::kTokenizerFile, table.error().message());
  }
  return files;
}

}  // namespace

Result<compiler::TokenizerFiles> MakeTokenizerFiles(const model::ModelSource& source) {
  TESSERA_RETURN_IF_ERROR(CheckHasTokenizer(source));
  std::optional<Result<compiler::TokenizerFiles>> files;
  auto thread = StartThread("the tokenizer", [&] { files = MakeFiles(source.tokenizer); });
  if (!thread.has_value()) return MakeFiles(source.tokenizer);
  thread->join();
  return *std::move(files);
}

EarlyTokenizer::~EarlyTokenizer() {
  if (thread_.joinable()) thread_.join();
}

void EarlyTokenizer::Begin(const model::ModelSource& headers) {
  const auto* json = std::get_if<model::JsonTokenizer>(&headers.tokenizer);
  if (json == nullptr || json->json.empty() || !json_.empty()) return;
  json_ = json->json;
  auto thread = StartThread("the tokenizer",
                            [this] { files_ = MakeFiles(Source(model::JsonTokenizer{json_})); });
  if (thread.has_value())
    thread_ = *std::move(thread);
  else
    json_.clear();
}

Result<compiler::TokenizerFiles> EarlyTokenizer::Take(const model::ModelSource& source) {
  if (thread_.joinable()) thread_.join();
  const auto* json = std::get_if<model::JsonTokenizer>(&source.tokenizer);
  if (!files_ || json == nullptr || json->json != json_) return MakeTokenizerFiles(source);
  auto files = *std::move(files_);
  files_.reset();
  json_.clear();
  return files;
}

}  // namespace tessera::cli
