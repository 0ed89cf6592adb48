// SPDX-License-Identifier: Apache-2.0
//
// PostgreSQL (libpq) as a Database, for gateways that share state. One of them leads: it holds a
// session's advisory lock, on the very connection that it writes with. When the connection is lost
// so is the lock, and nothing can be written any more without it; so it is never made anew, and
// every call fails with kUnavailable from then on. Private to store/ and lead/.
//
// Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "gateway/store/database.h"

struct pg_conn;

namespace tessera::gateway {

class PostgresDatabase final : public Database {
 public:
  /// `url`: postgres://user:password@host:port/database?sslmode=..., as libpq reads it (environment
  /// variables and service files included); what it says goes before our time limits. kUnavailable
  /// when nothing answers there, kPermissionDenied for a refused login, kInvalidArgument for an
  /// address that cannot be read. No text contains the password.
  static Result<std::unique_ptr<PostgresDatabase>> Connect(const std::string& url);
  ~PostgresDatabase() override;

  Statement Prepare(std::string_view sql) override;
  Status Execute(std::string_view sql) override;
  int64_t changes() const override { return changes_; }
  Status Transact(const std::function<Status()>& body) override;
  Result<int64_t> Version() override;
  Status SetVersion(int64_t version) override;

  /// Whether this connection now has the lock that leaders have, or had it before.
  Result<bool> TryLead();

 private:
  friend class PostgresCursor;
  explicit PostgresDatabase(pg_conn* connection) : connection_(connection) {}

  pg_conn* const connection_;
  int64_t changes_ = 0;
};

/// `sql` of database.h in PostgreSQL's words: `?` and `?2` become $1, $2; INTEGER is BIGINT, and so
/// on. Exposed for its tests.
std::string PostgresSql(std::string_view sql);

}  // namespace tessera::gateway
