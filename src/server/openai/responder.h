// SPDX-License-Identifier: Apache-2.0
//
// Responder: writes an Answer to the client as the generation goes on: one body at the end, or
// server-sent events. Lives on the task thread.
#pragma once

#include <memory>

#include "server/event_stream.h"
#include "server/generation.h"
#include "server/openai/answer.h"
#include "server/reply.h"

namespace tessera::server::openai {

/// One JSON body when all choices are done. Errors become error objects with their status.
std::unique_ptr<GenerationListener> MakeWholeResponder(std::unique_ptr<Answer> answer,
                                                       int64_t prompt_tokens, Reply reply);
/// Events, then "data: [DONE]". Errors after the head of the stream was sent are an event.
std::unique_ptr<GenerationListener> MakeStreamResponder(std::unique_ptr<Answer> answer,
                                                        int64_t prompt_tokens, size_t choices,
                                                        std::shared_ptr<EventStream> stream);

}  // namespace tessera::server::openai
