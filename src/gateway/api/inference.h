// SPDX-License-Identifier: Apache-2.0
//
// Calls that generate: llm-engine's completions-sync and -stream, and the OpenAI routes under /v1
// and /v2 with `model` = endpoint name. Handlers return at once; answers come from other threads.
#pragma once

#include "gateway/api/context.h"
#include "net/response_writer.h"

namespace tessera::gateway {

/// POST /v1/llm/completions-sync and -stream?model_endpoint_name=NAME.
void HandleCompletionV1(const Context& context, const net::Request& request,
                        const net::ResponseWriter& writer, bool is_stream);

/// POST of an OpenAI route; `target` is the worker's: "/v1/chat/completions".
void HandleOpenAi(const Context& context, const net::Request& request,
                  const net::ResponseWriter& writer, std::string_view target);

/// GET /v1/models, /v2/models: the endpoints that the caller may use.
void HandleModels(const Context& context, const net::Request& request,
                  const net::ResponseWriter& writer);

}  // namespace tessera::gateway
