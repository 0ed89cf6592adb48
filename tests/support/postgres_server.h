// SPDX-License-Identifier: Apache-2.0
//
// A PostgreSQL server of the test process, started by the first who asks (postgres_server.sh).
#pragma once

#include <string>
#include <string_view>

namespace tessera::testing {

/// URL of a database on it. "postgres" exists; others are for the test to make. Fails the test and
/// is empty when the server cannot be started.
std::string PostgresUrl(std::string_view database);

}  // namespace tessera::testing
