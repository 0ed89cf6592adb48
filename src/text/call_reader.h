// SPDX-License-Identifier: Apache-2.0
//
// CallReader: reads one call of a function, from behind call_begin, byte by byte, and gives out the
// name and the arguments as JSON text. One object a call. What it gives out is always the beginning
// of a JSON object, whatever the model writes.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/tool_syntax.h"

namespace tessera::text {

/// What the reader of a call knows of a function.
struct ToolSpec {
  std::string name;
  /// Parameters whose schema says string: their bare value "5" is "5" and not 5. Sorted.
  std::set<std::string, std::less<>> text_parameters;
};

/// Whether a schema takes strings alone: a parameter of `text_parameters`.
bool TakesOnlyText(const json::Value& schema);
/// "f_1-x": what a function may be called, and where a bare name ends.
bool IsToolNameByte(char c);
inline constexpr size_t kToolNameBytesMax = 64;

class CallReader {
 public:
  enum class Step : uint8_t {
    kMore,
    kDone,        // Taken: the call is complete up to its call_end.
    kDoneClosed,  // Taken: complete, call_end included.
    kBad,         // Not taken; problem() says why.
  };

  virtual ~CallReader() = default;
  /// Requires that no end came before.
  virtual Step Push(char c) = 0;

  bool has_name() const { return has_name_; }
  /// Requires has_name().
  const std::string& name() const { return name_; }
  /// Arguments that became known since the last call of this.
  std::string TakeArguments() { return std::exchange(arguments_, {}); }
  std::string_view problem() const { return problem_; }

 protected:
  Step Bad(std::string_view problem) {
    problem_ = problem;
    return Step::kBad;
  }
  void SetName(std::string name) {
    name_ = std::move(name);
    has_name_ = true;
  }
  void AddArguments(std::string_view text) { arguments_ += text; }

 private:
  bool has_name_ = false;
  std::string name_;
  std::string arguments_;
  std::string_view problem_;
};

/// `syntax` and `tools` outlive the reader. IsObject(): the reader's first byte is "{".
std::unique_ptr<CallReader> MakeCallReader(const ToolSyntax& syntax,
                                           const std::vector<ToolSpec>& tools);

}  // namespace tessera::text
