// SPDX-License-Identifier: Apache-2.0
#include "gateway/spec/field_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "gateway/limits.h"
#include "gateway/spec/resources.h"

namespace tessera::gateway {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr double kAnyInteger = 9007199254740992.0;  // 2^53: what every JSON reader keeps exact.
constexpr double kWorkers = static_cast<double>(kWorkersMax);
constexpr std::string_view kFrameworks =
    "vllm|sglang|deepspeed|text_generation_inference|lightllm|tensorrt_llm";
constexpr std::string_view kGpuTypes =
    "nvidia-tesla-t4|nvidia-ampere-a10|nvidia-ampere-a100|nvidia-ampere-a100e|nvidia-hopper-h100|"
    "nvidia-hopper-h100-1g20gb|nvidia-hopper-h100-3g40gb";

// clang-format off
constexpr Field kFields[] = {
    // name, kind, use, low, high, choices, meaning
    {"name", kText, kFixed, 1, kNameBytesMax, "", "The endpoint's own handle, used by every later call: at most 63 of a-z, 0-9 and -, unique."},
    {"model_name", kText, kRequired, 1, 1024, "", "Which model it serves: an alias of models.toml, a repository of the hub, or a path under --model-root."},
    {"source", kEnum, kOptional, 0, 0, "hugging_face", "Where models come from."},
    {"inference_framework", kEnum, kOptional, 0, 0, kFrameworks, "Kept and reported; Tessera serves all of them itself."},
    {"inference_framework_image_tag", kText, kOptional, 0, 256, "", "Kept and reported."},
    {"num_shards", kInteger, kOptional, 1, static_cast<double>(kShardsMax), "", "Tensor-parallel ranks of a worker (default 1); with gpus it must be the same number."},
    {"endpoint_type", kEnum, kFixed, 0, 0, "streaming|sync|async", "streaming serves both kinds of calls and is what sync is taken for; async is refused."},
    {"quantize", kEnum, kOptional, 0, 0, "bitsandbytes|awq", "Kept and reported."},
    {"checkpoint_path", kText, kOptional, 1, 1024, "", "Weights instead of those that model_name stands for: s3://, hf://, https:// or a path under --model-root."},
    {"chat_template_override", kText, kOptional, 1, kChatTemplateBytesMax, "", "Jinja template instead of the model's."},
    {"cpus", kQuantity, kOptional, 0, 0, "", "CPUs of a worker; from the model's plan when absent."},
    {"memory", kQuantity, kOptional, 0, 0, "", "Memory of a worker; from the model's plan when absent."},
    {"storage", kQuantity, kOptional, 0, 0, "", "Disk of a worker; from the model's plan when absent."},
    {"gpus", kInteger, kOptional, 0, 64, "", "GPUs of a worker. Without any, workers run on what there is, with a warning, unless --hardware strict."},
    {"gpu_type", kEnum, kOptional, 0, 0, kGpuTypes, "Kind of GPU; as gpus."},
    {"nodes_per_worker", kInteger, kFixed, 1, 64, "", "Machines of a worker (default 1)."},
    {"optimize_costs", kBool, kOptional, 0, 0, "", "Kept and reported."},
    {"min_workers", kInteger, kRequired, 0, kWorkers, "", "Workers that always run; 0: none while nobody calls."},
    {"max_workers", kInteger, kRequired, 0, kWorkers, "", "Workers at most, not below min_workers; 0 switches the endpoint off."},
    {"per_worker", kInteger, kRequired, 1, static_cast<double>(kPerWorkerMax), "", "Open calls that a worker should have: more of them bring another worker."},
    {"labels", kObject, kOptional, 0, static_cast<double>(kLabelsMax), "", "Names and values as Kubernetes labels."},
    {"metadata", kObject, kOptional, 0, 0, "", "Anything; kept and reported."},
    {"post_inference_hooks", kEnumList, kOptional, 0, 3, "billing|callback|logging", "What happens after each completion."},
    {"default_callback_url", kUrl, kOptional, 1, 2048, "", "Where the callback hook posts results."},
    {"default_callback_auth", kObject, kOptional, 0, 0, "", "{kind: basic, username, password} or {kind: mtls, cert, key}."},
    {"billing_tags", kObject, kOptional, 0, 0, "", "Kept and reported."},
    {"prewarm", kBool, kOptional, 0, 0, "", "Fetch and compile the model at creation, also with min_workers 0 (default true)."},
    {"high_priority", kBool, kOptional, 0, 0, "", "Kept and reported."},
    {"enable_startup_metrics", kBool, kOptional, 0, 0, "", "Start-up times are always measured."},
    {"public_inference", kBool, kOptional, 0, 0, "", "Whether other users may see and call it (default true)."},
    {"task_expires_seconds", kInteger, kOptional, 1, kAnyInteger, "", "Kept and reported."},
    {"queue_message_timeout_seconds", kInteger, kOptional, 1, static_cast<double>(kTimeoutSecondsMax), "", "Kept and reported."},
    {"max_model_len", kInteger, kEngine, 1, kAnyInteger, "", "Context length in tokens."},
    {"max_num_seqs", kInteger, kEngine, 1, 65536, "", "Requests that a worker answers at the same time."},
    {"max_num_batched_tokens", kInteger, kEngine, 1, kAnyInteger, "", "Rows of one step."},
    {"tensor_parallel_size", kInteger, kEngine, 1, static_cast<double>(kShardsMax), "", "As num_shards."},
    {"pipeline_parallel_size", kInteger, kEngine, 1, 64, "", ""},
    {"distributed_executor_backend", kEnum, kEngine, 0, 0, "uni|mp", "What a rank is: uni, threads of one process (default, and faster); mp, a process of its own, by mpirun."},
    {"enable_prefix_caching", kBool, kEngine, 0, 0, "", "Default true."},
    {"chat_template", kText, kEngine, 1, kChatTemplateBytesMax, "", "As chat_template_override."},
    {"tool_call_parser", kText, kEngine, 1, 64, "", "How the model writes calls of functions."},
    {"enable_auto_tool_choice", kBool, kEngine, 0, 0, "", ""},
    {"revision", kText, kEngine, 1, 256, "", "Revision of the repository."},
    {"served_model_name", kText, kEngine, 1, 256, "", "A second name in `model`."},
    {"quantization", kText, kEngine, 1, 64, "", "Format that weights are packed to: none, auto, q8_0, q6_k, q4_k, q4_1, q4_0."},
    {"enforce_eager", kBool, kEngine, 0, 0, "", ""},
    {"trust_remote_code", kBool, kEngine, 0, 0, "", "Code of repositories is never run."},
    {"disable_log_requests", kBool, kEngine, 0, 0, "", ""},
    {"load_format", kText, kEngine, 1, 64, "", ""},
    {"config_format", kText, kEngine, 1, 64, "", ""},
    {"tokenizer_mode", kText, kEngine, 1, 64, "", ""},
    {"limit_mm_per_prompt", kAny, kEngine, 0, 0, "", ""},
    {"tokenizer", kText, kEngine, 1, 1024, "", ""},
    {"dtype", kText, kEngine, 1, 64, "", ""},
    {"seed", kInteger, kEngine, -kAnyInteger, kAnyInteger, "", ""},
    {"code_revision", kText, kEngine, 1, 256, "", ""},
    {"rope_scaling", kObject, kEngine, 0, 0, "", ""},
    {"tokenizer_revision", kText, kEngine, 1, 256, "", ""},
    {"quantization_param_path", kText, kEngine, 1, 1024, "", ""},
    {"max_seq_len_to_capture", kInteger, kEngine, 0, kAnyInteger, "", ""},
    {"disable_sliding_window", kBool, kEngine, 0, 0, "", ""},
    {"skip_tokenizer_init", kBool, kEngine, 0, 0, "", ""},
    {"override_neuron_config", kObject, kEngine, 0, 0, "", ""},
    {"mm_processor_kwargs", kObject, kEngine, 0, 0, "", ""},
    {"block_size", kInteger, kEngine, 1, 65536, "", ""},
    {"gpu_memory_utilization", kNumber, kEngine, 0, 1, "", ""},
    {"max_gpu_memory_utilization", kNumber, kEngine, 0, 1, "", ""},
    {"swap_space", kNumber, kEngine, 0, kAnyInteger, "", ""},
    {"cache_dtype", kText, kEngine, 1, 64, "", ""},
    {"num_gpu_blocks_override", kInteger, kEngine, 0, kAnyInteger, "", ""},
    {"attention_backend", kText, kEngine, 1, 64, "", ""},
};
// clang-format on

FieldError Make(const Field& field, const json::Value& value, std::string type, std::string msg) {
  return {std::move(type), {"body", std::string(field.name)}, std::move(msg), value};
}

/// A whole number as JSON writers spell it (5, 5.0).
std::optional<double> WholeNumber(const json::Value& value) {
  if (const auto* number = value.if_int64()) return static_cast<double>(*number);
  if (const auto* number = value.if_uint64()) return static_cast<double>(*number);
  if (const auto* number = value.if_double())
    if (std::floor(*number) == *number && std::fabs(*number) <= kAnyInteger) return *number;
  return std::nullopt;
}

std::optional<double> Number(const json::Value& value) {
  if (const auto* number = value.if_double()) return *number;
  return WholeNumber(value);
}

void CheckRange(const Field& field, const json::Value& value, double number,
                std::vector<FieldError>* errors) {
  if (field.low == 0 && field.high == 0) return;
  if (number < field.low)
    errors->push_back(Make(field, value, "greater_than_equal",
                           fmt::format("Input should be greater than or equal to {}", field.low)));
  if (number > field.high)
    errors->push_back(Make(field, value, "less_than_equal",
                           fmt::format("Input should be less than or equal to {}", field.high)));
}

void CheckText(const Field& field, const json::Value& value, std::vector<FieldError>* errors) {
  const auto& text = value.as_string();
  const double high = field.high == 0 ? static_cast<double>(kTextBytesMax) : field.high;
  const auto length = static_cast<double>(text.size());
  if (length < field.low)
    errors->push_back(Make(field, value, "string_too_short",
                           fmt::format("String should have at least {} characters", field.low)));
  if (length > high)
    errors->push_back(Make(field, value, "string_too_long",
                           fmt::format("String should have at most {} characters", high)));
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
  };
  if (std::ranges::any_of(text, is_control))
    errors->push_back(
        Make(field, value, "string_pattern_mismatch", "String should hold no control characters"));
}

