// SPDX-License-Identifier: Apache-2.0
#include "bundle/parity.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "bundle/json_fields.h"
#include "bundle/limits.h"

namespace tessera::bundle {
namespace {

constexpr std::array<std::pair<std::string_view, Parity::Kind>, 3> kKinds = {
    {{"exact", Parity::Kind::kExact},
     {"measured", Parity::Kind::kMeasured},
     {"absent", Parity::Kind::kAbsent}}};

std::string_view KindName(Parity::Kind kind) {
  for (const auto& [name, known] : kKinds)
    if (known == kind) return name;
  return {};
}

Result<Parity::Kind> ReadKind(const Fields& fields) {
  TESSERA_ASSIGN_OR_RETURN(const std::string text, fields.Text("kind"));
  for (const auto& [name, kind] : kKinds)
    if (name == text) return kind;
  return Fail(InvalidArgument(fmt::format(
      "\"{}.kind\" is \"{:.40}\", expected exact, measured or absent", fields.path(), text)));
}

Result<Parity::Comparison> ReadComparison(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown(
      {"original_nll", "mean_kl", "same_top1", "worst_layer", "worst_layer_error"}));
  Parity::Comparison comparison;
  TESSERA_ASSIGN_OR_RETURN(comparison.original_nll, fields.Number("original_nll"));
  TESSERA_ASSIGN_OR_RETURN(comparison.mean_kl, fields.Number("mean_kl"));
  TESSERA_ASSIGN_OR_RETURN(comparison.same_top1, fields.Number("same_top1"));
  TESSERA_ASSIGN_OR_RETURN(comparison.worst_layer,
                           fields.Int("worst_layer", 0, static_cast<int64_t>(kMaxLayers)));
  TESSERA_ASSIGN_OR_RETURN(comparison.worst_layer_error, fields.Number("worst_layer_error"));
  return comparison;
}

}  // namespace

std::string Summary(const Parity& parity) {
  if (parity.kind == Parity::Kind::kExact) return "parity: weights are exact";
  if (parity.kind == Parity::Kind::kAbsent) return fmt::format("no parity: {}", parity.reason);
  const std::string text =
      fmt::format("parity over {} tokens: mean NLL {:.4f}", parity.tokens, parity.program_nll);
  if (!parity.comparison) return fmt::format("{}; no comparison: {}", text, parity.reason);
  const Parity::Comparison& c = *parity.comparison;
  return fmt::format(
      "{} (original {:.4f}), KL {:.4f}, same top-1 {:.1f}%, worst layer {} (keys and values off by "
      "{:.1f}%)",
      text, c.original_nll, c.mean_kl, 100 * c.same_top1, c.worst_layer, 100 * c.worst_layer_error);
}

json::Object ParityToJson(const Parity& parity) {
  json::Object object = {{"kind", KindName(parity.kind)},
                         {"tokenizer_sha256", parity.tokenizer_sha256},
                         {"chat_template_sha256", parity.chat_template_sha256}};
  if (!parity.reason.empty()) object["reason"] = parity.reason;
  if (parity.kind != Parity::Kind::kMeasured) return object;
  object["tokens"] = parity.tokens;
  object["program_nll"] = parity.program_nll;
  if (!parity.comparison) return object;
  const Parity::Comparison& c = *parity.comparison;
  object["comparison"] = json::Object{{"original_nll", c.original_nll},
                                      {"mean_kl", c.mean_kl},
                                      {"same_top1", c.same_top1},
                                      {"worst_layer", c.worst_layer},
                                      {"worst_layer_error", c.worst_layer_error}};
  return object;
}

Result<Parity> ReadParity(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(
      fields.OnlyKnown({"kind", "reason", "tokenizer_sha256", "chat_template_sha256", "tokens",
                        "program_nll", "comparison"}));
  Parity parity;
  TESSERA_ASSIGN_OR_RETURN(parity.kind, ReadKind(fields));
  TESSERA_ASSIGN_OR_RETURN(parity.reason, fields.TextOr("reason", ""));
  TESSERA_ASSIGN_OR_RETURN(parity.tokenizer_sha256, fields.TextOr("tokenizer_sha256", ""));
  TESSERA_ASSIGN_OR_RETURN(parity.chat_template_sha256, fields.TextOr("chat_template_sha256", ""));
  if (parity.kind != Parity::Kind::kMeasured) return parity;
  TESSERA_ASSIGN_OR_RETURN(parity.tokens, fields.Int("tokens", 1, kMaxContext));
  TESSERA_ASSIGN_OR_RETURN(parity.program_nll, fields.Number("program_nll"));
  if (!fields.Has("comparison")) return parity;
  TESSERA_ASSIGN_OR_RETURN(const Fields comparison, fields.Object("comparison"));
  TESSERA_ASSIGN_OR_RETURN(parity.comparison, ReadComparison(comparison));
  return parity;
}

}  // namespace tessera::bundle
