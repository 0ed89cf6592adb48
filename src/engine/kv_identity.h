// SPDX-License-Identifier: Apache-2.0
//
// What decides the bytes of a KV page beside its tokens, as one name. Pages under another name are
// another's, whatever they say.
#pragma once

#include <string_view>

#include "base/status.h"
#include "engine/page_hash.h"
#include "runtime/session.h"

namespace tessera::engine {

/// Of this model (program and parameters, by their hashes, and the version that runs them) in this
/// session. Numbers that people keep up to date are not trusted alone: a few pages are computed,
/// and their bytes are part of the name. Before the session is given to an engine: it writes to the
/// first pages. kFailedPrecondition for a session that does not give its pages' bytes, else the
/// error of the step.
Result<PageHash> KvIdentity(std::string_view model, runtime::Session* session);

}  // namespace tessera::engine
