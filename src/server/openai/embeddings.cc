// SPDX-License-Identifier: Apache-2.0
#include "server/openai/embeddings.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "server/generation.h"
#include "server/openai/answer.h"
#include "server/openai/choices.h"
#include "server/start_generation.h"

namespace tessera::server::openai {
namespace {

std::string Base64(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  const size_t size = values.size() * sizeof(float);
  std::string text;
  text.reserve((size + 2) / 3 * 4);
  for (size_t at = 0; at < size; at += 3) {
    const size_t count = std::min<size_t>(3, size - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? bytes[at + i] : 0u);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

json::Value EmbeddingBody(const std::vector<float>& values, bool is_base64) {
  if (is_base64) return json::Value(Base64(values));
  json::Array array;
  array.reserve(values.size());
  for (const float value : values) array.emplace_back(static_cast<double>(value));
  return array;
}

class Responder : public GenerationListener {
 public:
  Responder(EmbeddingRequest request, std::string model, int64_t prompt_tokens, Reply reply)
      : request_(std::move(request)),
        model_(std::move(model)),
        prompt_tokens_(prompt_tokens),
        reply_(std::move(reply)),
        vectors_(request_.inputs.size()) {}

  void OnEmbedding(size_t choice, std::vector<float> pooled) override {
    vectors_[choice] = FinishEmbedding(std::move(pooled), request_);
  }
  void OnDelta(size_t, engine::OutputDelta) override {}
  void OnChoiceEnd(size_t, engine::FinishReason) override {}
  void OnDone(const GenerationTotals& totals) override {
    json::Array data;
    for (size_t i = 0; i < vectors_.size(); ++i) {
      json::Object entry{{"object", "embedding"}, {"index", i}};
      entry["embedding"] = EmbeddingBody(vectors_[i], request_.is_base64);
      data.push_back(std::move(entry));
    }
    json::Object body{{"object", "list"}, {"data", std::move(data)}, {"model", model_}};
    body["usage"] = {{"prompt_tokens", prompt_tokens_},
                     {"total_tokens", prompt_tokens_},
                     {"prompt_tokens_details", {{"cached_tokens", totals.cached_tokens}}}};
    if (!request_.warnings.empty()) body["warnings"] = WarningsBody(request_.warnings);
    // A peer that went away meanwhile needs no answer.
    (void)reply_.Send(net::Response::Json(200, json::Serialize(body)));
  }
  void OnError(const Status& status) override {
    (void)reply_.Send(ErrorResponse(FromStatus(status)));
  }

 private:
  const EmbeddingRequest request_;
  const std::string model_;
  const int64_t prompt_tokens_;
  const Reply reply_;
  std::vector<std::vector<float>> vectors_;
};

/// One of a few words.
ApiResult<size_t> ReadWord(const json::Object& body, std::string_view name,
                           std::initializer_list<std::string_view> words) {
  const json::Value* value = json::Find(body, name);
  if (value == nullptr) return size_t{0};
  const auto found = std::ranges::find(words, std::string_view(value->get_string()));
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  return std::unexpected(
      BadField(name, fmt::format("{} is \"{:.50}\", expected one of {}", name,
                                 std::string_view(value->get_string()), fmt::join(words, ", "))));
}

}  // namespace

ApiResult<EmbeddingRequest> ReadEmbeddingRequest(std::string_view body, const ServedModel& model,
                                                 int64_t hidden_size) {
  auto checked = ReadBody(body, RequestFields(), kEmbeddings, /*needs_model=*/true, model);
  if (!checked.has_value()) return std::unexpected(std::move(checked).error());
  const json::Object& object = checked->body;
  EmbeddingRequest request;
  request.warnings = std::move(checked->warnings);
  const json::Value* input = json::Find(object, "input");
  if (input == nullptr) return std::unexpected(BadField("input", "the field input is missing"));
  auto inputs = ReadPrompts(*input, model, BoolOr(object, "add_special_tokens", true), "input");
  if (!inputs.has_value()) return std::unexpected(std::move(inputs).error());
  request.inputs = *std::move(inputs);
  const auto pooling = ReadWord(object, "pooling", {"mean", "last"});
  if (!pooling.has_value()) return std::unexpected(pooling.error());
  request.pooling = *pooling == 0 ? engine::Pooling::kMean : engine::Pooling::kLast;
  const auto format = ReadWord(object, "encoding_format", {"float", "base64"});
  if (!format.has_value()) return std::unexpected(format.error());
  request.is_base64 = *format == 1;
  request.is_normalized = BoolOr(object, "normalize", true);
  request.cache_prompt = BoolOr(object, "cache_prompt", true);
  request.dimensions = IntegerOr(object, "dimensions", hidden_size);
  if (request.dimensions > hidden_size)
    return std::unexpected(
        BadField("dimensions", fmt::format("dimensions is {}, expected 1 to {}, what the model has",
                                           request.dimensions, hidden_size)));
  if (auto error = RefuseIfStrict(object, request.warnings))
    return std::unexpected(*std::move(error));
  return request;
}

std::vector<float> FinishEmbedding(std::vector<float> pooled, const EmbeddingRequest& request) {
  TESSERA_CHECK(std::ssize(pooled) >= request.dimensions);
  pooled.resize(static_cast<size_t>(request.dimensions));
  if (!request.is_normalized) return pooled;
  double squares = 0;
  for (const float value : pooled) squares += static_cast<double>(value) * value;
  if (squares == 0) return pooled;
  const double length = std::sqrt(squares);
  for (float& value : pooled) value = static_cast<float>(value / length);
  return pooled;
}

void HandleEmbeddings(const Context& context, const net::Request& request, const Reply& reply) {
  const TimePoint arrival = context.clock->Now();
  const auto refuse = [&](const ApiError& error) { (void)reply.Send(ErrorResponse(error)); };
  const int64_t hidden_size = context.engine->shape().hidden_size;
  auto parsed = ReadEmbeddingRequest(request.body, context.model, hidden_size);
  if (!parsed.has_value()) return refuse(parsed.error());
  context.warnings->Add(parsed->warnings);
  std::vector<ChoiceSpec> choices;
  int64_t prompt_tokens = 0;
  for (size_t i = 0; i < parsed->inputs.size(); ++i) {
    const std::vector<engine::TokenId>& ids = parsed->inputs[i]->ids;
    if (const auto error =
            CheckLength(Length(ids), std::nullopt, context.engine->max_sequence_tokens(), "input"))
      return refuse(*error);
    prompt_tokens += Length(ids);
    engine::Request task;
    task.prompt = ids;
    task.stop.max_tokens = 0;
    task.pooling = parsed->pooling;
    task.cache_prompt = parsed->cache_prompt;
    task.arrival = arrival;
    auto processor = std::make_unique<engine::OutputProcessor>(
        context.model.make_detokenizer(/*skip_special=*/true), engine::OutputOptions{},
        std::span<const engine::TokenId>());
    choices.push_back({std::move(task), std::move(processor), i});
  }
  auto responder =
      std::make_unique<Responder>(*std::move(parsed), context.model.id, prompt_tokens, reply);
  if (const auto error = StartGeneration(context, reply, {MakeId("embd-")}, std::move(choices),
                                         std::move(responder), /*stream=*/nullptr))
    refuse(*error);
}

}  // namespace tessera::server::openai
