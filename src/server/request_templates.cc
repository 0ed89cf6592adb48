// SPDX-License-Identifier: Apache-2.0
#include "server/request_templates.h"

#include <algorithm>

#include "server/limits.h"

namespace tessera::server {

Result<RequestTemplates::Learnt> RequestTemplates::Get(std::string_view source) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        kept_, [&](const Learnt& learnt) { return learnt.chat_template->source() == source; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front();
    }
  }
  // Without the lock: two requests may learn the same; none waits for another's.
  Learnt learnt;
  TESSERA_ASSIGN_OR_RETURN(learnt.chat_template, text::ChatTemplate::Parse(source));
  TESSERA_ASSIGN_OR_RETURN(
      learnt.format, text::LearnChatFormat(*learnt.chat_template, vars_, end_texts_, options_));
  const std::lock_guard lock(mutex_);
  kept_.push_front(learnt);
  if (kept_.size() > kRequestTemplatesMax) kept_.pop_back();
  return learnt;
}

}  // namespace tessera::server
