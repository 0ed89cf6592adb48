// SPDX-License-Identifier: Apache-2.0
//
// Candidate: a gateway's part in choosing the one that leads among those that share a database. The
// leader holds an advisory lock on the connection with which it writes (store/postgres_database.h),
// and its address stands in the table `leader`, where the others read whom to pass calls on to.
//
// Not thread-safe: one thread asks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "gateway/store/database.h"

namespace tessera::gateway {

class PostgresDatabase;

class Candidate {
 public:
  /// `address`: where the other gateways reach this one, "10.0.0.5:5000". Errors as
  /// PostgresDatabase::Connect has them.
  static Result<std::unique_ptr<Candidate>> Join(const std::string& url, std::string address);
  ~Candidate();

  /// True: this one leads from now on; take the database.
  Result<bool> TryLead();
  /// Where the leader is; nothing while there never was one.
  Result<std::optional<std::string>> Leader();
  /// The connection that has the lock. The candidate is over.
  std::unique_ptr<Database> TakeDatabase();

 private:
  Candidate(std::unique_ptr<PostgresDatabase> database, std::string address);
  std::unique_ptr<PostgresDatabase> database_;
  const std::string address_;
};

}  // namespace tessera::gateway
