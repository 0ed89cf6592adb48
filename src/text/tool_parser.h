// SPDX-License-Identifier: Apache-2.0
//
// ToolParser: text of a model -> text for the user and calls of functions, as it comes. It works
// byte by byte, so that the result is the same however the text is cut; a stream and a whole answer
// use it alike. No text of a model makes it fail: what begins like a call and turns out to be none
// (broken JSON, a function that does not exist, an end before the end) stays text, and problem()
// says why.
//
// White space between text and a call, and between calls, belongs to neither. One owner at a time.
//
//   ToolParser parser(syntax, tools, {});
//   parser.Push("Let me see. <tool_call>", &events); ... parser.Finish(&events);
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/call_reader.h"
#include "text/literal_matcher.h"
#include "text/tool_syntax.h"

namespace tessera::text {

struct ToolEvent {
  enum class Kind : uint8_t {
    kText,       // For the user.
    kCall,       // Call `call` begins; `text` is the function's name.
    kArguments,  // Its arguments go on: `text` is JSON, to be joined.
  };
  Kind kind = Kind::kText;
  size_t call = 0;
  std::string text;
  friend bool operator==(const ToolEvent&, const ToolEvent&) = default;
};

class ToolParser {
 public:
  struct Options {
    /// Give a call out as it is written. Without, as a whole once it is complete: then nothing
    /// malformed is ever given out. For answers whose form is enforced.
    bool gives_partial_calls = false;
    /// Text behind so many calls is dropped: is_full().
    size_t calls_max = std::numeric_limits<size_t>::max();
  };

  ToolParser(std::shared_ptr<const ToolSyntax> syntax,
             std::shared_ptr<const std::vector<ToolSpec>> tools, Options options);

  /// Appends what became certain. Text ends within a character only where `text` does.
  void Push(std::string_view text, std::vector<ToolEvent>* events);
  /// The rest.
  void Finish(std::vector<ToolEvent>* events);

  /// Calls given out, the one that is being written included.
  size_t calls() const { return calls_; }
  /// As many calls are complete as there may be: the answer is over.
  bool is_full() const { return state_ == State::kFull; }
  /// A call was given out in part and never completed.
  bool has_broken_call() const { return has_broken_call_; }
  /// Why something that looked like a call is none (the first time); empty if there is nothing.
  const std::string& problem() const { return problem_; }

 private:
  enum class State : uint8_t {
    kText,
    kOpening,  // Behind the marker, before the call.
    kCall,
    kClosing,  // Behind the call, before its end mark.
    kNext,     // Between calls of a section.
    kFull,
  };

  void Step(char c);
  void InText(char c);
  void InCall(char c);
  void InLiteral(char c);
  void OnLiteral(size_t matched);
  bool Enter(State state);
  void BeginCall();
  void EndCall(bool is_closed);
  bool CheckName();
  void Commit();
  void Fail(std::string_view why, std::string_view again);
  void Problem(std::string_view why);
  void FlushText();
  void AddText(std::string_view text);
  void Emit(ToolEvent::Kind kind, std::string_view text);

  const std::shared_ptr<const ToolSyntax> syntax_;
  const std::shared_ptr<const std::vector<ToolSpec>> tools_;
  const Options options_;
  // Of the syntax, worked out once.
  const std::string marker_;
  std::string opening_;  // What follows the marker.
  std::string next_;     // What stands before any other call of a section.
  bool has_section_ = false;

  State state_ = State::kText;
  std::string queue_;     // Bytes to take, first of all.
  std::string held_;      // kText: what may become the marker.
  std::string space_;     // White space behind the text: given out with what follows, if text does.
  std::string raw_;       // What is read of a call and may turn out to be text.
  bool is_blank_ = true;  // No text since the beginning or the last call.
  LiteralMatcher matcher_;
  std::unique_ptr<CallReader> reader_;
  bool is_committed_ = false;  // The present call has been given out in part.
  bool has_broken_call_ = false;
  size_t calls_ = 0;
  std::string problem_;
  std::vector<ToolEvent>* events_ = nullptr;  // During Push and Finish.
};

}  // namespace tessera::text
