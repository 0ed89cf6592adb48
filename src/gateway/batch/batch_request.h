// SPDX-License-Identifier: Apache-2.0
//
// The body of a request for a batch, all but its rows -> a record. Pure functions.
#pragma once

#include "base/json.h"
#include "gateway/batch/batch_record.h"
#include "gateway/spec/read_spec.h"

namespace tessera::gateway {

enum class BatchVersion : uint8_t { kV1, kV2 };

/// llm-engine's envelope. What is of the store, of the machine and of the rows (id, owner,
/// endpoint, form, times, counts) is left as it is. `endpoint_body` is what a temporary endpoint is
/// created with, checked, under the name kBatchEndpointName. 422 names fields, 400 what does not go
/// together or is not offered.
ApiResult<BatchRecord> ReadBatchRequest(const json::Object& body, BatchVersion version);

/// OpenAI's {input_file_id, endpoint, completion_window, metadata}.
ApiResult<BatchRecord> ReadOpenAiBatch(const json::Object& body);

inline constexpr std::string_view kBatchEndpointName = "batch";
/// Calls that a worker of a temporary endpoint has open.
inline constexpr int64_t kBatchRowsPerWorker = 16;

/// "file-...": the id of a file.
bool IsFileId(std::string_view path);
/// "files://NAME": a new file of this name. Its name, empty for all else.
std::string_view NewFileName(std::string_view path);

}  // namespace tessera::gateway
