// SPDX-License-Identifier: Apache-2.0
//
// EarlyTokenizer: makes the tokenizer files of a bundle on a thread of its own while the weights
// are being downloaded, so that compiling need not begin with it.
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "base/status.h"
#include "compiler/compile.h"
#include "model/open.h"

namespace tessera::cli {

/// The slow half of a tokenizer, once for each bundle. A table that cannot be made, or that would
/// not give the same, is left out. kNotFound when the model has none. On a thread of its own,
/// because a tokenizer leaves a cache of words with the thread that it served: megabytes, for its
/// life.
Result<compiler::TokenizerFiles> MakeTokenizerFiles(const model::ModelSource& source);

/// Belongs to one thread.
class EarlyTokenizer {
 public:
  EarlyTokenizer() = default;
  ~EarlyTokenizer();  // Waits.
  EarlyTokenizer(const EarlyTokenizer&) = delete;
  EarlyTokenizer& operator=(const EarlyTokenizer&) = delete;

  /// Begins with the tokenizer.json of headers (hub::Hub::PullHeaders): small files are verified
  /// before they are visible. Does nothing for a vocabulary in a GGUF's header, which is not, nor
  /// where there is no thread to be had.
  void Begin(const model::ModelSource& headers);
  /// What was begun when `source` has the very same text, else made now.
  Result<compiler::TokenizerFiles> Take(const model::ModelSource& source);

 private:
  std::thread thread_;
  std::string json_;                                       // Of what was begun; empty: nothing.
  std::optional<Result<compiler::TokenizerFiles>> files_;  // The thread's, until it is joined.
};

}  // namespace tessera::cli
