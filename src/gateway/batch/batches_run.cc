// SPDX-License-Identifier: Apache-2.0
//
// The thread of Batches: which rows go to workers, and what becomes of a batch.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "gateway/batch/batch_output.h"
#include "gateway/batch/batch_request.h"
#include "gateway/batch/batches.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLookEvery = milliseconds(100);  // While there are batches to run.
constexpr Duration kIdleLook = seconds(5);
constexpr Duration kSweepEvery = seconds(3600);
constexpr Duration kRetryAfter = seconds(2);
constexpr int64_t kRunningMax = 64;        // Batches whose rows are known.
constexpr int64_t kRunningOfOwnerMax = 8;  // Of these, of one owner.
constexpr int64_t kTemporaryMax = 2;       // Of these, with an endpoint of their own.
constexpr int64_t kRowsUnderWayMax = 256;  // Of one endpoint.

/// Paths of the state folder are for the log.
std::string NotWritten(const Status& status) {
  log::error("gateway: results of a batch: {}", status.ToString());
  return "results cannot be written down: the disk is full or does not take them";
}

}  // namespace

BatchRecord Batches::Copy(const Job& job) const {
  const std::lock_guard lock(mutex_);
  return job.record;
}

void Batches::SetReason(Job* job, std::string reason) {
  const std::lock_guard lock(mutex_);
  job->record.reason = std::move(reason);
}

void Batches::Retry(Job* job, std::string why) {
  SetReason(job, std::move(why));
  job->not_before = context_.clock->Now() + kRetryAfter;
}

void Batches::Loop() {
  Duration patience = Duration::zero();
  while (true) {
    Settle(inbox_->Take(patience));
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) break;
    }
    Look();
    const std::lock_guard lock(mutex_);
    patience = std::ranges::any_of(
                   jobs_, [](const auto& entry) { return !entry.second->record.is_over(); })
                   ? kLookEvery
                   : kIdleLook;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [id, job] : jobs_) job->run.reset();
}

std::vector<std::shared_ptr<Batches::Job>> Batches::InOrder() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<int64_t, std::shared_ptr<Job>>> ranked;
  for (const auto& [id, job] : jobs_)
    if (!job->record.is_over())
      ranked.emplace_back(BatchRank(job->record.priority).value_or(0), job);
  // Of one rank the older ones, which come first already.
  std::ranges::stable_sort(ranked, std::ranges::greater(),
                           [](const auto& entry) { return entry.first; });
  std::vector<std::shared_ptr<Job>> jobs;
  for (auto& [rank, job] : ranked) jobs.push_back(std::move(job));
  return jobs;
}

void Batches::Settle(const std::vector<RowOutcome>& outcomes) {
  for (const RowOutcome& outcome : outcomes) {
    std::shared_ptr<Job> job;
    BatchRecord record;
    {
      const std::lock_guard lock(mutex_);
      const auto found = jobs_.find(outcome.batch_id);
      if (found == jobs_.end() || found->second->run == nullptr) continue;
      job = found->second;
      record = job->record;
    }
    job->run->Settle(outcome, JudgeRow(outcome, record), context_.clock->Now());
    // At once: what is written down is not lost when the gateway is killed now.
    if (const Status written = job->run->WriteDown(); !written.ok())
      Retry(job.get(), NotWritten(written));
  }
}

void Batches::Look() {
  if (context_.clock->Now() >= next_sweep_) Sweep();
  const auto jobs = InOrder();
  under_way_.clear();
  for (const auto& job : jobs)
    if (job->run != nullptr)
      under_way_[Copy(*job).endpoint_name()] += static_cast<int64_t>(job->run->under_way());
  for (const auto& job : jobs) Advance(job.get());
}

void Batches::Sweep() {
  next_sweep_ = context_.clock->Now() + kSweepEvery;
  const int64_t before = context_.clock->UnixSeconds() - kBatchKeptSeconds;
  std::vector<BatchRecord> old;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, job] : jobs_)
      if (job->record.is_over() && job->record.completed_at < before) old.push_back(job->record);
  }
  for (const BatchRecord& record : old) (void)Remove(record.id, record.owner);
}

