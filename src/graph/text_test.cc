// SPDX-License-Identifier: Apache-2.0
//
// The text form: printing, parsing, and what the parser refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/limits.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "graph/tiny_graph_for_test.h"
#include "support/golden.h"

namespace tessera::graph {
namespace {

using ::testing::HasSubstr;

TEST(Text, IsAsStored) {
  testing::ExpectGolden(PrintGraph(TinyGraph()), "graph/tiny.txt");
}

TEST(Text, RoundTripsExactly) {
  Graph graph = TinyGraph();
  for (Node& node : graph.nodes) {
    // Names of parameters come from files and may hold anything.
    auto* parameter = std::get_if<ParameterAttrs>(&node.attrs);
    if (parameter != nullptr && parameter->name == "gate") parameter->name = "\"\\\n\xff#é{%";
    if (parameter != nullptr && parameter->name == "up") parameter->name = std::string("\0x", 2);
  }
  graph.rope_tables[0].inverse_frequency = {0.1 + 0.2, 5e-324};
  graph.rope_tables[0].attention_factor = 1.7976931348623157e308;
  const std::string text = PrintGraph(graph);
  const Result<Graph> parsed = ParseGraph(text);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().ToString();
  EXPECT_EQ(*parsed, graph);
  EXPECT_EQ(PrintGraph(*parsed), text);
}

TEST(Text, AllowsCommentsAndFreeSpacing) {
  const Result<Graph> graph = ParseGraph(
      "# A model.\r\ngraph\"x\"%0=tokens:i32[T]%1=parameter\"e\":f32[4,2] # table\n"
      "%2 = embed ( %1 , %0 ) : f32 [ T , 2 ] @ e\n\n%3=output(%2):f32[T,2]#end");
  ASSERT_TRUE(graph.has_value()) << graph.error().ToString();
  EXPECT_EQ(graph->nodes[2].label, "e");
}

/// The tiny graph's text with the first `from` replaced.
std::string Edit(std::string_view from, std::string_view to) {
  std::string text = PrintGraph(TinyGraph());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Text, RefusesWhatIsNotAGraphAndSaysWhere) {
  struct Case {
    std::string text;
    const char* expect;
  };
  const Case cases[] = {
      {"", "line 1: expected 'graph', got the end of the text"},
      {"graph tiny", "line 1: expected the graph's name, got 'tiny'"},
      {"graph \"tiny", "line 1: a string without end"},
      {"graph \"t\ny\"", "line 1: a string holds printable ASCII"},
      {"graph \"\\q\"", "expected \\\", \\\\ or \\xNN"},
      {"graph \"\\xg0\"", "expected two hexadecimal digits"},
      {"graph \"\\x4", "expected \\\", \\\\ or \\xNN"},
      {"graph \"x\"", "the graph has no nodes"},
      {"graph \"x\"\n%1 = tokens : i32[T]", "line 2: number 1, expected 0"},
      {"graph \"x\"\n%0 = tokens", "line 2: expected ':', got the end"},
      {"graph \"x\"\n%0 = dance : i32[T]", "unknown op 'dance'"},
      {"graph \"x\"\n%0 = tokens : f64[T]", "expected type f32 or i32"},
      {"graph \"x\"\n%0 = tokens : f32[T 4]", "expected ',', got '4'"},
      {"graph \"x\"\n%0 = tokens : f32[T,4,]", "a dimension (an integer), got ']'"},
      {"graph \"x\"\n%0 = tokens : f32[T,99999999999999999999]", "a dimension (an integer)"},
      {"graph \"x\"\n%0 = tokens(%0) : i32[T]", "%0 is not an earlier node"},
      {"graph \"x\"\n%0 = tokens {a=1} : i32[T]", "unknown or repeated attribute 'a'"},
      {"graph \"x\"\nrope_table 1", "line 2: number 1, expected 0"},
      {Edit("style=half", "style=quarter"), "expected style half or interleaved"},
      {Edit("attention_factor=1 ", "attention_factor=one "), "attention_factor (a number)"},
      {Edit("[1,0.01]", "[1]"), "rope_table 0: 1 inverse frequencies, expected 2"},
      {Edit("[1,0.01]", "[1,nan]"), "rope_table 0: inverse frequency nan"},
      {Edit("{eps=1e-05}", ""), "attribute 'eps' is missing"},
      {Edit("{eps=1e-05}", "{eps=1e-05, eps=1}"), "unknown or repeated attribute 'eps'"},
      {Edit("{eps=1e-05}", "{eps=small}"), "expected eps (a number), got 'small'"},
      {Edit("{eps=1e-05}", "{eps=-0.5}"), "@layer0.attn_norm: eps is -0.5"},
      {Edit("heads=2}", "heads=1.5}"), "expected heads (an integer), got '1.5'"},
      {Edit("table=0", "table=-1"), "rope table 4294967295, but the graph has 2"},
      {Edit("window=3", "window=-3"), "window is -3"},
      {Edit("f32[T,8] @embedding", "f32[T,9] @embedding"), "type is f32[T,9], expected f32[T,8]"},
      {Edit("f32[T,8] @embedding", "f32[T,8] @"), "label"},
  };
  for (const Case& c : cases) {
    const Result<Graph> graph = ParseGraph(c.text);
    ASSERT_FALSE(graph.has_value()) << c.text;
    EXPECT_EQ(graph.error().code(), Code::kInvalidArgument) << c.expect;
    EXPECT_THAT(graph.error().ToString(), HasSubstr(c.expect));
  }
}

TEST(Text, HoldsItsLimits) {
  std::string text = PrintGraph(TinyGraph());
  text.resize(kMaxTextBytes, ' ');
  EXPECT_TRUE(ParseGraph(text).has_value());
  text += ' ';
  EXPECT_EQ(StatusOf(ParseGraph(text)).code(), Code::kResourceExhausted);

  std::string tables = "graph \"x\"\n";
  for (uint64_t i = 0; i <= kMaxRopeTables; ++i) {
    tables += "rope_table " + std::to_string(i) +
              " rotary_dim=2 style=half attention_factor=1 inverse_frequency=[1]\n";
  }
  EXPECT_EQ(StatusOf(ParseGraph(tables)).code(), Code::kResourceExhausted);
}

TEST(Text, SurvivesEveryCutAndByteChange) {
  const std::string text = PrintGraph(TinyGraph());
  for (size_t n = 0; n < text.size(); ++n) {
    const Result<Graph> cut = ParseGraph(std::string_view(text).substr(0, n));
    // The last line's end is not part of the graph.
    EXPECT_EQ(cut.has_value(), n + 1 == text.size()) << n;
    std::string changed = text;
    changed[n] = static_cast<char>(changed[n] ^ 0x15);
    const Result<Graph> graph = ParseGraph(changed);
    if (!graph.has_value()) continue;
    EXPECT_EQ(ParseGraph(PrintGraph(*graph)).value(), *graph) << n;
  }
}

}  // namespace
}  // namespace tessera::graph
