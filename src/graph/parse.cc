// SPDX-License-Identifier: Apache-2.0
#include "graph/parse.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/lexer.h"
#include "graph/limits.h"
#include "graph/verify.h"

namespace tessera::graph {
namespace {

/// One `{key=value, ...}`: every op's keys are read into one record, then the op takes its own and
/// a leftover is an error.
class AttributeReader {
 public:
  explicit AttributeReader(Lexer& lexer) : lexer_(lexer) {}

  Status Read() {
    if (!lexer_.IsPunctuation('{')) return {};
    TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation('{'));
    while (true) {
      TESSERA_ASSIGN_OR_RETURN(const std::string_view key, lexer_.TakeAtom("an attribute"));
      TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation('='));
      TESSERA_ASSIGN_OR_RETURN(const std::string_view value, lexer_.TakeAtom("a value"));
      items_.emplace_back(key, value);
      if (!lexer_.IsPunctuation(',')) break;
      TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation(','));
    }
    return lexer_.TakePunctuation('}');
  }

  // Each takes one key. The first failure is kept for Finish().
  int64_t Int(std::string_view key) { return Take(key, &Lexer::TakeInt).value_or(0); }
  double Double(std::string_view key) { return Take(key, &Lexer::TakeDouble).value_or(0); }
  std::optional<int64_t> OptionalInt(std::string_view key) {
    return Has(key) ? Take(key, &Lexer::TakeInt) : std::nullopt;
  }
  std::optional<double> OptionalDouble(std::string_view key) {
    return Has(key) ? Take(key, &Lexer::TakeDouble) : std::nullopt;
  }

  Status Finish() {
    if (error_.ok() && !items_.empty()) {
      error_ = lexer_.Error(fmt::format("unknown or repeated attribute '{}'", items_[0].first));
    }
    return error_;
  }

 private:
  using Item = std::pair<std::string_view, std::string_view>;

  std::vector<Item>::iterator FindItem(std::string_view key) {
    return std::find_if(items_.begin(), items_.end(),
                        [&](const Item& item) { return item.first == key; });
  }
  bool Has(std::string_view key) { return FindItem(key) != items_.end(); }

  template <class Number>
  std::optional<Number> Take(std::string_view key,
                             Result<Number> (Lexer::*read)(std::string_view)) {
    const auto item = FindItem(key);
    if (item == items_.end()) {
      Keep(lexer_.Error(fmt::format("attribute '{}' is missing", key)));
      return std::nullopt;
    }
    Lexer value(item->second);
    items_.erase(item);
    if (Status status = value.Start(); !status.ok()) return Keep(std::move(status)), std::nullopt;
    Result<Number> number = (value.*read)(key);
    if (!number.has_value()) {
      Keep(lexer_.Error(number.error().message()));
      return std::nullopt;
    }
    return *number;
  }

  void Keep(Status status) {
    if (error_.ok()) error_ = std::move(status);
  }

  Lexer& lexer_;
  std::vector<Item> items_;
  Status error_;
};

