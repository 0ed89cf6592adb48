// SPDX-License-Identifier: Apache-2.0
#include "gateway/openapi/operations.h"

namespace tessera::gateway::openapi {
namespace {

// clang-format off
constexpr Operation kOperations[] = {
    {"GET", "/healthcheck", "Whether the gateway answers.", Body::kNone, "", "Health", "", false},
    {"GET", "/healthz", "Whether the gateway answers.", Body::kNone, "", "Health", "", false},
    {"GET", "/readyz", "Whether the gateway answers.", Body::kNone, "", "Health", "", false},
    {"GET", "/livez", "Whether the gateway answers.", Body::kNone, "", "Health", "", false},
    {"GET", "/openapi.json", "This document.", Body::kNone, "", "", "", false},
    {"GET", "/docs", "This document for people.", Body::kNone, "", "text/html", "", false},
    {"POST", "/v1/llm/model-endpoints", "Create an endpoint.", Body::kCreate, "", "Accepted"},
    {"GET", "/v1/llm/model-endpoints", "Endpoints that the caller may use.", Body::kNone, "name order_by limit after", "EndpointList"},
    {"GET", "/v1/llm/model-endpoints/{name}", "One endpoint: what is wanted and what is.", Body::kNone, "", "Endpoint"},
    {"PUT", "/v1/llm/model-endpoints/{name}", "Change fields of an endpoint; running calls are not disturbed.", Body::kUpdate, "", "Accepted"},
    {"DELETE", "/v1/llm/model-endpoints/{name}", "Remove an endpoint; its running calls are finished.", Body::kNone, "", "Deleted"},
    {"POST", "/v1/llm/model-endpoints/{name}/restart", "New workers in place of those there are.", Body::kNone, "", "Restarted"},
    {"GET", "/v1/llm/model-endpoints/{name}/workers", "Its worker processes.", Body::kNone, "", "WorkerList"},
    {"GET", "/v1/llm/model-endpoints/{name}/events", "What happened to it.", Body::kNone, "after_event limit", "EventList"},
    {"GET", "/v1/llm/model-endpoints/{name}/logs", "The last bytes that its workers wrote to stderr.", Body::kNone, "", "LogList"},
    {"POST", "/v1/llm/model-endpoints/download", "Addresses of the files of an endpoint's model (docs/batches.md).", Body::kObject},
    {"GET", "/v1/llm/model-files/{id}/{token}/{file...}", "One of these files; its address is the login.", Body::kNone, "", "bytes", "", false},
    {"POST", "/v1/llm/completions-sync", "A completion, whole.", Body::kCompletion, "model_endpoint_name*", "Completion"},
    {"POST", "/v1/llm/completions-stream", "A completion, as it is generated.", Body::kCompletion, "model_endpoint_name*", "", "CompletionChunk"},
    {"POST", "/v1/chat/completions", "OpenAI's chat; `model` is an endpoint.", Body::kOpenAi},
    {"POST", "/v1/completions", "OpenAI's completions; `model` is an endpoint.", Body::kOpenAi},
    {"POST", "/v1/embeddings", "OpenAI's embeddings; `model` is an endpoint.", Body::kOpenAi},
    {"GET", "/v1/models", "Endpoints in OpenAI's form.", Body::kNone, "", "ModelList"},
    {"POST", "/v2/chat/completions", "As /v1/chat/completions.", Body::kOpenAi},
    {"POST", "/v2/completions", "As /v1/completions.", Body::kOpenAi},
    {"POST", "/v2/embeddings", "As /v1/embeddings.", Body::kOpenAi},
    {"GET", "/v2/models", "As /v1/models.", Body::kNone, "", "ModelList"},
    {"POST", "/v1/files", "Upload a file.", Body::kForm, "", "File"},
    {"GET", "/v1/files", "The caller's files.", Body::kNone, "purpose order limit after_file", "FileList"},
    {"GET", "/v1/files/{id}", "One file.", Body::kNone, "", "File"},
    {"DELETE", "/v1/files/{id}", "Remove a file.", Body::kNone, "", "FileDeleted"},
    {"GET", "/v1/files/{id}/content", "Its text as JSON, or its bytes (docs/batches.md).", Body::kNone, "raw", "FileContent"},
    {"POST", "/v2/files", "Upload a file.", Body::kForm, "", "File"},
    {"GET", "/v2/files", "The caller's files.", Body::kNone, "purpose order limit after_file", "FileList"},
    {"GET", "/v2/files/{id}", "One file.", Body::kNone, "", "File"},
    {"DELETE", "/v2/files/{id}", "Remove a file.", Body::kNone, "", "FileDeleted"},
    {"GET", "/v2/files/{id}/content", "Its text as JSON, or its bytes (docs/batches.md).", Body::kNone, "raw", "FileContent"},
    {"POST", "/v1/llm/batch-completions", "A batch, llm-engine's first form (docs/batches.md).", Body::kObject},
    {"POST", "/v2/batch-completions", "A batch, llm-engine's second form (docs/batches.md).", Body::kObject, "", "BatchJob"},
    {"GET", "/v2/batch-completions", "The caller's batches."},
    {"GET", "/v2/batch-completions/{id}", "One batch: its state and counts."},
    {"POST", "/v2/batch-completions/{id}", "Change the priority of a batch.", Body::kObject},
    {"DELETE", "/v2/batch-completions/{id}", "Remove a batch that is over."},
    {"GET", "/v2/batch-completions/{id}/results", "Results and errors, row by row."},
    {"POST", "/v2/batch-completions/{id}/actions/cancel", "Stop a batch; what is done stays."},
    {"POST", "/v1/batches", "A batch in OpenAI's form.", Body::kObject, "", "Batch"},
    {"GET", "/v1/batches", "The caller's batches in OpenAI's form."},
    {"GET", "/v1/batches/{id}", "One batch in OpenAI's form.", Body::kNone, "", "Batch"},
    {"POST", "/v1/batches/{id}/cancel", "Stop a batch; what is done stays.", Body::kNone, "", "Batch"},
    {"POST", "/v2/batches", "A batch in OpenAI's form.", Body::kObject, "", "Batch"},
    {"GET", "/v2/batches", "The caller's batches in OpenAI's form."},
    {"GET", "/v2/batches/{id}", "One batch in OpenAI's form.", Body::kNone, "", "Batch"},
    {"POST", "/v2/batches/{id}/cancel", "Stop a batch; what is done stays.", Body::kNone, "", "Batch"},
    {"GET", "/v1/llm/fine-tunes", "None: fine-tuning is not offered.", Body::kNone, "", "FineTuneList"},
    {"POST", "/v1/llm/fine-tunes", "Refused with 501."},
    {"GET", "/v1/llm/fine-tunes/{id}", "Not found: there are none."},
    {"PUT", "/v1/llm/fine-tunes/{id}/cancel", "Not found: there are none."},
    {"GET", "/v1/llm/fine-tunes/{id}/events", "Not found: there are none."},
};
// clang-format on

}  // namespace

std::span<const Operation> Operations() {
  return kOperations;
}

}  // namespace tessera::gateway::openapi