bool IsChoice(const Field& field, const json::Value& value) {
  const auto* text = value.if_string();
  if (text == nullptr) return false;
  return std::ranges::count(Choices(field), std::string_view(*text)) > 0;
}

void CheckChoice(const Field& field, const json::Value& value, std::vector<FieldError>* errors) {
  if (IsChoice(field, value)) return;
  std::string list;
  for (const std::string_view choice : Choices(field))
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", choice);
  errors->push_back(Make(field, value, "enum", fmt::format("Input should be one of {}", list)));
}

bool IsQuantity(const json::Value& value) {
  if (const auto* text = value.if_string()) return ParseQuantity(*text).has_value();
  const auto number = Number(value);
  return number.has_value() && *number >= 0 && *number <= static_cast<double>(kQuantityMaxUnits);
}

bool IsUrl(const json::Value& value) {
  const auto* text = value.if_string();
  if (text == nullptr) return false;
  const std::string_view url = *text;
  for (const std::string_view scheme : {"http://", "https://"})
    if (url.starts_with(scheme) && url.size() > scheme.size() && url[scheme.size()] != '/')
      return std::ranges::none_of(url,
                                  [](char c) { return static_cast<unsigned char>(c) <= 0x20; });
  return false;
}

struct Expected {
  std::string_view type, msg;
};
Expected ExpectedOf(FieldKind kind) {
  switch (kind) {
    case kText:
      return {"string_type", "Input should be a valid string"};
    case kInteger:
      return {"int_type", "Input should be a valid integer"};
    case kNumber:
      return {"float_type", "Input should be a valid number"};
    case kBool:
      return {"bool_type", "Input should be a valid boolean"};
    case kObject:
      return {"dict_type", "Input should be a valid dictionary"};
    case kTextList:
    case kEnumList:
      return {"list_type", "Input should be a valid list"};
    case kEnum:
      return {"enum", "Input should be one of the known names"};
    case kQuantity:
      return {"quantity", "Input should be an amount such as 2, \"500m\" or \"40Gi\""};
    case kUrl:
      return {"url_parsing", "Input should be an http:// or https:// URL"};
    case kAny:
      return {"any", ""};
  }
  return {};
}

}  // namespace

