// SPDX-License-Identifier: Apache-2.0
#include "server/openai/tool_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "server/limits.h"
#include "server/openai/output_form.h"
#include "text/tool_grammar.h"

namespace tessera::server::openai {
namespace {

using chat::ToolFields;

class ToolConstrainer {
 public:
  ToolConstrainer(const ToolFields& tools, const ServedModel& model, Duration schemas_time,
                  GenerationFields* fields)
      : tools_(tools),
        model_(model),
        fields_(*fields),
        schemas_time_(schemas_time),
        is_required_(tools.choice == ToolFields::Choice::kRequired) {}

  ApiResult<void> Run(const json::Object& body) {
    if (auto error = ReadSchemas()) return std::unexpected(*std::move(error));
    if (auto error = ReadText(body)) return std::unexpected(*std::move(error));
    const text::MessageFormat& format = fields_.message.format;
    options_.needs_call = is_required_;
    options_.several = format.tool_options.calls_max > 1;
    options_.reasoning = format.reasoning;
    options_.starts_reasoning = format.starts_reasoning;
    const auto source =
        text::ToolGrammar(*format.tool_syntax, schemas_, options_, *model_.tokenizer);
    if (!source.has_value()) return Unenforced(source.error());
    if (!source->has_value()) return {};  // Text cannot be told from a call before it is whole.
    auto grammar = model_.grammars->Get(text::GrammarKind::kLarkParts, **source);
    if (!grammar.has_value()) return Unenforced(grammar.error());
    fields_.grammar = *std::move(grammar);
    fields_.message.format.tool_options.gives_partial_calls = true;
    return {};
  }

 private:
  ApiError BadSchema(std::string message, bool is_unsupported) const {
    ApiError error = BadField(tools_.is_older ? "functions" : "tools", std::move(message));
    if (is_unsupported) error.code = "unsupported_schema";
    return error;
  }

  void Warn(std::string param, std::string message) {
    fields_.warnings.push_back({"unenforced_schema", std::move(param), std::move(message)});
  }

  /// One schema by itself, so that an error says which one and where in it. All of a request
  /// together have a bounded time, or 128 of them would keep a worker for minutes.
  Status Compile(const json::Value& schema) {
    if (Clock::Real().Now() - begun_ > schemas_time_)
      return ResourceExhausted("the schemas before it took too long to compile");
    return StatusOf(model_.grammars->Get(text::GrammarKind::kJsonSchema, json::Serialize(schema)));
  }

  std::optional<ApiError> ReadSchemas() {
    for (const ToolFields::Function& function : tools_.functions) {
      if (!function.is_allowed) continue;
      text::ToolSchema schema{.name = function.name, .parameters = function.parameters};
      if (schema.parameters.is_object()) {
        if (const Status status = Compile(schema.parameters); !status.ok()) {
          if (status.code() == Code::kInternal) return FromStatus(status);
          const bool is_wrong = status.code() == Code::kInvalidArgument;
          const std::string message =
              fmt::format("{}: {}", function.parameters_path, status.message());
          if (is_wrong || is_required_ || function.is_strict) return BadSchema(message, !is_wrong);
          Warn(function.parameters_path,
               message + "; the arguments are JSON, but may not obey the schema");
          schema.parameters = nullptr;
        }
      }
      schemas_.push_back(std::move(schema));
    }
    return std::nullopt;
  }

  /// The form that text has to have, which an answer may hold instead of calls.
  std::optional<ApiError> ReadText(const json::Object& body) {
    if (fields_.grammar == nullptr) return std::nullopt;
    std::vector<Warning> known;
    auto form = ReadOutputForm(body, &known);
    TESSERA_CHECK(form.has_value() && form->has_value());  // It has been compiled before.
    const std::string& field = (*form)->field;
    if (is_required_) {
      fields_.warnings.push_back(
          {"normalized", field,
           fmt::format("{} has no effect: the answer holds calls of functions only", field)});
      return std::nullopt;
    }
    auto schema = json::Parse((*form)->source, {}, field);
    if ((*form)->kind != text::GrammarKind::kJsonSchema || !schema.has_value())
      return BadField(field, fmt::format("{} and tools: beside calls of functions text can be held "
                                         "to a JSON schema only",
                                         field));
    options_.text_schema = *std::move(schema);
    return std::nullopt;
  }

  /// What a single schema did not show: the sum is too large, or the syntax has no room for it.
  ApiResult<void> Unenforced(const Status& status) {
    if (status.code() == Code::kInternal) return std::unexpected(FromStatus(status));
    const bool is_strict = std::ranges::any_of(
        tools_.functions, [](const auto& function) { return function.is_strict; });
    const std::string message = fmt::format("the tools' parameters: {}", status.message());
    if (is_required_ || is_strict || options_.text_schema.has_value())
      return std::unexpected(BadSchema(message, true));
    Warn("tools", message + "; calls may not obey the schemas");
    return {};
  }

  const ToolFields& tools_;
  const ServedModel& model_;
  GenerationFields& fields_;
  const Duration schemas_time_;
  const bool is_required_;
  const TimePoint begun_ = Clock::Real().Now();
  std::vector<text::ToolSchema> schemas_;
  text::ToolGrammarOptions options_;
};

}  // namespace

ApiResult<void> ConstrainTools(const json::Object& body, const chat::ToolFields& tools,
                               const ServedModel& model, GenerationFields* fields,
                               Duration schemas_time) {
  if (tools.choice == ToolFields::Choice::kNone) return {};
  return ToolConstrainer(tools, model, schemas_time, fields).Run(body);
}

}  // namespace tessera::server::openai
