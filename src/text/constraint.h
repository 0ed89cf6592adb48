// SPDX-License-Identifier: Apache-2.0
//
// Constraint: which tokens may come next so that the output keeps to a grammar (grammar.h says what
// grammars there are). It is one sequence's state, made by Grammar::Start; llguidance in textkit/.
// ConstraintVocabulary is the model's part, made once (a second or so for 100,000 tokens).
//
//   auto constraint = grammar->Start();
//   constraint->ComputeMask(mask); sample; constraint->Commit(id); ... until is_finished().
//
// Threads: a vocabulary is immutable and thread-safe. A constraint belongs to one thread at a time
// and may move between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

struct tk_constraint;
struct tk_vocabulary;

namespace tessera::text {

/// One token as a grammar sees it.
struct ConstraintToken {
  std::string bytes;     // What it contributes to text; empty = never allowed. Special: its name.
  bool special = false;  // Allowed only where it ends the output or a grammar names it.
};

class ConstraintVocabulary {
 public:
  /// `eos` are the tokens that end an output: at least one. kInvalidArgument otherwise.
  static Result<std::shared_ptr<const ConstraintVocabulary>> Make(
      std::span<const ConstraintToken> tokens, std::span<const TokenId> eos);
  static Result<std::shared_ptr<const ConstraintVocabulary>> Make(const Tokenizer& tokenizer,
                                                                  std::span<const TokenId> eos);
  ~ConstraintVocabulary();
  ConstraintVocabulary(const ConstraintVocabulary&) = delete;
  ConstraintVocabulary& operator=(const ConstraintVocabulary&) = delete;

  int64_t size() const { return size_; }
  /// Words of a mask.
  size_t mask_words() const { return static_cast<size_t>((size_ + 31) / 32); }
  /// The tokens that end an output.
  std::span<const TokenId> eos() const { return eos_; }

 private:
  friend class Grammar;
  ConstraintVocabulary(tk_vocabulary* handle, int64_t size, std::span<const TokenId> eos)
      : handle_(handle), size_(size), eos_(eos.begin(), eos.end()) {}
  tk_vocabulary* handle_;  // Owned.
  int64_t size_;
  std::vector<TokenId> eos_;
};

class Constraint {
 public:
  ~Constraint();
  Constraint(const Constraint&) = delete;
  Constraint& operator=(const Constraint&) = delete;

  /// Sets bit id % 32 of mask[id / 32] for each token that may come next, clears the others. `mask`
  /// has at least mask_words() words. All zero once finished. After kResourceExhausted (the grammar
  /// costs too much here) the constraint is unusable.
  Status ComputeMask(std::span<uint32_t> mask);
  /// Appends a token. kInvalidArgument when the mask does not allow it; nothing changed then.
  Status Commit(TokenId id);
  /// Whether the text so far is complete, so that an end token may come.
  Result<bool> IsAccepting();
  /// Nothing but an end token may come.
  bool must_end() const;
  /// An end token has come.
  bool is_finished() const;

 private:
  friend class Grammar;
  explicit Constraint(tk_constraint* handle) : handle_(handle) {}
  tk_constraint* handle_;  // Owned.
};

}  // namespace tessera::text
