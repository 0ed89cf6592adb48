// SPDX-License-Identifier: Apache-2.0
//
// Admission: what a caller's key means for a call that generates: whose share of the engine it
// takes, its priority, its tokens. Any thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "server/access/caller.h"
#include "server/generation.h"

namespace tessera::server {

/// Makes the choices the caller's. Takes their prompts' tokens and one of its places, and puts
/// something before `listener` that charges what is generated and gives the place back just before
/// the answer ends; all of it at once if the listener never hears anything. On a refusal nothing
/// was taken and the listener is as it was.
std::optional<Refusal> AdmitChoices(const Caller& caller, std::vector<ChoiceSpec>* choices,
                                    std::unique_ptr<GenerationListener>* listener);

}  // namespace tessera::server
