// SPDX-License-Identifier: Apache-2.0
//
// The tables of the store, as steps from one version to the next. A step never changes once it was
// released; a new one is added. Private to store/.
#pragma once

#include "base/status.h"
#include "gateway/store/database.h"

namespace tessera::gateway {

/// Brings the database to the newest version, each step in a transaction of its own.
/// kFailedPrecondition when it is newer than this program knows.
Status Migrate(Database* database);

}  // namespace tessera::gateway
