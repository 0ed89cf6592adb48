// SPDX-License-Identifier: Apache-2.0
#include "gateway/store/database.h"

namespace tessera::gateway {

Status Statement::Run() {
  Result<bool> row = Next();
  while (row.has_value() && *row) row = Next();
  return StatusOf(row);
}

}  // namespace tessera::gateway
