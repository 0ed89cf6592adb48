// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/check.h"
#include "engine/engine_core.h"

namespace tessera::engine {

void EngineCore::CheckIntegrity() const {
  cache_.CheckIntegrity();
  std::vector<int32_t> users(static_cast<size_t>(pool_.total()), 0);
  std::vector<bool> is_written(users.size(), false);  // By its only user, behind what is stored.
  int64_t running = 0;
  for (const auto& sequence : sequences_) {
    TESSERA_CHECK(sequence != nullptr);
    const SequencePages& pages = sequence->pages;
    running += sequence->is_running ? 1 : 0;
    if (!sequence->is_running) TESSERA_CHECK(pages.ids.empty() && sequence->computed == 0);
    const int64_t tokens = std::ssize(sequence->tokens);
    TESSERA_CHECK(sequence->computed >= 0 &&
                  sequence->computed < tokens + (sequence->report.has_value() ? 1 : 0));
    TESSERA_CHECK(std::ssize(pages.ids) * shape_.page_tokens >= sequence->computed);
    TESSERA_CHECK(pages.stored * shape_.page_tokens <= sequence->computed);
    for (size_t i = 0; i < pages.ids.size(); ++i) {
      const auto page = static_cast<size_t>(pages.ids[i]);
      ++users[page];
      if (std::cmp_greater_equal(i, pages.stored)) is_written[page] = true;
    }
  }
  for (size_t page = 0; page < users.size(); ++page) {
    TESSERA_CHECK(users[page] == pool_.users()[page]);
    if (is_written[page]) TESSERA_CHECK(users[page] == 1);
  }
  TESSERA_CHECK(running <= options_.max_running);
}

}  // namespace tessera::engine
