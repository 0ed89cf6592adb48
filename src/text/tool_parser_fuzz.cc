// SPDX-License-Identifier: Apache-2.0
//
// Input: a byte that chooses the syntax, one that chooses options, one that chooses where to cut, a
// model's text. However it is cut, the result is the same. Calls that are given out whole are calls
// of a tool with a JSON object; of calls given out in part the arguments begin one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "text/json_scanner.h"
#include "text/tool_parser.h"

namespace tessera::text {
namespace {

struct Outcome {
  std::string text;
  std::vector<std::pair<std::string, std::string>> calls;
  std::string problem;
  bool is_broken = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

const std::shared_ptr<const std::vector<ToolSpec>>& Tools() {
  static const auto tools = std::make_shared<const std::vector<ToolSpec>>(
      std::vector<ToolSpec>{{"f", {}}, {"get", {"city"}}});
  return tools;
}

Outcome Parse(const std::shared_ptr<const ToolSyntax>& syntax, ToolParser::Options options,
              std::string_view text, size_t piece) {
  ToolParser parser(syntax, Tools(), options);
  std::vector<ToolEvent> events;
  for (size_t at = 0; at < text.size(); at += piece) parser.Push(text.substr(at, piece), &events);
  parser.Finish(&events);
  Outcome outcome;
  for (const ToolEvent& event : events) {
    switch (event.kind) {
      case ToolEvent::Kind::kText:
        outcome.text += event.text;
        break;
      case ToolEvent::Kind::kCall:
        outcome.calls.emplace_back(event.text, "");
        break;
      case ToolEvent::Kind::kArguments:
        TESSERA_CHECK(event.call + 1 == outcome.calls.size());
        outcome.calls.back().second += event.text;
        break;
    }
  }
  outcome.problem = parser.problem();
  outcome.is_broken = parser.has_broken_call();
  TESSERA_CHECK(parser.calls() == outcome.calls.size());
  return outcome;
}

/// The last call may be cut when calls are given out in part.
void CheckCall(const std::string& name, const std::string& arguments, bool may_be_cut) {
  TESSERA_CHECK(std::ranges::find(*Tools(), name, &ToolSpec::name) != Tools()->end());
  JsonScanner scanner;
  bool is_done = false;
  for (const char c : arguments) {
    TESSERA_CHECK(!is_done);
    const JsonScanner::Step step = scanner.Push(c);
    TESSERA_CHECK(step == JsonScanner::Step::kMore || step == JsonScanner::Step::kDone);
    is_done = step == JsonScanner::Step::kDone;
  }
  TESSERA_CHECK(arguments.empty() || arguments.front() == '{');
  TESSERA_CHECK(is_done || may_be_cut);
}

void Fuzz(uint8_t choice, uint8_t bits, uint8_t cut, std::string_view text) {
  const auto names = ToolSyntaxNames();
  const auto syntax =
      std::make_shared<const ToolSyntax>(*FindToolSyntax(names[choice % names.size()]));
  const ToolParser::Options options{.gives_partial_calls = (bits & 1) != 0,
                                    .calls_max = (bits & 2) != 0 ? 1u : 1000u};
  const Outcome whole = Parse(syntax, options, text, text.size() + 1);
  for (const size_t piece : {size_t{1}, size_t{1} + cut})
    TESSERA_CHECK(Parse(syntax, options, text, piece) == whole);
  for (const auto& [name, arguments] : whole.calls)
    CheckCall(name, arguments, options.gives_partial_calls);
  TESSERA_CHECK(options.gives_partial_calls || !whole.is_broken);
  TESSERA_CHECK(!whole.calls.empty() || options.gives_partial_calls || whole.text == text);
}

}  // namespace
}  // namespace tessera::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  tessera::text::Fuzz(data[0], data[1], data[2],
                      {reinterpret_cast<const char*>(data) + 3, size - 3});
  return 0;
}
