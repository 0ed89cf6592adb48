// SPDX-License-Identifier: Apache-2.0
#include "server/shortfin/generate_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "engine/limits.h"
#include "server/limits.h"
#include "server/openai/completion_request.h"
#include "server/openai/generation_fields.h"
#include "server/shortfin/fields.h"

namespace tessera::server::shortfin {
namespace {

using openai::Warning;

constexpr std::array<std::string_view, 8> kSamplingFields = {
    "n", "max_completion_tokens", "temperature", "top_k", "top_p", "num_beams", "seed", "min_p"};

void WarnUnknown(const json::Object& object, std::span<const std::string_view> known,
                 std::vector<Warning>* warnings) {
  for (const auto& [key, value] : object)
    if (std::ranges::find(known, std::string_view(key)) == known.end())
      openai::AddWarning({"unknown_field", fmt::format("{:.100}", std::string_view(key)),
                          fmt::format("the field \"{:.100}\" is not known and was ignored",
                                      std::string_view(key))},
                         warnings);
}

Status OutOfPlace(std::string_view field, std::string_view expected) {
  return InvalidArgument(fmt::format("{} must be {}", field, expected));
}

Result<double> NumberIn(const json::Object& object, std::string_view key, double fallback,
                        double low, double high) {
  TESSERA_ASSIGN_OR_RETURN(const double value, json::GetDouble(object, key, fallback));
  if (value >= low && value <= high) return value;
  return Fail(InvalidArgument(fmt::format("{} is {}, expected {} to {}", key, value, low, high)));
}

/// A field that is absent takes the server's value; one that is null is off.
template <class T>
T Default(const json::Object& object, std::string_view key, T server, T off) {
  return object.contains(key) ? off : server;
}

Status ReadSampling(const json::Object& object, const ServedModel& model, GeneratePrompt* prompt) {
  engine::SamplingParams& sampling = prompt->sampling;
  const engine::SamplingParams off;
  sampling = engine::WithDefaults(model.defaults);
  const auto number = [&](std::string_view key, double server, double off_value, double high) {
    return NumberIn(object, key, Default(object, key, server, off_value), 0, high);
  };
  TESSERA_ASSIGN_OR_RETURN(sampling.temperature,
                           number("temperature", sampling.temperature, off.temperature, 2));
  TESSERA_ASSIGN_OR_RETURN(sampling.top_p, number("top_p", sampling.top_p, off.top_p, 1));
  TESSERA_ASSIGN_OR_RETURN(sampling.min_p, number("min_p", sampling.min_p, off.min_p, 1));
  const int64_t top_k = Default(object, "top_k", sampling.top_k, off.top_k);
  TESSERA_ASSIGN_OR_RETURN(sampling.top_k, json::GetInt(object, "top_k", top_k));
  TESSERA_ASSIGN_OR_RETURN(
      const int64_t seed,
      json::GetInt(object, "seed", static_cast<int64_t>(SystemRandom64() >> 1)));
  // -1 asks for a drawn one, as in /v1/completions.
  sampling.seed = seed == -1 ? SystemRandom64() : static_cast<uint64_t>(seed);
  TESSERA_ASSIGN_OR_RETURN(const int64_t count, json::GetInt(object, "n", 1));
  if (count != 1)
    return InvalidArgument(fmt::format("n is {}; this server supports 1 only", count));
  TESSERA_ASSIGN_OR_RETURN(const int64_t beams, json::GetInt(object, "num_beams", 1));
  if (beams < 1 || beams > engine::kBeamsMax)
    return InvalidArgument(
        fmt::format("num_beams is {}, expected 1 to {}", beams, engine::kBeamsMax));
  prompt->num_beams = static_cast<int>(beams);
  TESSERA_ASSIGN_OR_RETURN(prompt->max_tokens, json::GetInt(object, "max_completion_tokens", 0));
  const bool is_given = json::Find(object, "max_completion_tokens") != nullptr;
  if (is_given && prompt->max_tokens < 1)
    return InvalidArgument(
        fmt::format("max_completion_tokens is {}, expected at least 1", prompt->max_tokens));
  return {};
}

/// Reads one request body; the steps in the order of its fields.
class Reader {
 public:
  Reader(const ServedModel& model, int64_t max_model_len)
      : model_(model), max_model_len_(max_model_len) {}

  Result<GenerateRequest> Read(const json::Object& body) {
    std::vector<std::string_view> known;
    for (const openai::Field& field : GenerateFields()) known.push_back(field.name);
    WarnUnknown(body, known, &request_.warnings);
    TESSERA_ASSIGN_OR_RETURN(request_.stream, json::GetBool(body, "stream", false));
    TESSERA_ASSIGN_OR_RETURN(request_.return_ids, json::GetBool(body, "return_input_ids", false));
    if (request_.stream && request_.return_ids)
      return Fail(InvalidArgument("stream and return_input_ids cannot go together"));
    const json::Value* text = json::Find(body, "text");
    const json::Value* ids = json::Find(body, "input_ids");
    if ((text != nullptr) == (ids != nullptr))
      return Fail(InvalidArgument("give exactly one of text and input_ids"));
    TESSERA_RETURN_IF_ERROR(text != nullptr ? ReadTexts(*text) : ReadIds(*ids));
    if (request_.prompts.empty() || request_.prompts.size() > kPromptsMax)
      return Fail(InvalidArgument(
          fmt::format("{} prompts came, expected 1 to {}", request_.prompts.size(), kPromptsMax)));
    TESSERA_RETURN_IF_ERROR(ReadAllSampling(json::Find(body, "sampling_params")));
    TESSERA_RETURN_IF_ERROR(CheckBeams());
    TESSERA_RETURN_IF_ERROR(ReadRids(json::Find(body, "rid")));
    TESSERA_RETURN_IF_ERROR(CheckLengths());
    TESSERA_RETURN_IF_ERROR(StatusOf(json::GetBool(body, "strict", false)));
    if (const auto error = openai::RefuseIfStrict(body, request_.warnings))
      return Fail(InvalidArgument(error->message));
    return std::move(request_);
  }

