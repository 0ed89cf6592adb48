// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "gateway/store/database.h"

namespace tessera::gateway {
namespace {

constexpr std::string_view kDamaged =
    "; put back a copy of it, or begin anew with another --state-dir; nothing was changed";
constexpr int kBusyTimeoutMs = 5000;  // Another process of this machine looks at the file.

Status StatusOfCode(int code, sqlite3* db) {
  const std::string text = fmt::format("database: {}", sqlite3_errmsg(db));
  switch (code & 0xff) {
    case SQLITE_FULL:
      return ResourceExhausted(text + "; free disk space, nothing was changed");
    case SQLITE_IOERR:
      // A write that the disk has no room for is reported as one of these by some file systems.
      return ResourceExhausted(text + "; look at the disk, nothing was changed");
    case SQLITE_CONSTRAINT:
      return (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY)
                 ? AlreadyExists(text)
                 : Internal(text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return DataLoss(text + std::string(kDamaged));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return PermissionDenied(text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Unavailable(text);
    default:
      return Internal(text);
  }
}

class SqliteCursor final : public Cursor {
 public:
  SqliteCursor(sqlite3* db, sqlite3_stmt* handle, Status status)
      : db_(db), handle_(handle), status_(std::move(status)) {}
  ~SqliteCursor() override { sqlite3_finalize(handle_); }

  void Bind(int index, std::string_view text) override {
    // A null pointer would bind NULL instead of "".
    const char* data = text.data() == nullptr ? "" : text.data();
    Note(sqlite3_bind_text64(handle_, index, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  void Bind(int index, int64_t number) override {
    Note(sqlite3_bind_int64(handle_, index, number));
  }

  Result<bool> Next() override {
    if (!status_.ok()) return Fail(status_);
    const int code = sqlite3_step(handle_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    Note(sqlite3_extended_errcode(db_));
    return Fail(status_);
  }
  int64_t Integer(int column) const override { return sqlite3_column_int64(handle_, column); }
  std::string Text(int column) const override {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
    if (bytes == nullptr) return {};
    return {bytes, static_cast<size_t>(sqlite3_column_bytes(handle_, column))};
  }

 private:
  void Note(int code) {
    if (code != SQLITE_OK && status_.ok()) status_ = StatusOfCode(code, db_);
  }

  sqlite3* const db_;
  sqlite3_stmt* const handle_;
  Status status_;
};

class SqliteDatabase final : public Database {
 public:
  explicit SqliteDatabase(sqlite3* db) : db_(db) {}
  ~SqliteDatabase() override { sqlite3_close_v2(db_); }

  Statement Prepare(std::string_view sql) override {
    sqlite3_stmt* handle = nullptr;
    const int code =
        sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &handle, nullptr);
    return Statement(std::make_unique<SqliteCursor>(
        db_, handle, code == SQLITE_OK ? Status() : StatusOfCode(code, db_)));
  }
  Status Execute(std::string_view sql) override {
    const int code = sqlite3_exec(db_, std::string(sql).c_str(), nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? Status() : StatusOfCode(code, db_);
  }
  int64_t changes() const override { return sqlite3_changes64(db_); }

  Status Transact(const std::function<Status()>& body) override {
    TESSERA_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
    Status status = body();
    if (status.ok()) status = Execute("COMMIT");
    // A failed COMMIT leaves the transaction open; one that SQLite ended itself makes this a no-op.
    if (!status.ok() && sqlite3_get_autocommit(db_) == 0) (void)Execute("ROLLBACK");
    return status;
  }

  Result<int64_t> Version() override {
    Statement read = Prepare("PRAGMA user_version");
    TESSERA_ASSIGN_OR_RETURN(const bool has_row, read.Next());
    return has_row ? read.Integer(0) : 0;
  }
  Status SetVersion(int64_t version) override {
    return Execute(fmt::format("PRAGMA user_version = {}", version));
  }

  /// Sets how it writes, and looks for damage.
  Status Begin() {
    sqlite3_busy_timeout(db_, kBusyTimeoutMs);
    TESSERA_RETURN_IF_ERROR(
        Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                "PRAGMA trusted_schema=OFF"));
    Statement check = Prepare("PRAGMA quick_check(1)");
    TESSERA_ASSIGN_OR_RETURN(const bool has_row, check.Next());
    if (has_row && check.Text(0) != "ok") {
      std::string what = check.Text(0);  // Several lines.
      std::ranges::replace(what, '\n', ' ');
      return DataLoss("database: damaged: " + what + std::string(kDamaged));
    }
    return {};
  }

 private:
  sqlite3* const db_;
};

}  // namespace

Result<std::unique_ptr<Database>> OpenSqlite(const std::filesystem::path& path) {
  sqlite3* raw = nullptr;
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  auto database = std::make_unique<SqliteDatabase>(raw);
  if (code != SQLITE_OK) return Fail(StatusOfCode(code, raw).WithContext(path.string()));
  if (const Status ready = database->Begin(); !ready.ok())
    return Fail(ready.WithContext(path.string()));
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace tessera::gateway
