// SPDX-License-Identifier: Apache-2.0
//
// From a checked request to a batch on the disk: who answers it, where its rows come from, where
// its output goes.
#pragma once

#include "gateway/batch/batch_api.h"
#include "gateway/batch/batch_request.h"

namespace tessera::gateway {

/// Of llm-engine's request.
ApiResult<BatchRecord> MakeBatch(const BatchServices& services, const json::Object& body,
                                 BatchVersion version, const std::string& user);
/// Of OpenAI's.
ApiResult<BatchRecord> MakeOpenAiBatch(const BatchServices& services, const json::Object& body,
                                       const std::string& user);

}  // namespace tessera::gateway
