// SPDX-License-Identifier: Apache-2.0
//
// Database and Statement: SQLite behind Status, one connection. Private to store/.
//
// WAL with synchronous=FULL: a committed transaction survives the power going out, and readers do
// not wait for the writer. Not thread-safe: store.cc holds one lock around it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tessera::gateway {

/// A prepared statement; parameters are numbered from 1, columns from 0. The first error sticks and
/// is what Run and Next return.
class Statement {
 public:
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  Statement& Bind(int index, std::string_view text);
  Statement& Bind(int index, int64_t number);

  /// For statements without rows. kAlreadyExists when a UNIQUE rule is broken,
  /// kResourceExhausted on a full disk.
  Status Run();
  /// True while there is a row.
  Result<bool> Next();
  int64_t Integer(int column) const;
  std::string Text(int column) const;

 private:
  friend class Database;
  Statement(sqlite3* db, sqlite3_stmt* handle, Status status)
      : db_(db), handle_(handle), status_(std::move(status)) {}
  void Note(int code);

  sqlite3* db_;
  sqlite3_stmt* handle_;
  Status status_;
};

class Database {
 public:
  /// Opens or makes the file. kDataLoss when it is damaged ("PRAGMA quick_check"),
  /// kPermissionDenied, kResourceExhausted.
  static Result<std::unique_ptr<Database>> Open(const std::filesystem::path& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// A wrong statement is our own bug, but its error comes from Run or Next as any other.
  Statement Prepare(std::string_view sql);
  Status Execute(std::string_view sql);
  /// Rows changed by the last statement.
  int64_t changes() const;

  /// Runs `body` in a transaction: all of it durable on success, none of it otherwise.
  Status Transact(const std::function<Status()>& body);

 private:
  explicit Database(sqlite3* db) : db_(db) {}
  sqlite3* db_;
};

}  // namespace tessera::gateway