std::span<const Field> EndpointFields() {
  return kFields;
}

const Field* FindField(std::string_view name) {
  const auto* found = std::ranges::find(kFields, name, &Field::name);
  return found == std::end(kFields) ? nullptr : found;
}

std::string_view KindWord(FieldKind kind) {
  switch (kind) {
    case kText:
    case kEnum:
      return "str";
    case kInteger:
      return "int";
    case kNumber:
      return "number";
    case kBool:
      return "bool";
    case kObject:
      return "object";
    case kTextList:
    case kEnumList:
      return "[str]";
    case kQuantity:
      return "str or number";
    case kUrl:
      return "URL";
    case kAny:
      return "any";
  }
  return {};
}

std::vector<std::string_view> Choices(const Field& field) {
  std::vector<std::string_view> choices;
  std::string_view rest = field.choices;
  while (!rest.empty()) {
    const size_t end = rest.find('|');
    choices.push_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return choices;
}

void CheckField(const Field& field, const json::Value& value, std::vector<FieldError>* errors) {
  const auto refuse = [&] {
    const Expected expected = ExpectedOf(field.kind);
    errors->push_back(Make(field, value, std::string(expected.type), std::string(expected.msg)));
  };
  switch (field.kind) {
    case kText:
      return value.is_string() ? CheckText(field, value, errors) : refuse();
    case kInteger: {
      const auto number = WholeNumber(value);
      return number.has_value() ? CheckRange(field, value, *number, errors) : refuse();
    }
    case kNumber: {
      const auto number = Number(value);
      return number.has_value() ? CheckRange(field, value, *number, errors) : refuse();
    }
    case kBool:
      return value.is_bool() ? void() : refuse();
    case kObject:
      return value.is_object() ? void() : refuse();
    case kTextList:
      if (!value.is_array()) return refuse();
      return std::ranges::all_of(value.get_array(), [](const auto& e) { return e.is_string(); })
                 ? void()
                 : refuse();
    case kEnum:
      return CheckChoice(field, value, errors);
    case kEnumList:
      if (!value.is_array()) return refuse();
      for (const json::Value& element : value.get_array()) CheckChoice(field, element, errors);
      return;
    case kQuantity:
      return IsQuantity(value) ? void() : refuse();
    case kUrl:
      if (value.is_string()) CheckText(field, value, errors);
      return IsUrl(value) ? void() : refuse();
    case kAny:
      return;
  }
}

}  // namespace tessera::gateway