 private:
  Status AddText(const json::Value& value) {
    if (!value.is_string()) return OutOfPlace("text", "a string or an array of strings");
    GeneratePrompt prompt;
    prompt.text = std::string(value.get_string());
    TESSERA_ASSIGN_OR_RETURN(prompt.ids, model_.tokenizer->Encode(*prompt.text, {}));
    request_.prompts.push_back(std::move(prompt));
    return {};
  }

  Status AddIds(const json::Value& value) {
    if (!value.is_array())
      return OutOfPlace("input_ids", "an array of ids or an array of such arrays");
    auto ids = openai::ReadTokenIds(value.get_array(), "input_ids", model_.tokenizer->vocab_size());
    if (!ids.has_value()) return InvalidArgument(ids.error().message);
    GeneratePrompt prompt;
    prompt.ids = *std::move(ids);
    request_.prompts.push_back(std::move(prompt));
    return {};
  }

  Status ReadTexts(const json::Value& value) {
    const json::Array* array = value.if_array();
    if (array == nullptr) return AddText(value);
    request_.is_batch = true;
    for (const json::Value& entry : *array) TESSERA_RETURN_IF_ERROR(AddText(entry));
    return {};
  }

  Status ReadIds(const json::Value& value) {
    const json::Array* array = value.if_array();
    if (array == nullptr || array->empty() || !array->front().is_array()) return AddIds(value);
    request_.is_batch = true;
    for (const json::Value& entry : *array) TESSERA_RETURN_IF_ERROR(AddIds(entry));
    return {};
  }

  Status ReadAllSampling(const json::Value* value) {
    static const json::Value kNone = json::Object();
    if (value == nullptr) value = &kNone;
    const json::Array* array = value->if_array();
    if (array != nullptr && array->size() != request_.prompts.size())
      return InvalidArgument(fmt::format("sampling_params has {} entries for {} prompts",
                                         array->size(), request_.prompts.size()));
    for (size_t i = 0; i < request_.prompts.size(); ++i) {
      const json::Value& entry = array != nullptr ? (*array)[i] : *value;
      if (!entry.is_object())
        return OutOfPlace("sampling_params", "an object or an array of objects");
      if (array != nullptr || i == 0)
        WarnUnknown(entry.get_object(), kSamplingFields, &request_.warnings);
      TESSERA_RETURN_IF_ERROR(ReadSampling(entry.get_object(), model_, &request_.prompts[i]));
    }
    return {};
  }

  Status ReadRids(const json::Value* value) {
    const json::Array* array = value != nullptr ? value->if_array() : nullptr;
    if (array != nullptr && array->size() != request_.prompts.size())
      return InvalidArgument(
          fmt::format("rid has {} entries for {} prompts", array->size(), request_.prompts.size()));
    for (size_t i = 0; i < request_.prompts.size(); ++i) {
      std::string& rid = request_.prompts[i].rid;
      if (value == nullptr) {
        rid = fmt::format("{:016x}{:016x}", SystemRandom64(), SystemRandom64());
        continue;
      }
      const json::Value& entry = array != nullptr ? (*array)[i] : *value;
      if (!entry.is_string() || (array == nullptr && request_.is_batch))
        return OutOfPlace("rid", "a string, or an array with one for each prompt of a batch");
      rid = std::string(entry.get_string());
    }
    return {};
  }

  Status CheckBeams() const {
    size_t answers = 0;
    for (const GeneratePrompt& prompt : request_.prompts) {
      answers += static_cast<size_t>(prompt.num_beams);
      if (prompt.num_beams > 1 && request_.stream)
        return InvalidArgument(
            "beams are known at the end: stream and num_beams cannot go together");
    }
    if (answers > kChoicesMax)
      return InvalidArgument(
          fmt::format("{} beams of all prompts, expected at most {}", answers, kChoicesMax));
    return {};
  }

  Status CheckLengths() {
    for (GeneratePrompt& prompt : request_.prompts) {
      const auto length = static_cast<int64_t>(prompt.ids.size());
      if (length == 0) return InvalidArgument("a prompt has no tokens");
      std::optional<int64_t> wanted;
      if (prompt.max_tokens > 0) wanted = prompt.max_tokens;
      if (const auto error = openai::CheckLength(length, wanted, max_model_len_, "the prompt"))
        return InvalidArgument(error->message);
      prompt.max_tokens =
          wanted.value_or(std::min(kMaxCompletionTokensDefault, max_model_len_ - length));
    }
    return {};
  }

  const ServedModel& model_;
  const int64_t max_model_len_;
  GenerateRequest request_;
};

}  // namespace

Result<GenerateRequest> ReadGenerateRequest(std::string_view body, const ServedModel& model,
                                            int64_t max_model_len) {
  json::Limits limits;
  limits.max_depth = kJsonDepthMax;
  limits.max_keys = kJsonKeysMax;
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, json::Parse(body, limits, "request body"));
  if (!value.is_object()) return Fail(InvalidArgument("the request body is no JSON object"));
  return Reader(model, max_model_len).Read(value.get_object());
}

}  // namespace tessera::server::shortfin