void Batches::Advance(Job* job) {
  BatchRecord record = Copy(*job);
  const TimePoint now = context_.clock->Now();
  if (record.is_cancelling) return End(job, BatchStatus::kCancelled, "cancelled by its owner");
  if (record.started_at > 0 && context_.clock->UnixSeconds() >= record.expires_at())
    return End(job, BatchStatus::kFailed,
               fmt::format("it ran for {} s, which is its max_runtime_sec", record.max_runtime_s),
               /*is_expired=*/true);
  if (now < job->not_before) return;
  if (job->run == nullptr) {
    // One that waits for its endpoint keeps no place from others.
    if (!record.endpoint.empty() && FindWay(job, record) == nullptr) return;
    if (!Begin(job)) return;
    record = Copy(*job);
  }
  if (const Status written = job->run->WriteDown(); !written.ok())
    return Retry(job, NotWritten(written));
  {
    const std::lock_guard lock(mutex_);
    job->record.completed = job->run->folder().completed();
    job->record.failed = job->run->folder().failed();
  }
  if (job->run->IsDone()) return Finish(job);
  const std::shared_ptr<Route> route = FindWay(job, record);
  if (route != nullptr) return Launch(job, record, route);
  const std::lock_guard lock(mutex_);
  if (job->run != nullptr && job->run->under_way() == 0) job->run.reset();
}

bool Batches::Begin(Job* job) {
  const BatchRecord record = Copy(*job);
  int64_t running = 0, of_owner = 0, temporary = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, other] : jobs_)
      if (other->run != nullptr) {
        ++running;
        of_owner += other->record.owner == record.owner ? 1 : 0;
        temporary += other->record.endpoint.empty() ? 1 : 0;
      }
  }
  if (running >= kRunningMax || of_owner >= kRunningOfOwnerMax ||
      (record.endpoint.empty() && temporary >= kTemporaryMax))
    return false;
  auto folder = BatchFolder::Open(FolderOf(record.id), BatchFolder::Use::kAppend);
  if (!folder.has_value()) {
    log::error("gateway: {}: {}", record.id, folder.error().ToString());
    End(job, BatchStatus::kFailed, "its rows are damaged or gone");
    return false;
  }
  auto run = std::make_unique<BatchRun>(*std::move(folder));
  const Status stored = Change(job, [&](BatchRecord* changed) {
    changed->status = BatchStatus::kRunning;
    changed->reason = "its rows are being answered";
    if (changed->started_at == 0) changed->started_at = context_.clock->UnixSeconds();
  });
  if (!stored.ok()) {
    Retry(job, stored.ToString());
    return false;
  }
  const std::lock_guard lock(mutex_);
  job->run = std::move(run);
  return true;
}

bool Batches::HasEndpoint(Job* job, const BatchRecord& record) {
  const auto view = context_.controller->Find(record.endpoint_name(), record.owner);
  if (view.has_value() && !view->record.is_deleting) {
    if (!record.endpoint.empty() || view->status != EndpointStatus::kUpdateFailed) return true;
    End(job, BatchStatus::kFailed, "its endpoint could not be started: " + view->reason);
    return false;
  }
  if (!record.endpoint.empty()) {
    End(job, BatchStatus::kFailed,
        fmt::format("the endpoint {} is there no more", record.endpoint));
    return false;
  }
  if (view.has_value()) return false;  // Its own, of a run before, is being deleted.
  json::Object body = record.endpoint_body;
  body["name"] = record.id;
  const auto asked = ReadCreate(body);
  const auto made = asked.has_value() ? context_.controller->Create(*asked, record.owner)
                                      : ApiResult<std::string>(std::unexpected(asked.error()));
  if (made.has_value()) return true;
  if (made.error().status >= 500)
    Retry(job, made.error().text);
  else
    End(job, BatchStatus::kFailed, "its endpoint could not be made: " + made.error().text);
  return false;
}

std::shared_ptr<Route> Batches::FindWay(Job* job, const BatchRecord& record) {
  if (!HasEndpoint(job, record)) return nullptr;
  const WayTo way = context_.controller->FindRoute(record.endpoint_name(), record.owner);
  if (way.route == nullptr) return nullptr;
  if (!way.is_off) return way.route;
  SetReason(job, fmt::format("the endpoint {} is switched off: max_workers is 0",
                             record.endpoint_name()));
  return nullptr;
}

