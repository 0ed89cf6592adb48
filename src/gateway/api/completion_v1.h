// SPDX-License-Identifier: Apache-2.0
//
// llm-engine's own completions (`prompt` and, in the earliest form, `prompts`) <-> a worker's
// /v1/completions. Pure functions; the calls are in inference.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "gateway/spec/field_table.h"
#include "gateway/spec/read_spec.h"

namespace tessera::gateway {

struct AskedCompletion {
  json::Object body;      // For the worker.
  bool is_early = false;  // Asked with `prompts`: answered as the first version did.
  bool wants_tokens = false;
  std::string prefix;  // The prompt, or the first of them, for choosing a worker.
};

/// What such a body may hold.
std::span<const Field> CompletionFields();

/// 422 lists fields of the wrong type or range, 400 is about what does not go together.
ApiResult<AskedCompletion> ReadCompletion(const json::Object& body, std::string_view endpoint,
                                          bool is_stream);

/// A worker's whole answer -> {request_id, output}, or {status, outputs, traceback}. kDataLoss
/// when it is none.
Result<json::Object> CompletionAnswer(const AskedCompletion& asked, std::string_view worker_body,
                                      std::string_view request_id);

/// A worker's stream, event by event, -> chunks of ours. Counts are of all tokens so far.
class CompletionChunks {
 public:
  CompletionChunks(AskedCompletion asked, std::string request_id)
      : asked_(std::move(asked)), request_id_(std::move(request_id)) {}

  /// The chunks for one event's data, each JSON on one line; often none or one. An error event of
  /// the worker becomes one of ours.
  Result<std::vector<std::string>> Feed(std::string_view data);
  bool is_finished() const { return is_finished_; }
  /// The chunk for a stream that broke.
  std::string ErrorChunk(int status, std::string_view text);

 private:
  json::Object Output(std::string_view text, const json::Value& token) const;
  std::string Chunk(json::Object output) const;

  const AskedCompletion asked_;
  const std::string request_id_;
  int64_t completion_tokens_ = 0;
  bool is_finished_ = false;
};

/// {"status_code", "content": {"error", "timestamp"}}: how this API reports an error in a stream.
json::Object StreamError(int status, std::string_view text);

}  // namespace tessera::gateway
