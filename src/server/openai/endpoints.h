// SPDX-License-Identifier: Apache-2.0
//
// The OpenAI endpoints that generate, and those about tokens and templates. Each call parses on the
// caller's thread (a worker of the HTTP server), submits to the engine and returns; the answer
// follows.
#pragma once

#include <optional>

#include "net/http.h"
#include "server/context.h"
#include "server/openai/error.h"
#include "server/reply.h"

namespace tessera::server::openai {

void HandleCompletions(const Context& context, const net::Request& request, const Reply& reply);
void HandleChat(const Context& context, const net::Request& request, const Reply& reply);

/// {"prompt" | "messages", ...} -> {"count", "max_model_len", "tokens"}.
net::Response HandleTokenize(const Context& context, const net::Request& request);
/// {"tokens"} -> {"prompt"}.
net::Response HandleDetokenize(const Context& context, const net::Request& request);
/// What clients that tokenise by /tokenize ask first: the texts of special tokens, as vLLM has it.
net::Response HandleTokenizerInfo(const Context& context);
/// {"messages", ...} -> {"prompt"}: what the chat template makes of them.
net::Response HandleApplyTemplate(const Context& context, const net::Request& request);

/// 415 unless the body is declared as JSON or not declared at all.
std::optional<ApiError> CheckContentType(const net::Request& request);

}  // namespace tessera::server::openai
