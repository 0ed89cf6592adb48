// SPDX-License-Identifier: Apache-2.0
//
// Database and Statement: what store/ needs of a database, one connection. Private to store/.
// Two kinds: SQLite (sqlite_database.cc) for one gateway, PostgreSQL (postgres_database.cc) for
// several that share state.
//
// SQL is the part that both know, in SQLite's words: parameters `?` or `?1`; `ON CONFLICT (id) DO
// UPDATE`, never `OR REPLACE`; `RETURNING`; tables STRICT, of TEXT and INTEGER (64 bits) only, keys
// that count themselves INTEGER PRIMARY KEY AUTOINCREMENT. No functions but count, sum, max, min,
// coalesce, length.
//
// Not thread-safe: store.cc holds one lock around it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::gateway {

/// What a kind of database makes of a statement: see Statement.
class Cursor {
 public:
  virtual ~Cursor() = default;
  virtual void Bind(int index, std::string_view text) = 0;
  virtual void Bind(int index, int64_t number) = 0;
  virtual Result<bool> Next() = 0;
  virtual int64_t Integer(int column) const = 0;
  virtual std::string Text(int column) const = 0;
};

/// A statement; parameters are numbered from 1, columns from 0. The first error sticks and is what
/// Run and Next return.
class Statement {
 public:
  explicit Statement(std::unique_ptr<Cursor> cursor) : cursor_(std::move(cursor)) {}

  Statement& Bind(int index, std::string_view text) {
    cursor_->Bind(index, text);
    return *this;
  }
  Statement& Bind(int index, int64_t number) {
    cursor_->Bind(index, number);
    return *this;
  }

  /// For statements without rows. kAlreadyExists when a UNIQUE rule is broken, kResourceExhausted
  /// on a full disk, kUnavailable when the connection is gone.
  Status Run();
  /// True while there is a row.
  Result<bool> Next() { return cursor_->Next(); }
  int64_t Integer(int column) const { return cursor_->Integer(column); }
  std::string Text(int column) const { return cursor_->Text(column); }

 private:
  std::unique_ptr<Cursor> cursor_;
};

class Database {
 public:
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// A wrong statement is our own bug, but its error comes from Run or Next as any other.
  virtual Statement Prepare(std::string_view sql) = 0;
  /// Statements without parameters and rows, split by semicolons.
  virtual Status Execute(std::string_view sql) = 0;
  /// Rows changed by the last statement.
  virtual int64_t changes() const = 0;
  /// Runs `body` in a transaction: all of it durable on success, none of it otherwise.
  virtual Status Transact(const std::function<Status()>& body) = 0;

  /// The number that SetVersion stored; 0 in a new database.
  virtual Result<int64_t> Version() = 0;
  virtual Status SetVersion(int64_t version) = 0;

 protected:
  Database() = default;
};

/// Opens or makes the file: WAL with synchronous=FULL, so that a committed transaction survives the
/// power going out. kDataLoss when it is damaged ("PRAGMA quick_check"), kPermissionDenied,
/// kResourceExhausted.
Result<std::unique_ptr<Database>> OpenSqlite(const std::filesystem::path& path);

}  // namespace tessera::gateway
