// SPDX-License-Identifier: Apache-2.0
#include "server/served_model.h"

#include <algorithm>

namespace tessera::server {

bool IsNameOf(const ServedModel& model, std::string_view name) {
  return name == model.id || std::ranges::find(model.aliases, name) != model.aliases.end();
}

}  // namespace tessera::server
