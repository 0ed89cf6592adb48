// SPDX-License-Identifier: Apache-2.0
#include "server/openapi/operations.h"

#include "server/anthropic/fields.h"
#include "server/operate/fields.h"
#include "server/responses/fields.h"
#include "server/shortfin/fields.h"

namespace tessera::server::openapi {
namespace {

using anthropic::MessageFields;
using openai::RequestFields;
using operate::AdminFields;
using responses::ResponseFields;
using shortfin::GenerateFields;

// clang-format off
constexpr Operation kOperations[] = {
    {.method = "GET", .pattern = "/health", .summary = "Whether requests are taken.", .needs_key = false, .error = "Error"},
    {.method = "GET", .pattern = "/readyz", .summary = "Whether the model makes tokens.", .needs_key = false, .error = "Error"},
    {.method = "GET", .pattern = "/livez", .summary = "Whether the process answers.", .needs_key = false, .error = "Error"},
    {.method = "GET", .pattern = "/version", .summary = "Version and model.", .needs_key = false, .answer = "Version", .error = "Error"},
    {.method = "GET", .pattern = "/metrics", .summary = "Prometheus page.", .answer = "text", .error = "Error"},
    {.method = "GET", .pattern = "/openapi.json", .summary = "This document.", .needs_key = false, .answer = "OpenApi", .error = "Error"},
    {.method = "GET", .pattern = "/v1/models", .summary = "The models served here.", .answer = "ModelList", .error = "Error"},
    {.method = "GET", .pattern = "/v1/models/{id...}", .summary = "One model's card.", .answer = "Model", .error = "Error"},
    {.method = "POST", .pattern = "/v1/completions", .summary = "Goes on with a text.", .fields = RequestFields, .api = openai::kCompletions, .required = "model prompt", .answer = "Completion", .event = "CompletionChunk", .error = "Error"},
    {.method = "POST", .pattern = "/v1/chat/completions", .summary = "Answers a conversation.", .fields = RequestFields, .api = openai::kChat, .required = "model messages", .answer = "ChatCompletion", .event = "ChatCompletionChunk", .error = "Error"},
    {.method = "POST", .pattern = "/v1/embeddings", .summary = "Texts as vectors.", .fields = RequestFields, .api = openai::kEmbeddings, .required = "model input", .answer = "Embeddings", .error = "Error"},
    {.method = "POST", .pattern = "/v1/messages", .summary = "Answers a conversation, as the Messages API.", .fields = MessageFields, .api = anthropic::kMessages, .required = "model messages max_tokens", .answer = "Message", .event = "MessageEvent", .error = "MessageError"},
    {.method = "POST", .pattern = "/v1/messages/count_tokens", .summary = "Tokens of a conversation.", .fields = MessageFields, .api = anthropic::kCountTokens, .required = "model messages", .answer = "TokenCount", .error = "MessageError"},
    {.method = "POST", .pattern = "/v1/responses", .summary = "Answers a conversation, as the Responses API, without a store.", .fields = ResponseFields, .api = responses::kResponses, .required = "model input", .answer = "Response", .event = "ResponseEvent", .error = "Error"},
    {.method = "POST", .pattern = "/tokenize", .summary = "Text or a conversation as token ids.", .fields = RequestFields, .api = openai::kTokenize, .answer = "Tokens", .error = "Error"},
    {.method = "POST", .pattern = "/detokenize", .summary = "Token ids as text.", .fields = RequestFields, .api = openai::kDetokenize, .required = "tokens", .answer = "Prompt", .error = "Error"},
    {.method = "GET", .pattern = "/tokenizer_info", .summary = "Special tokens and the chat template.", .answer = "TokenizerInfo", .error = "Error"},
    {.method = "POST", .pattern = "/apply-template", .summary = "A conversation as the chat template writes it.", .fields = RequestFields, .api = openai::kApplyTemplate, .required = "messages", .answer = "Prompt", .error = "Error"},
    {.method = "DELETE", .pattern = "/v1/requests/{id...}", .summary = "Ends an open request.", .answer = "CancelledRequest", .error = "Error"},
    {.method = "GET", .pattern = "/admin/stats", .summary = "Engine, queue, KV pages, connections, keys.", .answer = "Stats", .error = "Error"},
    {.method = "POST", .pattern = "/admin/drain", .summary = "Takes no more requests and waits for the running ones.", .fields = AdminFields, .api = operate::kDrain, .required = "confirm", .answer = "Drained", .error = "Error"},
    {.method = "POST", .pattern = "/admin/reload", .summary = "Reads the key file and certificates again.", .answer = "Reloaded", .error = "Error"},
    {.method = "GET", .pattern = "/v1/requests/{id}/events", .summary = "Goes on with a resumable stream, behind Last-Event-ID.", .event = "AnyChunk", .error = "Error"},
    {.method = "POST", .pattern = "/generate", .summary = "The native call of the shortfin LLM server.", .fields = GenerateFields, .api = shortfin::kGenerate, .answer = "Generated", .event = "GeneratedEvent", .error = "GenerateError"},
    {.method = "PUT", .pattern = "/generate", .summary = "The same.", .fields = GenerateFields, .api = shortfin::kGenerate, .answer = "Generated", .event = "GeneratedEvent", .error = "GenerateError"},
};
// clang-format on

}  // namespace

std::span<const Operation> Operations() {
  return kOperations;
}

}  // namespace tessera::server::openapi
