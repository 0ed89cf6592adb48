// SPDX-License-Identifier: Apache-2.0
//
// GrammarCache: the grammars of one model by their text, so that a schema that comes with every
// request is compiled once. It builds the vocabulary at the first request that needs one and keeps
// the grammars used last, bounded by number and by bytes of text.
//
// Threads: any. Two requests with the same new grammar may both compile it; none waits for
// another's compilation, except for the vocabulary.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/status.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace tessera::text {

class GrammarCache {
 public:
  struct Limits {
    size_t grammars = 64;
    size_t source_bytes = 16u << 20;
  };
  static std::span<const double> CompileBounds();  // Seconds, 100 us to 10 s.
  struct Counters {
    int64_t hits = 0;
    int64_t compiled = 0;
    int64_t refused = 0;  // What did not compile; not kept.
    size_t grammars = 0;
    size_t source_bytes = 0;
    Histogram compile_seconds{CompileBounds()};  // Of those compiled, and refused.
  };

  GrammarCache(std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> eos);
  GrammarCache(std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> eos, Limits limits);

  /// Errors are those of Grammar::Compile and ConstraintVocabulary::Make.
  Result<std::shared_ptr<const Grammar>> Get(GrammarKind kind, std::string_view source);
  /// Builds the vocabulary now, so that no request waits for it.
  Status Warm();
  Counters counters() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Grammar> grammar;
  };
  Result<std::shared_ptr<const ConstraintVocabulary>> Vocabulary();
  std::shared_ptr<const Grammar> Find(const std::string& key);
  void CountCompile(Duration duration);
  void Store(std::string key, std::shared_ptr<const Grammar> grammar);

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::vector<TokenId> eos_;
  const Limits limits_;

  std::mutex vocabulary_mutex_;  // Held while the vocabulary is made.
  std::shared_ptr<const ConstraintVocabulary> vocabulary_;

  mutable std::mutex mutex_;  // Guards all below.
  std::list<Entry> entries_;  // Used last first.
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  Counters counters_;
};

}  // namespace tessera::text
