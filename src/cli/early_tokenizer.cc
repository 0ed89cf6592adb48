// SPDX-License-Identifier: Apache-2.0
#include "cli/early_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "cli/plan_check.h"
#include "cli/text_source.h"

#include "base/thread.h"
#include "bundle/bundle.h"
#include "text/tokenizer_table.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kThreadName = "the tokenizer";

void AddTable(const text::Tokenizer& tokenizer, compiler::TokenizerFiles* files) {
  auto table = text::MakeTokenizerTable(tokenizer);
  if (table.has_value()) {
    files->table = *std::move(table);
  } else {
    files->note =
        fmt::format("the bundle has no {}, so starts read {}: {}", bundle::kTokenizerTableFile,
                    bundle::kTokenizerFile, table.error().message());
  }
}

}  // namespace

Result<EarlyTokenizer::Made> EarlyTokenizer::Make(const Source& source, Table table) {
  auto tokenizer = MakeTokenizer(source);
  if (!tokenizer.has_value()) return Fail(tokenizer.error().WithContext("the model's tokenizer"));
  Made made;
  const auto* json = std::get_if<model::JsonTokenizer>(&source);
  made.files.json = json != nullptr ? json->json : (*tokenizer)->ToJson();
  if (table == Table::kAtOnce)
    AddTable(**tokenizer, &made.files);
  else
    made.tokenizer = *std::move(tokenizer);
  return made;
}

Result<EarlyTokenizer::Made> EarlyTokenizer::MakeNow(const model::ModelSource& source) const {
  TESSERA_RETURN_IF_ERROR(CheckHasTokenizer(source));
  std::optional<Result<Made>> made;
  auto thread = StartThread(kThreadName, [&] { made = Make(source.tokenizer, table_); });
  if (!thread.has_value()) return Make(source.tokenizer, table_);
  thread->join();
  return *std::move(made);
}

EarlyTokenizer::~EarlyTokenizer() {
  if (thread_.joinable()) thread_.join();
}

void EarlyTokenizer::Begin(const model::ModelSource& headers) {
  const auto* json = std::get_if<model::JsonTokenizer>(&headers.tokenizer);
  if (json == nullptr || json->json.empty() || !json_.empty()) return;
  json_ = json->json;
  auto thread = StartThread(kThreadName,
                            [this] { made_ = Make(Source(model::JsonTokenizer{json_}), table_); });
  if (thread.has_value())
    thread_ = *std::move(thread);
  else
    json_.clear();
}

Result<compiler::TokenizerFiles> EarlyTokenizer::Take(const model::ModelSource& source) {
  if (thread_.joinable()) thread_.join();
  const auto* json = std::get_if<model::JsonTokenizer>(&source.tokenizer);
  const bool is_early = made_ && json != nullptr && json->json == json_;
  Result<Made> made = is_early ? *std::move(made_) : MakeNow(source);
  made_.reset();
  json_.clear();
  if (!made.has_value()) return Fail(made.error());
  if (table_ == Table::kLater) {
    tokenizer_ = std::move(made->tokenizer);
    made->files.make_table = [this](compiler::TokenizerFiles* files) {
      if (!table_files_ && !thread_.joinable()) BeginTable();
      if (thread_.joinable()) thread_.join();
      files->table = std::move(table_files_->table);
      files->note = std::move(table_files_->note);
    };
  }
  return std::move(made->files);
}

void EarlyTokenizer::BeginTable() {
  auto thread = StartThread(kThreadName, [this] {
    compiler::TokenizerFiles files;
    AddTable(*tokenizer_, &files);
    table_files_ = std::move(files);
  });
  if (thread.has_value()) {
    thread_ = *std::move(thread);
    return;
  }
  compiler::TokenizerFiles files;
  AddTable(*tokenizer_, &files);
  table_files_ = std::move(files);
}

}  // namespace tessera::cli
