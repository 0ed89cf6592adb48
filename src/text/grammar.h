// SPDX-License-Identifier: Apache-2.0
//
// Grammar: a form that an output keeps to, compiled once for a model and started for each sequence
// (Start gives a text::Constraint). Four kinds are written by clients; the fifth, text with tags,
// is made for tool calls (tag_grammar.h writes it). GrammarCache (grammar_cache.h) is how servers
// get grammars: it owns the vocabulary and keeps what was compiled.
//
// Threads: immutable; any thread may start and validate. Compiling takes from a millisecond to
// about a second: never on the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/constraint.h"

struct tk_grammar;

namespace tessera::text {

enum class GrammarKind : uint8_t {
  kJsonSchema,  // JSON Schema as JSON text; docs/http.md lists what of it is obeyed.
  kRegex,       // Rust's regular expressions; the whole output must match.
  kLark,        // llguidance's variant of Lark.
  kChoices,     // A JSON array of strings, one of which is the output.
  kTags,        // Text with structured parts: the JSON of tag_grammar.h.
  kLarkParts,  // A JSON array of Lark text and {"json_schema": ...}, joined: lark_text.h writes it.
};

class Grammar {
 public:
  /// kInvalidArgument: the grammar is wrong or nothing satisfies it. kUnimplemented: it uses what
  /// we cannot enforce. Both name the place; a schema's as a JSON pointer ("#/properties/a/not").
  /// kResourceExhausted: it is too large or costs too much.
  static Result<std::shared_ptr<const Grammar>> Compile(
      std::shared_ptr<const ConstraintVocabulary> vocabulary, GrammarKind kind,
      std::string_view source);
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  /// What of the source has no effect (keywords that JSON Schema does not have), a sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Whether a finished output has the form, looked at from outside: JSON by another implementation
  /// of JSON Schema, text by the grammar where it shows all (not: tags, parts, named tokens).
  /// kInvalidArgument says what is wrong. kResourceExhausted: telling would take too long.
  Status Validate(std::string_view output) const;

  /// A constraint that has no token yet. Takes about as long as a mask.
  Result<std::unique_ptr<Constraint>> Start() const;

  const ConstraintVocabulary& vocabulary() const { return *vocabulary_; }

 private:
  Grammar(std::shared_ptr<const ConstraintVocabulary> vocabulary, tk_grammar* handle)
      : vocabulary_(std::move(vocabulary)), handle_(handle) {}
  std::shared_ptr<const ConstraintVocabulary> vocabulary_;
  tk_grammar* handle_;  // Owned.
  std::vector<std::string> notes_;
};

}  // namespace tessera::text
