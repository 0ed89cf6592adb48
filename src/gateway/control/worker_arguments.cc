// SPDX-License-Identifier: Apache-2.0
#include "gateway/control/worker_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/file.h"
#include "base/hash.h"
#include "gateway/spec/assign_field.h"
#include "gateway/spec/field_table.h"

namespace tessera::gateway {
namespace {

/// Options that a flag of `serve` does.
struct Flag {
  std::string_view option, flag;
};
constexpr std::array kFlags = {
    Flag{"max_model_len", "--max-seq-len"}, Flag{"max_num_seqs", "--max-batch"},
    Flag{"tensor_parallel_size", "--tp"},   Flag{"tool_call_parser", "--tool-call-parser"},
    Flag{"quantization", "--quantize"},
};
constexpr std::string_view kBackend = "distributed_executor_backend";
constexpr std::string_view kRanks = "tensor_parallel_size";

std::string Text(const json::Value& value) {
  const auto* text = value.if_string();
  return text != nullptr ? std::string(*text) : json::Serialize(value);
}

bool WantsRankProcesses(const EndpointSpec& spec) {
  const json::Value* backend = json::Find(spec.engine, kBackend);
  return backend != nullptr && *backend == json::Value("mp");
}

/// What a worker whose ranks are processes has of them.
int64_t RanksOf(const EndpointSpec& spec) {
  const json::Value* ranks = json::Find(spec.engine, kRanks);
  return ranks != nullptr ? ranks->to_number<int64_t>() : spec.num_shards;
}

/// The worker ends with the first rank that dies: starting workers again is done here, for all of
/// them alike.
void AddRankProcesses(const EndpointSpec& spec, std::vector<std::string>* arguments) {
  if (!WantsRankProcesses(spec) || RanksOf(spec) < 2) return;
  if (json::Find(spec.engine, kRanks) == nullptr)
    arguments->push_back(fmt::format("--tp={}", spec.num_shards));
  arguments->insert(arguments->end(), {"--rank-processes", "--rank-restarts=0"});
}

/// The same text has the same file, and a file never changes.
Result<std::filesystem::path> WriteTemplate(std::string_view text,
                                            const std::filesystem::path& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return Fail(ErrnoStatus(error.value(), "making the folder", dir));
  const std::filesystem::path file =
      dir / (Sha256Hex(std::as_bytes(std::span(text.data(), text.size()))) + ".jinja");
  if (!IsPresent(file)) TESSERA_RETURN_IF_ERROR(WriteFileAtomic(file, text));
  return file;
}

json::Value OptionValue(const EndpointSpec& spec, std::string_view name) {
  const json::Value* value = json::Find(spec.engine, name);
  return value == nullptr ? json::Value() : *value;
}

/// What asks for what is so anyway: no GPU, one machine, an empty list, switches that are off. One
/// that can only be on is asked for by being on.
bool IsNothing(const Field& field, const json::Value& value) {
  constexpr std::array<std::string_view, 1> kAlwaysOn = {"enable_auto_tool_choice"};
  if (value.is_bool() && field.use == FieldUse::kEngine)
    return value.get_bool() == (std::ranges::find(kAlwaysOn, field.name) != kAlwaysOn.end());
  if (const auto* list = value.if_array()) return list->empty();
  if (field.name == "gpus") return value == json::Value(0);
  constexpr std::array<std::string_view, 2> kOnes = {"nodes_per_worker", "pipeline_parallel_size"};
  if (std::ranges::find(kOnes, field.name) != kOnes.end()) return value == json::Value(1);
  return field.name == "optimize_costs" && value == json::Value(false);
}

}  // namespace

Result<std::vector<std::string>> WorkerArguments(const EndpointSpec& spec, const ModelTable& models,
                                                 const std::filesystem::path& template_dir) {
  std::string model;
  if (spec.checkpoint_path.has_value()) {
    TESSERA_ASSIGN_OR_RETURN(model, models.ResolveCheckpoint(*spec.checkpoint_path));
  } else {
    TESSERA_ASSIGN_OR_RETURN(model, models.Resolve(spec.model_name));
  }
  std::string names = spec.name;
  if (const json::Value* second = json::Find(spec.engine, "served_model_name"))
    names += "," + Text(*second);
  // A name may begin like a flag; what follows "--" does not.
  std::vector<std::string> arguments = {"--model-path=" + model, "--served-model-name=" + names};
  for (const Flag& flag : kFlags)
    if (const json::Value* value = json::Find(spec.engine, flag.option))
      arguments.push_back(fmt::format("{}={}", flag.flag, Text(*value)));
  if (const json::Value* caching = json::Find(spec.engine, "enable_prefix_caching");
      caching != nullptr && *caching == json::Value(false))
    arguments.emplace_back("--prefix-cache=off");
  if (const json::Value* revision = json::Find(spec.engine, "revision"))
    arguments.push_back("--revision=" + Text(*revision));
  AddRankProcesses(spec, &arguments);
  std::optional<std::string> chat_template = spec.chat_template_override;
  if (const json::Value* other = json::Find(spec.engine, "chat_template");
      other != nullptr && !chat_template.has_value())
    chat_template = Text(*other);
  if (chat_template.has_value()) {
    TESSERA_ASSIGN_OR_RETURN(const std::filesystem::path file,
                             WriteTemplate(*chat_template, template_dir));
    arguments.push_back("--chat-template=" + file.string());
  }
  return arguments;
}

std::vector<std::string> UnmetWishes(const EndpointSpec& spec) {
  static const EndpointSpec kAbsent;
  std::vector<std::string> wishes;
  for (const Field& field : EndpointFields()) {
    if (field.effect != FieldEffect::kNone) continue;
    if (field.name == "num_shards" && WantsRankProcesses(spec)) continue;
    const bool is_option = field.use == FieldUse::kEngine;
    const json::Value asked = is_option ? OptionValue(spec, field.name) : FieldValue(field, spec);
    const json::Value absent = is_option ? json::Value() : FieldValue(field, kAbsent);
    if (asked.is_null() || asked == absent || IsNothing(field, asked)) continue;
    wishes.push_back(field.unmet.empty()
                         ? fmt::format("{}: has no effect here", field.name)
                         : fmt::format("{}: has no effect here: {}", field.name, field.unmet));
  }
  if (WantsRankProcesses(spec) && RanksOf(spec) < 2)
    wishes.push_back(
        fmt::format("{}: mp needs {} or num_shards of 2 or more; workers are one "
                    "process",
                    kBackend, kRanks));
  return wishes;
}

}  // namespace tessera::gateway
