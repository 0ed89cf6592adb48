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
using enum FieldEffect;

constexpr double kAnyInteger = 9007199254740992.0;  // 2^53: what every JSON reader keeps exact.
constexpr double kWorkers = static_cast<double>(kWorkersMax);
constexpr std::string_view kFrameworks =
    "vllm|sglang|deepspeed|text_generation_inference|lightllm|tensorrt_llm";
constexpr std::string_view kGpuTypes =
    "nvidia-tesla-t4|nvidia-ampere-a10|nvidia-ampere-a100|nvidia-ampere-a100e|nvidia-hopper-h100|"
    "nvidia-hopper-h100-1g20gb|nvidia-hopper-h100-3g40gb";

// clang-format off
constexpr Field kFields[] = {
    // name, kind, use, low, high, choices, meaning, effect, unmet
    {"name", kText, kFixed, 1, kNameBytesMax, "", "The endpoint's own handle, used by every later call: at most 63 of a-z, 0-9 and -, unique.", kGateway, ""},
    {"model_name", kText, kRequired, 1, 1024, "", "Which model it serves: an alias of models.toml, a repository of the hub, or a path under --model-root.", kWorker, ""},
    {"source", kEnum, kOptional, 0, 0, "hugging_face", "Where models come from.", kGateway, ""},
    {"inference_framework", kEnum, kOptional, 0, 0, kFrameworks, "Which server llm-engine would have run.", kNone, "reported as asked; Tessera serves the model itself"},
    {"inference_framework_image_tag", kText, kOptional, 0, 256, "", "Version of that server's image.", kNone, "reported as asked; there are no images of servers here"},
    {"num_shards", kInteger, kOptional, 1, static_cast<double>(kShardsMax), "", "Tensor-parallel ranks of a worker (default 1); with gpus it must be the same number.", kNone, "a worker on CPUs computes with all of them whatever its shards; it runs with 1"},
    {"endpoint_type", kEnum, kFixed, 0, 0, "streaming|sync|async", "streaming serves both kinds of calls and is what sync is taken for; async is refused.", kGateway, ""},
    {"quantize", kEnum, kOptional, 0, 0, "bitsandbytes|awq", "Format that another server would have packed weights to.", kNone, "a format of other servers; weights are taken as they are (`quantization` packs them)"},
    {"checkpoint_path", kText, kOptional, 1, 1024, "", "Weights instead of those that model_name stands for: s3://, hf://, https:// or a path under --model-root.", kWorker, ""},
    {"chat_template_override", kText, kOptional, 1, kChatTemplateBytesMax, "", "Jinja template instead of the model's.", kWorker, ""},
    {"cpus", kQuantity, kOptional, 0, 0, "", "CPUs of a worker.", kNone, "workers of a machine share its CPUs"},
    {"memory", kQuantity, kOptional, 0, 0, "", "Memory of a worker.", kNone, "a worker takes what its model and context need"},
    {"storage", kQuantity, kOptional, 0, 0, "", "Disk of a worker.", kNone, "bundles and downloads are in the cache of the machine"},
    {"gpus", kInteger, kOptional, 0, 64, "", "GPUs of a worker; with num_shards it must be the same number.", kNone, "this machine has none to give; workers run on its CPUs"},
    {"gpu_type", kEnum, kOptional, 0, 0, kGpuTypes, "Kind of GPU.", kNone, "this machine has none to give; workers run on its CPUs"},
    {"nodes_per_worker", kInteger, kFixed, 1, 64, "", "Machines of a worker (default 1).", kNone, "a worker runs on one machine"},
    {"optimize_costs", kBool, kOptional, 0, 0, "", "Whether cheaper resources will do.", kNone, ""},
    {"min_workers", kInteger, kRequired, 0, kWorkers, "", "Workers that always run; 0: none while nobody calls.", kGateway, ""},
    {"max_workers", kInteger, kRequired, 0, kWorkers, "", "Workers at most, not below min_workers; 0 switches the endpoint off.", kGateway, ""},
    {"per_worker", kInteger, kRequired, 1, static_cast<double>(kPerWorkerMax), "", "Open calls that a worker should have: more of them bring another worker.", kGateway, ""},
    {"labels", kObject, kOptional, 0, static_cast<double>(kLabelsMax), "", "Names and values as Kubernetes labels; reported.", kGateway, ""},
    {"metadata", kObject, kOptional, 0, 0, "", "Anything; reported.", kGateway, ""},
    {"post_inference_hooks", kEnumList, kOptional, 0, 3, "billing|callback|logging", "What happens after each completion.", kNone, "nothing happens after a completion"},
    {"default_callback_url", kUrl, kOptional, 1, 2048, "", "Where the callback hook posts results.", kNone, "nothing is posted"},
    {"default_callback_auth", kObject, kOptional, 0, 0, "", "{kind: basic, username, password} or {kind: mtls, cert, key}.", kNone, "nothing is posted"},
    {"billing_tags", kObject, kOptional, 0, 0, "", "Names for a bill.", kNone, "reported as asked; nothing is billed"},
    {"prewarm", kBool, kOptional, 0, 0, "", "Fetch and compile the model at creation, also with min_workers 0.", kNone, "the first worker is always started, so that a model that cannot start shows"},
    {"high_priority", kBool, kOptional, 0, 0, "", "Start its workers before others'.", kNone, "endpoints of a machine are equals"},
    {"enable_startup_metrics", kBool, kOptional, 0, 0, "", "Measure how long workers take to start.", kNone, "start-up times are always measured"},
    {"public_inference", kBool, kOptional, 0, 0, "", "Whether other users may see and call it.", kGateway, ""},
    {"task_expires_seconds", kInteger, kOptional, 1, kAnyInteger, "", "After how long a queued task is dropped.", kNone, "no call is queued as a task"},
    {"queue_message_timeout_seconds", kInteger, kOptional, 1, static_cast<double>(kTimeoutSecondsMax), "", "After how long a task is given to another worker.", kNone, "no call is queued as a task"},
    {"max_model_len", kInteger, kEngine, 1, kAnyInteger, "", "Context length in tokens.", kWorker, ""},
    {"max_num_seqs", kInteger, kEngine, 1, 65536, "", "Requests that a worker answers at the same time.", kWorker, ""},
    {"max_num_batched_tokens", kInteger, kEngine, 1, kAnyInteger, "", "Rows of one step.", kNone, "a step takes up to 512 tokens and prompts are cut to fit"},
    {"tensor_parallel_size", kInteger, kEngine, 1, static_cast<double>(kShardsMax), "", "Tensor-parallel ranks of a worker.", kWorker, ""},
    {"pipeline_parallel_size", kInteger, kEngine, 1, 64, "", "Machines that layers are spread over.", kNone, "models are not cut by layers"},
    {"distributed_executor_backend", kEnum, kEngine, 0, 0, "uni|mp", "What a rank is: uni, threads of one process (default, and faster); mp, a process of its own, by mpirun.", kWorker, ""},
    {"enable_prefix_caching", kBool, kEngine, 0, 0, "", "Keep the beginnings of prompts (default true).", kWorker, ""},
    {"chat_template", kText, kEngine, 1, kChatTemplateBytesMax, "", "As chat_template_override.", kWorker, ""},
    {"tool_call_parser", kText, kEngine, 1, 64, "", "How the model writes calls of functions.", kWorker, ""},
    {"enable_auto_tool_choice", kBool, kEngine, 0, 0, "", "Look for calls of functions.", kNone, "calls of functions are always looked for"},
    {"revision", kText, kEngine, 1, 256, "", "Revision of the repository.", kWorker, ""},
    {"served_model_name", kText, kEngine, 1, 256, "", "A second name in `model`.", kWorker, ""},
    {"quantization", kText, kEngine, 1, 64, "", "Format that weights are packed to: none, auto, q8_0, q6_k, q4_k, q4_1, q4_0.", kWorker, ""},
    {"enforce_eager", kBool, kEngine, 0, 0, "", "Capture no graphs.", kNone, "there are no captured graphs to switch off"},
    {"trust_remote_code", kBool, kEngine, 0, 0, "", "Run code of the repository.", kNone, "code of repositories is never run"},
    {"disable_log_requests", kBool, kEngine, 0, 0, "", "Log no requests.", kNone, "workers log a line for each request, which the logs route shows"},
    {"load_format", kText, kEngine, 1, 64, "", "Format of weight files.", kNone, "the format is read from the files"},
    {"config_format", kText, kEngine, 1, 64, "", "Format of config.json.", kNone, "the format is read from the files"},
    {"tokenizer_mode", kText, kEngine, 1, 64, "", "Which tokenizer code.", kNone, "there is one tokenizer"},
    {"limit_mm_per_prompt", kAny, kEngine, 0, 0, "", "Images and such of a prompt.", kNone, "models read text only"},
    {"tokenizer", kText, kEngine, 1, 1024, "", "Another tokenizer.", kNone, "the model's own is used"},
    {"dtype", kText, kEngine, 1, 64, "", "Type of numbers.", kNone, "weights run in the formats of the model's files"},
    {"seed", kInteger, kEngine, -kAnyInteger, kAnyInteger, "", "Seed of calls that give none.", kNone, "every call that gives none draws one; the same seed gives the same answer"},
    {"code_revision", kText, kEngine, 1, 256, "", "Revision of the repository's code.", kNone, "code of repositories is never run"},
    {"rope_scaling", kObject, kEngine, 0, 0, "", "Another scaling of positions.", kNone, "the model's own is used"},
    {"tokenizer_revision", kText, kEngine, 1, 256, "", "Revision of the tokenizer.", kNone, "the tokenizer is of the model's revision"},
    {"quantization_param_path", kText, kEngine, 1, 1024, "", "File of scales.", kNone, "scales are read from the model's files"},
    {"max_seq_len_to_capture", kInteger, kEngine, 0, kAnyInteger, "", "Longest captured graph.", kNone, "there are no captured graphs"},
    {"disable_sliding_window", kBool, kEngine, 0, 0, "", "Ignore sliding windows.", kNone, "the model's own is used"},
    {"skip_tokenizer_init", kBool, kEngine, 0, 0, "", "Serve without tokenizer.", kNone, "every worker has its tokenizer"},
    {"override_neuron_config", kObject, kEngine, 0, 0, "", "Options of Neuron devices.", kNone, "workers run on CPUs"},
    {"mm_processor_kwargs", kObject, kEngine, 0, 0, "", "Options of image processors.", kNone, "models read text only"},
    {"block_size", kInteger, kEngine, 1, 65536, "", "Tokens of a KV page.", kNone, "pages are set when compiling"},
    {"gpu_memory_utilization", kNumber, kEngine, 0, 1, "", "Share of GPU memory.", kNone, "workers run on CPUs"},
    {"max_gpu_memory_utilization", kNumber, kEngine, 0, 1, "", "Share of GPU memory at most.", kNone, "workers run on CPUs"},
    {"swap_space", kNumber, kEngine, 0, kAnyInteger, "", "Memory of the host for swapped pages.", kNone, "weights and KV cache are in memory already"},
    {"cache_dtype", kText, kEngine, 1, 64, "", "Type of the KV cache.", kNone, "keys and values are kept in f16"},
    {"num_gpu_blocks_override", kInteger, kEngine, 0, kAnyInteger, "", "KV pages.", kNone, "the KV cache is sized by the worker"},
    {"attention_backend", kText, kEngine, 1, 64, "", "Which attention kernels.", kNone, "there is one attention for a machine"},
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
  // As it will be written down: a number so small that no text of it reads back is none.
  return value.is_number() && ParseQuantity(json::Serialize(value)).has_value();
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
