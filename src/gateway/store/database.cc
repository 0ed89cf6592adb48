// SPDX-License-Identifier: Apache-2.0
#include "gateway/store/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

namespace tessera::gateway {
namespace {

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
      return DataLoss(text);
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

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_),
      handle_(std::exchange(other.handle_, nullptr)),
      status_(std::move(other.status_)) {}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

void Statement::Note(int code) {
  if (code != SQLITE_OK && status_.ok()) status_ = StatusOfCode(code, db_);
}

Statement& Statement::Bind(int index, std::string_view text) {
  // A null pointer would bind NULL instead of "".
  const char* data = text.data() == nullptr ? "" : text.data();
  Note(sqlite3_bind_text64(handle_, index, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::Bind(int index, int64_t number) {
  Note(sqlite3_bind_int64(handle_, index, number));
  return *this;
}

Status Statement::Run() {
  Result<bool> row = Next();
  while (row.has_value() && *row) row = Next();
  return StatusOf(row);
}

Result<bool> Statement::Next() {
  if (!status_.ok()) return Fail(status_);
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Note(sqlite3_extended_errcode(db_));
  return Fail(status_);
}

int64_t Statement::Integer(int column) const {
  return sqlite3_column_int64(handle_, column);
}

std::string Statement::Text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(handle_, column))};
}

Result<std::unique_ptr<Database>> Database::Open(const std::filesystem::path& path) {
  sqlite3* raw = nullptr;
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  std::unique_ptr<Database> database(new Database(raw));
  if (code != SQLITE_OK) return Fail(StatusOfCode(code, raw).WithContext(path.string()));
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  const Status ready = [&]() -> Status {
    TESSERA_RETURN_IF_ERROR(database->Execute(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
        "PRAGMA trusted_schema=OFF"));
    Statement check = database->Prepare("PRAGMA quick_check(1)");
    TESSERA_ASSIGN_OR_RETURN(const bool has_row, check.Next());
    if (has_row && check.Text(0) != "ok") return DataLoss("damaged: " + check.Text(0));
    return {};
  }();
  if (!ready.ok()) return Fail(ready.WithContext(path.string()));
  return database;
}

Database::~Database() {
  sqlite3_close_v2(db_);
}

Statement Database::Prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  const int code =
      sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &handle, nullptr);
  return {db_, handle, code == SQLITE_OK ? Status() : StatusOfCode(code, db_)};
}

Status Database::Execute(std::string_view sql) {
  const int code = sqlite3_exec(db_, std::string(sql).c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : StatusOfCode(code, db_);
}

int64_t Database::changes() const {
  return sqlite3_changes64(db_);
}

Status Database::Transact(const std::function<Status()>& body) {
  TESSERA_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  Status status = body();
  if (status.ok()) status = Execute("COMMIT");
  // A failed COMMIT leaves the transaction open; one that SQLite ended itself makes this a no-op.
  if (!status.ok() && sqlite3_get_autocommit(db_) == 0) (void)Execute("ROLLBACK");
  return status;
}

}  // namespace tessera::gateway
