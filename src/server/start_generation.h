// SPDX-License-Identifier: Apache-2.0
//
// StartGeneration: the step every dialect takes once it knows what to generate. It applies what the
// caller's key allows, submits the choices, makes them known to DELETE /v1/requests under the
// answer's id and the X-Request-Id, and ends them when the client goes away (for good, where the
// stream has a journal). Any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/context.h"
#include "server/generation.h"
#include "server/openai/error.h"
#include "server/reply.h"

namespace tessera::server {

class EventStream;

/// `ids`: what the answer calls itself. `stream`: kept alive by comments from now on; may be null.
/// On error nothing was submitted, the listener hears nothing and the caller answers.
std::optional<openai::ApiError> StartGeneration(const Context& context, const Reply& reply,
                                                std::vector<std::string> ids,
                                                std::vector<ChoiceSpec> choices,
                                                std::unique_ptr<GenerationListener> listener,
                                                const std::shared_ptr<EventStream>& stream);

}  // namespace tessera::server
