// SPDX-License-Identifier: Apache-2.0
//
// tessera models: families that are read, and what was run of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cli/verbs.h"

#include "base/json.h"
#include "model/families.h"
#include "model/support.h"

namespace tessera::cli {
namespace {

enum class Form : uint8_t { kTable, kMarkdown, kJson };

json::Array Names(std::span<const std::string_view> names) {
  json::Array list;
  for (const std::string_view name : names) list.emplace_back(name);
  return list;
}

json::Object ToJson() {
  json::Array families, models;
  for (const model::Family* family : model::Families())
    families.push_back(json::Object{{"family", family->name},
                                    {"model_types", Names(family->model_types)},
                                    {"architectures", Names(family->hf_architectures)},
                                    {"gguf_architectures", Names(family->gguf_architectures)}});
  for (const model::SupportedModel& row : model::SupportedModels())
    models.push_back(json::Object{{"family", row.family},
                                  {"model", row.model},
                                  {"sharding", row.sharding},
                                  {"weights", model::WeightsText(row.weights)},
                                  {"in_ci", row.in_ci},
                                  {"evidence", row.evidence}});
  return {{"families", std::move(families)}, {"models", std::move(models)}};
}

void PrintTable() {
  fmt::print("{:<8} {:<54} {:<19} {}\n", "family", "model", "sharding", "run with");
  for (const model::SupportedModel& row : model::SupportedModels())
    fmt::print("{:<8} {:<54} {:<19} {}{}\n", row.family, row.model, row.sharding,
               model::WeightsText(row.weights), row.in_ci ? "" : ", by hand");
  fmt::print("\nconfig.json and GGUF architectures that are read:\n");
  for (const model::Family* family : model::Families())
    fmt::print("{:<8} {}{}{}\n", family->name, fmt::join(family->hf_architectures, ", "),
               family->gguf_architectures.empty() ? "" : "; GGUF ",
               fmt::join(family->gguf_architectures, ", "));
}

void PrintMarkdown() {
  fmt::print("| family | model | sharding | run with | where |\n|---|---|---|---|---|\n");
  for (const model::SupportedModel& row : model::SupportedModels())
    fmt::print("| {} | {} | {} | {} | `{}`{} |\n", row.family, row.model, row.sharding,
               model::WeightsText(row.weights), row.evidence, row.in_ci ? "" : ", by hand");
  fmt::print("\n| family | `architectures` of config.json | GGUF |\n|---|---|---|\n");
  for (const model::Family* family : model::Families())
    fmt::print("| {} | {} | {} |\n", family->name, fmt::join(family->hf_architectures, ", "),
               fmt::join(family->gguf_architectures, ", "));
}

}  // namespace

void AddModels(CLI::App* app, Context* context) {
  auto form = std::make_shared<Form>(Form::kTable);
  CLI::App* verb =
      app->add_subcommand("models", "Families that are supported, and what was run of them");
  CLI::Option* json = verb->add_flag_callback(
      "--json", [form] { *form = Form::kJson; }, "Facts as JSON on stdout");
  verb->add_flag_callback(
          "--markdown", [form] { *form = Form::kMarkdown; }, "The tables of docs/models.md")
      ->excludes(json);
  verb->callback([form, context] {
    RunVerb(context, [&]() -> Status {
      if (*form == Form::kJson) fmt::print("{}", json::SerializePretty(ToJson()));
      if (*form == Form::kMarkdown) PrintMarkdown();
      if (*form == Form::kTable) PrintTable();
      return {};
    });
  });
}

}  // namespace tessera::cli
