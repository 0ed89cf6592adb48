// SPDX-License-Identifier: Apache-2.0
//
// A batch as its callers see it: llm-engine's job object with counts, and OpenAI's batch. Pure.
#pragma once

#include "base/json.h"
#include "gateway/batch/batch_folder.h"
#include "gateway/batch/batch_record.h"

namespace tessera::gateway {

json::Object BatchJobJson(const BatchRecord& record);
json::Object OpenAiBatchJson(const BatchRecord& record);

/// {row, status, output} or {row, status, error}.
json::Object RowResultJson(const RowResult& result);

}  // namespace tessera::gateway
