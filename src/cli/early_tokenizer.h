// SPDX-License-Identifier: Apache-2.0
//
// EarlyTokenizer: makes the tokenizer files of a bundle on a thread of its own while the weights
// are being downloaded, so that compiling need not begin with it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "base/status.h"
#include "compiler/compile.h"
#include "model/open.h"
#include "text/tokenizer.h"

namespace tessera::cli {

/// The slow half of a tokenizer, once for each bundle. A table that cannot be made, or that would
/// not give the same, is left out. All of it happens on a thread of its own, because a tokenizer
/// leaves a cache of words with the thread that it served: megabytes, for its life. Belongs to one
/// thread.
class EarlyTokenizer {
 public:
  enum class Table : uint8_t {
    kAtOnce,  // With the rest.
    kLater,   // When BeginTable() is called; the tokenizer serves until then.
  };
  explicit EarlyTokenizer(Table table) : table_(table) {}
  ~EarlyTokenizer();  // Waits.
  EarlyTokenizer(const EarlyTokenizer&) = delete;
  EarlyTokenizer& operator=(const EarlyTokenizer&) = delete;

  /// Begins with the tokenizer.json of headers (hub::Hub::PullHeaders): small files are verified
  /// before they are visible. Does nothing for a vocabulary in a GGUF's header, which is not, nor
  /// where there is no thread to be had.
  void Begin(const model::ModelSource& headers);
  /// What was begun when `source` has the very same text, else made now. kNotFound when the model
  /// has none. With kLater `make_table` of the result is valid as long as this object, once.
  Result<compiler::TokenizerFiles> Take(const model::ModelSource& source);

  /// With kLater, after Take() gave files: what they are made of.
  const std::shared_ptr<const text::Tokenizer>& tokenizer() const { return tokenizer_; }
  /// With kLater, after Take(): `make_table` waits for what begins here.
  void BeginTable();

 private:
  struct Made {
    compiler::TokenizerFiles files;
    std::shared_ptr<const text::Tokenizer> tokenizer;  // With kLater.
  };
  using Source = std::variant<model::JsonTokenizer, model::GgufTokenizer>;
  static Result<Made> Make(const Source& source, Table table);
  Result<Made> MakeNow(const model::ModelSource& source) const;

  const Table table_;
  std::string json_;  // Of what was begun; empty: nothing.
  std::optional<Result<Made>> made_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<compiler::TokenizerFiles> table_files_;  // `table` and `note` alone.
  std::thread thread_;  // Writes `made_` or `table_files_` until it is joined.
};

}  // namespace tessera::cli
