// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/embeddings: the model's last hidden states of each input, pooled to one vector, as
// numbers or as base64 of little-endian float32. The call parses on the caller's thread, submits
// and returns; the answer follows on the task thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/http.h"
#include "server/context.h"
#include "server/openai/completion_request.h"
#include "server/reply.h"

namespace tessera::server::openai {

struct EmbeddingRequest {
  std::vector<std::shared_ptr<const Prompt>> inputs;
  engine::Pooling pooling = engine::Pooling::kMean;
  int64_t dimensions = 0;  // 1 to the model's.
  bool is_normalized = true;
  bool is_base64 = false;
  bool cache_prompt = true;
  std::vector<Warning> warnings;
};

/// A pure function of body and model. `hidden_size`: of the model.
ApiResult<EmbeddingRequest> ReadEmbeddingRequest(std::string_view body, const ServedModel& model,
                                                 int64_t hidden_size);

/// The first `dimensions` values, of length 1 if asked for. A vector of zeros stays one.
std::vector<float> FinishEmbedding(std::vector<float> pooled, const EmbeddingRequest& request);

void HandleEmbeddings(const Context& context, const net::Request& request, const Reply& reply);

}  // namespace tessera::server::openai