Attributes TakeAttributes(Op op, AttributeReader& reader) {
  switch (op) {
    case Op::kRmsNorm:
      return RmsNormAttrs{.eps = reader.Double("eps")};
    case Op::kSplitHeads:
      return SplitHeadsAttrs{.heads = reader.Int("heads")};
    case Op::kRope: {
      const int64_t table = reader.Int("table");
      // An index out of range stays out of range; the verifier names it.
      const bool fits = table >= 0 && table < static_cast<int64_t>(kMaxRopeTables);
      return RopeAttrs{.table = fits ? static_cast<uint32_t>(table) : UINT32_MAX};
    }
    case Op::kAttention:
      return AttentionAttrs{.layer = reader.Int("layer"),
                            .heads = reader.Int("heads"),
                            .kv_heads = reader.Int("kv_heads"),
                            .head_dim = reader.Int("head_dim"),
                            .scale = reader.Double("scale"),
                            .window = reader.OptionalInt("window"),
                            .softcap = reader.OptionalDouble("softcap")};
    case Op::kScale:
      return ScaleAttrs{.factor = reader.Double("factor")};
    case Op::kSoftcap:
      return SoftcapAttrs{.cap = reader.Double("cap")};
    default:
      return std::monostate{};
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Result<Graph> Run() {
    TESSERA_RETURN_IF_ERROR(lexer_.Start());
    TESSERA_RETURN_IF_ERROR(lexer_.TakeWord("graph"));
    TESSERA_ASSIGN_OR_RETURN(graph_.name, lexer_.TakeString("the graph's name"));
    while (lexer_.IsAtom("rope_table")) TESSERA_RETURN_IF_ERROR(ParseTable());
    while (!lexer_.at_end()) TESSERA_RETURN_IF_ERROR(ParseNode());
    TESSERA_RETURN_IF_ERROR(Verify(graph_));
    return std::move(graph_);
  }

 private:
  Status ParseTable() {
    if (graph_.rope_tables.size() == kMaxRopeTables) {
      return ResourceExhausted(fmt::format("more than {} rope tables", kMaxRopeTables));
    }
    TESSERA_RETURN_IF_ERROR(lexer_.TakeWord("rope_table"));
    TESSERA_RETURN_IF_ERROR(TakeNumber(graph_.rope_tables.size()));
    RopeTable table;
    TESSERA_RETURN_IF_ERROR(TakeKey("rotary_dim"));
    TESSERA_ASSIGN_OR_RETURN(table.rotary_dim, lexer_.TakeInt("rotary_dim"));
    TESSERA_RETURN_IF_ERROR(TakeKey("style"));
    if (!lexer_.IsAtom("half") && !lexer_.IsAtom("interleaved")) {
      return lexer_.Error("expected style half or interleaved");
    }
    table.style = lexer_.IsAtom("half") ? RopeStyle::kHalf : RopeStyle::kInterleaved;
    TESSERA_RETURN_IF_ERROR(StatusOf(lexer_.TakeAtom("style")));
    TESSERA_RETURN_IF_ERROR(TakeKey("attention_factor"));
    TESSERA_ASSIGN_OR_RETURN(table.attention_factor, lexer_.TakeDouble("attention_factor"));
    TESSERA_RETURN_IF_ERROR(TakeKey("inverse_frequency"));
    TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation('['));
    while (true) {
      TESSERA_ASSIGN_OR_RETURN(const double frequency, lexer_.TakeDouble("a frequency"));
      table.inverse_frequency.push_back(frequency);
      if (!lexer_.IsPunctuation(',')) break;
      TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation(','));
    }
    TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation(']'));
    graph_.rope_tables.push_back(std::move(table));
    return {};
  }

  Status ParseNode() {
    if (graph_.nodes.size() == kMaxNodes) {
      return ResourceExhausted(fmt::format("more than {} nodes", kMaxNodes));
    }
    TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation('%'));
    TESSERA_RETURN_IF_ERROR(TakeNumber(graph_.nodes.size()));
    TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation('='));
    TESSERA_ASSIGN_OR_RETURN(const std::string_view name, lexer_.TakeAtom("an op"));
    const std::optional<Op> op = FindOp(name);
    if (!op) return lexer_.Error(fmt::format("unknown op '{}'", name));
    Node node{.op = *op, .inputs = {}, .attrs = {}, .type = {}, .label = {}};
    ParameterAttrs parameter;
    if (*op == Op::kParameter) {
      TESSERA_ASSIGN_OR_RETURN(parameter.name, lexer_.TakeString("the parameter's name"));
    }
    TESSERA_RETURN_IF_ERROR(ParseInputs(node));
    AttributeReader reader(lexer_);
    TESSERA_RETURN_IF_ERROR(reader.Read());
    node.attrs = TakeAttributes(*op, reader);
    TESSERA_RETURN_IF_ERROR(reader.Finish());
    if (*op == Op::kParameter) node.attrs = std::move(parameter);
    TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation(':'));
    TESSERA_RETURN_IF_ERROR(ParseType(node.type));
    if (lexer_.IsPunctuation('@')) {
      TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation('@'));
      TESSERA_ASSIGN_OR_RETURN(node.label, lexer_.TakeAtom("a label"));
    }
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  Status ParseInputs(Node& node) {
    if (!lexer_.IsPunctuation('(')) return {};
    TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation('('));
    while (true) {
      TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation('%'));
      TESSERA_ASSIGN_OR_RETURN(const int64_t index, lexer_.TakeInt("a node's number"));
      if (index < 0 || index >= static_cast<int64_t>(graph_.nodes.size())) {
        return lexer_.Error(fmt::format("%{} is not an earlier node", index));
      }
      node.inputs.push_back(ValueId{static_cast<uint32_t>(index)});
      if (!lexer_.IsPunctuation(',')) break;
      TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation(','));
    }
    return lexer_.TakePunctuation(')');
  }

  Status ParseType(ValueType& type) {
    TESSERA_ASSIGN_OR_RETURN(const std::string_view element, lexer_.TakeAtom("f32 or i32"));
    if (element != "f32" && element != "i32") return lexer_.Error("expected type f32 or i32");
    type.element = element == "f32" ? Element::kF32 : Element::kI32;
    TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation('['));
    std::vector<int64_t> dims;
    type.per_token = lexer_.IsAtom("T");
    if (type.per_token) TESSERA_RETURN_IF_ERROR(lexer_.TakeWord("T"));
    // A parameter without dimensions is "f32[]", so both lists may be empty.
    while (!lexer_.IsPunctuation(']')) {
      if (type.per_token || !dims.empty()) TESSERA_RETURN_IF_ERROR(lexer_.TakePunctuation(','));
      TESSERA_ASSIGN_OR_RETURN(const int64_t dim, lexer_.TakeInt("a dimension"));
      dims.push_back(dim);
    }
    type.dims = tensor::Shape(std::move(dims));
    return lexer_.TakePunctuation(']');
  }

  Status TakeKey(std::string_view key) {
    TESSERA_RETURN_IF_ERROR(lexer_.TakeWord(key));
    return lexer_.TakePunctuation('=');
  }

  /// The number of a node or table, which must be the next one.
  Status TakeNumber(size_t expected) {
    TESSERA_ASSIGN_OR_RETURN(const int64_t number, lexer_.TakeInt("a number"));
    if (number == static_cast<int64_t>(expected)) return {};
    return lexer_.Error(fmt::format("number {}, expected {}: they count up", number, expected));
  }

  Lexer lexer_;
  Graph graph_;
};

}  // namespace

Result<Graph> ParseGraph(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return Fail(ResourceExhausted(
        fmt::format("graph text of {} bytes, at most {}", text.size(), kMaxTextBytes)));
  }
  return Parser(text).Run();
}

}  // namespace tessera::graph
