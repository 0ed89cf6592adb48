// SPDX-License-Identifier: Apache-2.0
//
// BatchRecord: a batch as it is stored and shown. Plain values. Times are Unix seconds, UTC; 0: not
// yet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace tessera::gateway {

enum class BatchStatus : uint8_t { kQueued, kRunning, kCompleted, kFailed, kCancelled };

/// "queued", "running", "completed", "failed", "cancelled".
std::string_view BatchStatusName(BatchStatus status);

/// How results are written.
enum class BatchForm : uint8_t {
  kPrompts,   // A list of llm-engine's CompletionOutput.
  kRequests,  // A list of OpenAI's objects.
  kLines,     // OpenAI's batch files: a line for each row that succeeded, and one file of errors.
};

struct BatchRecord {
  std::string id;  // "batch-...".
  std::string owner;
  BatchForm form = BatchForm::kPrompts;
  BatchStatus status = BatchStatus::kQueued;
  std::string reason = "waiting for its turn";  // Of the status; one sentence.
  bool is_cancelling = false;                   // Asked for; its open rows are being ended.
  bool is_expired = false;                      // Failed for having run too long.

  std::string model;             // model_config.model, or of OpenAI's rows.
  std::string endpoint;          // Existing one that answers; empty: a temporary one, named `id`.
  json::Object endpoint_body{};  // What the temporary one is created with.
  json::Object model_config{};   // As asked, for showing it.
  json::Object metadata{};       // Texts.
  json::Array warnings{};        // What is done differently than asked, one sentence each.
  bool wants_tokens = false;     // Of kPrompts: with each token and its log-probability.
  int64_t data_parallelism = 1;
  int64_t max_runtime_s = 86400;
  std::string priority{};  // As asked; empty: none. See BatchRank.

  std::string input_path{};      // As asked: a path or the id of a file; empty: in the request.
  std::string output_path{};     // As asked.
  std::string output_file_id{};  // Chosen before it is written, so that it is written once.
  std::string error_file_id{};
  std::string target{};  // Of kLines: "/v1/chat/completions".

  int64_t rows = 0, completed = 0, failed = 0;
  int64_t created_at = 0, started_at = 0, completed_at = 0;

  bool is_over() const { return status != BatchStatus::kQueued && status != BatchStatus::kRunning; }
  int64_t expires_at() const { return (started_at > 0 ? started_at : created_at) + max_runtime_s; }
  std::string endpoint_name() const { return endpoint.empty() ? id : endpoint; }

  bool operator==(const BatchRecord&) const = default;
};

/// Those with a larger one go first: "high" is 1, "normal" and none 0, "low" -1, else a whole
/// number from -1000 to 1000. kInvalidArgument for all else.
Result<int64_t> BatchRank(std::string_view priority);

json::Object WriteBatch(const BatchRecord& record);
/// What WriteBatch wrote. kDataLoss for all else.
Result<BatchRecord> ReadBatch(const json::Object& stored);

}  // namespace tessera::gateway
