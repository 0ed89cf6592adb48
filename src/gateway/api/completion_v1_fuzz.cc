// SPDX-License-Identifier: Apache-2.0
//
// Any body of a completion, and any answer or event of a worker to it: what is accepted becomes a
// body for the worker that names the endpoint; answers and chunks are JSON, each chunk on one line.
// The input is the caller's body, a NUL byte, and what the worker says.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "gateway/api/completion_v1.h"

namespace {

namespace json = tessera::json;
using tessera::gateway::AskedCompletion;
using tessera::gateway::CompletionAnswer;
using tessera::gateway::CompletionChunks;
using tessera::gateway::ReadCompletion;

void CheckChunk(std::string_view chunk) {
  TESSERA_CHECK(chunk.find_first_of("\r\n") == std::string_view::npos);
  TESSERA_CHECK(json::Parse(chunk, {}, "chunk").has_value());
}

void CheckAnswers(const AskedCompletion& asked, std::string_view worker) {
  TESSERA_CHECK(asked.body.at("model") == json::Value("e"));
  TESSERA_CHECK(asked.body.contains("prompt") && asked.body.contains("max_tokens"));
  const auto answer = CompletionAnswer(asked, worker, "id");
  if (answer.has_value()) TESSERA_CHECK(json::Parse(json::Serialize(*answer), {}, "").has_value());
  CompletionChunks chunks(asked, "id");
  for (int times = 0; times < 2; ++times) {  // The second time after an end, maybe.
    const auto fed = chunks.Feed(worker);
    if (!fed.has_value()) break;
    for (const std::string& chunk : *fed) CheckChunk(chunk);
  }
  CheckChunk(chunks.ErrorChunk(500, "broken\noff"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\0');
  const auto body = json::Parse(text.substr(0, end), {}, "fuzz");
  if (!body.has_value() || !body->is_object()) return 0;
  const std::string_view worker =
      end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  for (const bool is_stream : {false, true}) {
    const auto asked = ReadCompletion(body->get_object(), "e", is_stream);
    if (asked.has_value()) {
      CheckAnswers(*asked, worker);
    } else {
      TESSERA_CHECK(asked.error().status == 400 || asked.error().status == 422);
    }
  }
  return 0;
}
