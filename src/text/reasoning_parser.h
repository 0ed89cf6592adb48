// SPDX-License-Identifier: Apache-2.0
//
// ReasoningParser: splits a model's text into what it thinks and what it says:
// "<think>Paris is ...</think>It is warm." Byte by byte, so that the result is the same however the
// text is cut. Thoughts stand at the beginning of an answer only; marks further on are text.
// White space around the thoughts belongs to neither part. One owner at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

struct ReasoningSyntax {
  std::string name;   // "think"
  std::string begin;  // "<think>"
  std::string end;    // "</think>"
  /// The model leaves the begin mark out and always thinks first.
  bool is_implied = false;
  friend bool operator==(const ReasoningSyntax&, const ReasoningSyntax&) = default;
};

/// By the names that --reasoning-parser takes; null when there is none of that name.
const ReasoningSyntax* FindReasoningSyntax(std::string_view name);
std::vector<std::string_view> ReasoningSyntaxNames();
/// The marks that a chat template handles: the first of the table whose end mark it mentions.
std::optional<ReasoningSyntax> ReasoningSyntaxOf(std::string_view template_source);

class ReasoningParser {
 public:
  struct Delta {
    std::string reasoning;
    std::string text;
  };

  struct Options {
    bool is_open = false;  // The prompt ended within the thoughts (StartsOpen).
    /// Thoughts with their marks and white space, so that thoughts and text join to the input.
    bool keeps_marks = false;
  };
  ReasoningParser(ReasoningSyntax syntax, Options options);

  /// Appends what became certain to `delta`. Text ends within a character only where `text` does.
  void Push(std::string_view text, Delta* delta);
  /// The rest.
  void Finish(Delta* delta);

  bool is_reasoning() const { return state_ == State::kReasoning; }

 private:
  enum class State : uint8_t {
    kBegin,      // White space, then perhaps the begin mark.
    kReasoning,  // Up to the end mark.
    kBehind,     // White space between the thoughts and the text.
    kText,
  };
  void Step(char c, Delta* delta);
  void AtBegin(char c, Delta* delta);
  void InReasoning(char c, Delta* delta);
  void AddReasoning(char c, Delta* delta);

  const ReasoningSyntax syntax_;
  const bool keeps_marks_;
  State state_;
  std::string held_;            // What may become a mark.
  std::string space_;           // White space that belongs to what follows, if it goes on.
  bool has_reasoning_ = false;  // White space before the first thought is dropped.
  bool may_begin_ = true;       // A begin mark is expected, or is implied and may be there as well.
};

/// Whether a prompt ends behind the end mark: the thoughts are over before the answer begins.
bool StartsClosed(const ReasoningSyntax& syntax, std::string_view prompt);
/// Whether a prompt ends behind the begin mark, so that the answer begins within thoughts.
bool StartsOpen(const ReasoningSyntax& syntax, std::string_view prompt);

}  // namespace tessera::text
