// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the body of a completion, an embedding, a chat or a tokenise request: a value or an
// ApiError with a 4xx status, never a crash. Accepted requests must be ones the engine can judge.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "engine/engine_core.h"
#include "server/openai/chat_request.h"
#include "server/openai/completion_request.h"
#include "server/openai/embeddings.h"
#include "support/fake_model.h"

namespace {

namespace engine = tessera::engine;
namespace json = tessera::json;
namespace openai = tessera::server::openai;
using tessera::server::ServedModel;
using tessera::text::SpecialTokens;

struct NoSink : engine::Sink {
  void OnToken(engine::TokenOutput) override {}
  void OnFinish(engine::Finish) override {}
};

void CheckFields(const openai::GenerationFields& fields, const ServedModel& model) {
  engine::Request request;
  request.prompt = {1};
  request.sampling = fields.sampling;
  request.stop = openai::MakeStopParams(fields, model, fields.max_tokens.value_or(1));
  request.stop.min_tokens = 0;
  request.stop.max_tokens = 1;
  request.top_logprobs = fields.top_logprobs;
  request.prompt_logprobs = fields.prompt_logprobs;
  request.beams = fields.beams;
  request.sink = std::make_shared<NoSink>();
  tessera::runtime::ModelShape shape;
  shape.vocab_size = model.tokenizer->vocab_size();
  shape.max_seq_len = 16;
  shape.page_tokens = 16;
  shape.page_count = 1;
  // What the dialect lets through, the engine accepts: their ranges agree.
  TESSERA_CHECK(engine::CheckRequest(request, shape).ok());
}

void CheckError(const openai::ApiError& error) {
  TESSERA_CHECK(error.http_status >= 400 && error.http_status < 500);
  TESSERA_CHECK(!error.message.empty());
  (void)json::Serialize(ErrorBody(error));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ServedModel model = tessera::testing::FakeServedModel();
  static const SpecialTokens specials(*model.tokenizer);
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto completion = openai::ReadCompletionRequest(body, model);
  if (completion.has_value()) {
    CheckFields(completion->fields, model);
  } else {
    CheckError(completion.error());
  }
  const auto chat = openai::ReadChatRequest(body, model, specials, 0);
  if (chat.has_value()) {
    CheckFields(chat->fields, model);
  } else {
    CheckError(chat.error());
  }
  constexpr int64_t kHiddenSize = 8;
  const auto embedding = openai::ReadEmbeddingRequest(body, model, kHiddenSize);
  if (embedding.has_value()) {
    TESSERA_CHECK(!embedding->inputs.empty());
    TESSERA_CHECK(embedding->dimensions >= 1 && embedding->dimensions <= kHiddenSize);
  } else {
    CheckError(embedding.error());
  }
  return 0;
}