int64_t Batches::RoomFor(const BatchRecord& record) const {
  int64_t per_worker = kBatchRowsPerWorker, workers = record.data_parallelism;
  if (!record.endpoint.empty()) {
    const auto view = context_.controller->Find(record.endpoint, record.owner);
    if (!view.has_value()) return 0;
    per_worker = view->record.spec.per_worker;
    workers = std::min(workers, view->record.spec.max_workers);
  }
  return std::min(per_worker * workers, kRowsUnderWayMax);
}

void Batches::Launch(Job* job, const BatchRecord& record, const std::shared_ptr<Route>& route) {
  const int64_t room = RoomFor(record);
  int64_t& under_way = under_way_[record.endpoint_name()];
  while (under_way < room) {
    const auto next = job->run->TakeRow(context_.clock->Now());
    if (!next.has_value()) break;
    const auto [index, call] = *next;
    const auto line = job->run->folder().Row(index);
    const auto row = line.has_value() ? ReadRow(*line) : Result<BatchRow>(Fail(line.error()));
    if (!row.has_value() || !row->error.empty()) {
      job->run->FailRow(index, row.has_value() ? row->error : row.error().ToString());
      continue;
    }
    RowOutcome outcome{.batch_id = record.id, .row = index, .call = call};
    job->run->NoteCall(index, call,
                       StartRow(context_, route, *row, record, std::move(outcome), inbox_));
    ++under_way;
  }
  if (const Status written = job->run->WriteDown(); !written.ok())
    return Retry(job, NotWritten(written));
  if (job->run->IsDone()) inbox_->Wake();  // All that was left had failed.
  const std::string& trouble = job->run->trouble();
  SetReason(job,
            trouble.empty() ? "its rows are being answered" : "rows are tried again: " + trouble);
}

void Batches::Finish(Job* job) {
  const BatchRecord record = Copy(*job);
  const BatchFolder& folder = job->run->folder();
  Status written = job->run->Sync();
  if (written.ok()) written = WriteBatchOutput(record, folder, root_, &files_);
  if (written.code() == Code::kResourceExhausted || written.code() == Code::kUnavailable)
    return Retry(job, "the output could not be written: " + written.ToString());
  if (!written.ok())
    return End(job, BatchStatus::kFailed, "the output could not be written: " + written.ToString());
  if (folder.completed() > 0)
    return End(job, BatchStatus::kCompleted,
               folder.failed() == 0 ? fmt::format("{} rows were answered", folder.completed())
                                    : fmt::format("{} rows were answered, {} failed",
                                                  folder.completed(), folder.failed()));
  const auto first = folder.ResultOf(0);
  End(job, BatchStatus::kFailed,
      fmt::format("no row was answered; the first: {}",
                  first.has_value() ? first->error : first.error().ToString()));
}

void Batches::End(Job* job, BatchStatus status, std::string reason, bool is_expired) {
  if (job->run != nullptr) {
    job->run->CancelCalls();
    // OpenAI's clients find what was answered also when it was not all.
    const BatchRecord record = Copy(*job);
    if (record.form == BatchForm::kLines && status != BatchStatus::kCompleted)
      if (const Status written = WriteBatchOutput(record, job->run->folder(), root_, &files_);
          !written.ok())
        reason += "; its output could not be written: " + written.ToString();
  }
  const Status stored = Change(job, [&](BatchRecord* record) {
    record->status = status;
    record->reason = reason;
    record->is_expired = is_expired;
    record->completed_at = context_.clock->UnixSeconds();
    if (job->run != nullptr) {
      record->completed = job->run->folder().completed();
      record->failed = job->run->folder().failed();
    }
  });
  if (!stored.ok()) return Retry(job, stored.ToString());
  const BatchRecord record = Copy(*job);
  if (record.endpoint.empty() && context_.controller->Find(record.id, record.owner).has_value())
    (void)context_.controller->Delete(record.id, record.owner);
  log::info("gateway: {} {}: {}", record.id, BatchStatusName(status), record.reason);
  const std::lock_guard lock(mutex_);
  job->run.reset();
}

}  // namespace tessera::gateway
