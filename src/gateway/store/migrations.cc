// SPDX-License-Identifier: Apache-2.0
#include "gateway/store/migrations.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace tessera::gateway {
namespace {

constexpr std::string_view kSteps[] = {
    // 1: endpoints, workers, events, files.
    R"sql(
CREATE TABLE endpoint (
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, spec TEXT NOT NULL,
  revision INTEGER NOT NULL, generation INTEGER NOT NULL, is_deleting INTEGER NOT NULL,
  warnings TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL) STRICT;
CREATE TABLE worker (
  id TEXT PRIMARY KEY, endpoint_id TEXT NOT NULL, generation INTEGER NOT NULL,
  pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, port INTEGER NOT NULL, key TEXT NOT NULL,
  started_at INTEGER NOT NULL) STRICT;
CREATE TABLE event (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT, endpoint_id TEXT NOT NULL, at INTEGER NOT NULL,
  kind TEXT NOT NULL, text TEXT NOT NULL, actor TEXT NOT NULL) STRICT;
CREATE INDEX event_of_endpoint ON event (endpoint_id, sequence);
CREATE TABLE file (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, filename TEXT NOT NULL, bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
CREATE INDEX file_of_owner ON file (owner, id);
)sql",
    // 2: what a file is for.
    R"sql(
ALTER TABLE file ADD COLUMN purpose TEXT NOT NULL DEFAULT '';
)sql",
    // 3: batches.
    R"sql(
CREATE TABLE batch (id TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;
)sql",
};

}  // namespace

Status Migrate(Database* database) {
  TESSERA_ASSIGN_OR_RETURN(const int64_t version, database->Version());
  const auto newest = static_cast<int64_t>(std::size(kSteps));
  if (version > newest)
    return FailedPrecondition(fmt::format(
        "the database has version {} and this program knows {}: use the newer Tessera, or another "
        "--state-dir",
        version, newest));
  for (int64_t step = version; step < newest; ++step) {
    const Status done = database->Transact([&]() -> Status {
      TESSERA_RETURN_IF_ERROR(database->Execute(kSteps[step]));
      return database->SetVersion(step + 1);
    });
    if (!done.ok()) return done.WithContext(fmt::format("migration {}", step + 1));
  }
  return {};
}

}  // namespace tessera::gateway
