// SPDX-License-Identifier: Apache-2.0
#include "gateway/lead/candidate.h"

#include <utility>

#include "gateway/store/postgres_database.h"

namespace tessera::gateway {

Candidate::Candidate(std::unique_ptr<PostgresDatabase> database, std::string address)
    : database_(std::move(database)), address_(std::move(address)) {}
Candidate::~Candidate() = default;

Result<std::unique_ptr<Candidate>> Candidate::Join(const std::string& url, std::string address) {
  TESSERA_ASSIGN_OR_RETURN(auto database, PostgresDatabase::Connect(url));
  return std::unique_ptr<Candidate>(new Candidate(std::move(database), std::move(address)));
}

Result<bool> Candidate::TryLead() {
  TESSERA_ASSIGN_OR_RETURN(const bool leads, database_->TryLead());
  if (!leads) return false;
  const Status told = database_->Transact([&]() -> Status {
    TESSERA_RETURN_IF_ERROR(database_->Execute(
        "CREATE TABLE IF NOT EXISTS leader (one INTEGER PRIMARY KEY, address TEXT NOT NULL)"));
    return database_
        ->Prepare(
            "INSERT INTO leader (one, address) VALUES (1, ?) ON CONFLICT (one) DO UPDATE "
            "SET address = excluded.address")
        .Bind(1, address_)
        .Run();
  });
  if (!told.ok()) return Fail(told);
  return true;
}

Result<std::optional<std::string>> Candidate::Leader() {
  Statement read = database_->Prepare("SELECT address FROM leader");
  const Result<bool> has_row = read.Next();
  if (has_row.has_value()) return *has_row ? std::optional(read.Text(0)) : std::nullopt;
  // The first leader makes the table.
  if (has_row.error().code() == Code::kNotFound) return std::nullopt;
  return Fail(has_row.error());
}

std::unique_ptr<Database> Candidate::TakeDatabase() {
  return std::move(database_);
}

}  // namespace tessera::gateway
