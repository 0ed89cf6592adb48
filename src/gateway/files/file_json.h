// SPDX-License-Identifier: Apache-2.0
//
// A file's record as both APIs show it: `size` of llm-engine, `object`, `bytes`, `created_at` and
// `purpose` of OpenAI. Pure.
#pragma once

#include "base/json.h"
#include "gateway/store/records.h"

namespace tessera::gateway {

json::Object FileJson(const FileRecord& record);

}  // namespace tessera::gateway
