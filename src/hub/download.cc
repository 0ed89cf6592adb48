// SPDX-License-Identifier: Apache-2.0
#include "hub/download.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "hub/fetch_range.h"
#include "hub/file_lock.h"
#include "hub/partial_file.h"

namespace tessera::hub {
namespace {

// One request of a range: long enough that its set-up does not count, short enough that the last
// ones end together.
constexpr uint64_t kMinPieceBytes = 4ull << 20;
constexpr uint64_t kMaxPieceBytes = 64ull << 20;
/// The same address may expire or answer nonsense so often in a row.
constexpr int kMaxRelocations = 5;
/// Bytes with another hash than announced are fetched anew once.
constexpr int kMaxRestarts = 1;
constexpr std::chrono::milliseconds kTick{100};

struct Job {
  const DownloadFile* file = nullptr;
  std::vector<const DownloadFile*> twins;  // Of the same bytes, and so with the same target.
  std::optional<FileLock> lock;
  std::unique_ptr<PartialFile> part;  // Null: nothing to do.
  std::string location;               // Where the file's address redirected to; may be empty.
  uint64_t missing = 0;               // Bytes whose range is not done.
  int restarts = 0;
  bool is_continued = false;  // From what huggingface_hub left.
};

struct Piece {
  Job* job = nullptr;
  ByteRange range;
  TimePoint not_before;
  int failures = 0;     // In a row, without a byte.
  int relocations = 0;  // The same.
};

std::string_view ValidatorOf(const DownloadFile& file) {
  if (!file.sha256.empty()) return file.sha256;
  return file.git_sha1.empty() ? file.validator : file.git_sha1;
}

uint64_t FileSizeOr(const std::filesystem::path& path, uint64_t fallback) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return fallback;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  return error ? fallback : bytes;
}

std::string Megabytes(uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// Verified, synced and renamed; the lock is released.
enum class Ending : uint8_t { kPublished, kWrongBytes };
Result<Ending> Complete(Job& job, std::string* difference) {
  const DownloadFile& file = *job.file;
  const bool is_large = !file.sha256.empty();
  const std::string& announced = is_large ? file.sha256 : file.git_sha1;
  if (!announced.empty()) {
    TESSERA_ASSIGN_OR_RETURN(const std::string hash,
                             is_large ? job.part->Sha256Hex() : job.part->GitBlobHex());
    if (hash != announced) {
      *difference = fmt::format("hash {} instead of {}", hash, announced);
      return Ending::kWrongBytes;
    }
  }
  TESSERA_RETURN_IF_ERROR(job.part->Publish());
  return Ending::kPublished;
}

/// The queue of ranges and the threads that empty it.
class Pool {
 public:
  Pool(const Settings& settings, const HttpFactory& http, const DownloadEvents& events)
      : settings_(settings), http_(http), events_(events) {}

  /// `jobs` outlives the call.
  Status Run(std::vector<Job>& jobs, DownloadReport* report,
             const std::function<void(uint64_t)>& tick);

 private:
  void AddPieces(Job& job);
  void Work();
  std::optional<Piece> Next();
  void Settle(Piece piece, FetchOutcome outcome);
  void FinishPiece(Job& job, uint64_t bytes);
  void Retry(Piece piece, const FetchOutcome& outcome);
  void Fail(Status status);
  bool HasPatience() const;

  const Settings& settings_;
  const HttpFactory& http_;
  const DownloadEvents& events_;
  const Clock& clock_ = Clock::Real();
  uint64_t piece_bytes_ = kMaxPieceBytes;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> fetched_ = 0;
  std::atomic<int64_t> last_byte_ns_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> queue_;  // Guarded, as all below.
  size_t open_jobs_ = 0;
  Status failure_;
  DownloadReport* report_ = nullptr;
  std::vector<std::string> notes_;
};

void Pool::AddPieces(Job& job) {
  for (const ByteRange& missing : job.part->Missing()) {
    job.missing += missing.size();
    for (uint64_t at = missing.begin; at < missing.end; at += piece_bytes_)
      queue_.push_back({&job, {at, std::min(missing.end, at + piece_bytes_)}, clock_.Now(), 0, 0});
  }
}

void Pool::Fail(Status status) {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = std::move(status);
  stop_ = true;
  changed_.notify_all();
}

std::optional<Piece> Pool::Next() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (open_jobs_ == 0 || !failure_.ok()) return std::nullopt;
    const TimePoint now = clock_.Now();
    const auto due = std::find_if(queue_.begin(), queue_.end(),
                                  [&](const Piece& piece) { return piece.not_before <= now; });
    if (due != queue_.end()) {
      Piece piece = *due;
      queue_.erase(due);
      return piece;
    }
    const auto first = std::min_element(
        queue_.begin(), queue_.end(),
        [](const Piece& a, const Piece& b) { return a.not_before < b.not_before; });
    if (first == queue_.end()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, TimePoint(first->not_before));
    }
  }
}

bool Pool::HasPatience() const {
  const auto silent = clock_.Now().time_since_epoch() - Duration(last_byte_ns_.load());
  return silent < settings_.patience;
}

/// Puts back what is left of a range, after a wait that doubles while nothing arrives.
void Pool::Retry(Piece piece, const FetchOutcome& outcome) {
  auto wait = settings_.retry_wait * (1 << std::min(piece.failures, 12));
  wait = std::min<std::chrono::milliseconds>(wait, settings_.retry_wait_max);
  if (outcome.wait) wait = std::max(wait, *outcome.wait);
  if (outcome.end == FetchEnd::kRelocate && piece.relocations == 0) wait = {};
  const bool asks_too_much = outcome.wait && *outcome.wait > settings_.patience;
  // Asked once: another thread may get a byte at any moment.
  if (asks_too_much || !HasPatience()) {
    const std::string why =
        asks_too_much ? fmt::format("the server asks to wait {} s", outcome.wait->count() / 1000)
                      : fmt::format("nothing arrived for {} s", settings_.patience.count() / 1000);
    return Fail(
        Status(outcome.status.code(),
               fmt::format("{}; {}, so this ends here; the next try goes on where it stopped",
                           outcome.status.ToString(), why)));
  }
  if (outcome.end == FetchEnd::kRelocate && ++piece.relocations > kMaxRelocations)
    return Fail(outcome.status);
  if (outcome.end == FetchEnd::kRetry) ++piece.failures;
  const std::lock_guard lock(mutex_);
  if (outcome.end == FetchEnd::kRelocate) piece.job->location.clear();
  ++report_->retries;
  if (piece.failures == 3)
    notes_.push_back(fmt::format("{}; trying again", outcome.status.ToString()));
  piece.not_before = clock_.Now() + wait;
  queue_.push_front(std::move(piece));
  changed_.notify_all();
}

void Pool::Settle(Piece piece, FetchOutcome outcome) {
  const uint64_t got = outcome.next - piece.range.begin;
  if (got > 0) piece.failures = piece.relocations = 0;
  piece.range.begin = outcome.next;
  Job& job = *piece.job;
  switch (outcome.end) {
    case FetchEnd::kDone: {
      const std::lock_guard lock(mutex_);
      if (OriginOf(outcome.location) != OriginOf(job.file->url)) job.location = outcome.location;
      break;
    }
    case FetchEnd::kRetry:
    case FetchEnd::kRelocate:
      Retry(piece, outcome);
      break;
    case FetchEnd::kChanged:
    case FetchEnd::kFailed:
      return Fail(std::move(outcome.status));
  }
  FinishPiece(job, got);
}

/// The thread that brings the last bytes of a file verifies and publishes it.
void Pool::FinishPiece(Job& job, uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    TESSERA_CHECK(bytes <= job.missing);
    job.missing -= bytes;
    if (job.missing > 0 || job.part == nullptr || bytes == 0) return;
  }
  std::string difference;
  auto ending = Complete(job, &difference);
  if (!ending.has_value()) return Fail(ending.error());
  if (*ending == Ending::kWrongBytes) {
    // Nothing of it is kept for the next call either.
    if (Status status = job.part->Restart(); !status.ok()) return Fail(std::move(status));
    // What another tool had left was no try of ours.
    const bool was_ours = !std::exchange(job.is_continued, false);
    if (was_ours && job.restarts++ >= kMaxRestarts)
      return Fail(DataLoss(fmt::format(
          "{} was fetched twice and has {} as announced: the server or a proxy before it gives "
          "other bytes, and nothing of them is used",
          job.file->name, difference)));
  }
  const std::lock_guard lock(mutex_);
  if (*ending == Ending::kWrongBytes) {
    notes_.push_back(fmt::format("{} has {}; fetching it once more", job.file->name, difference));
    job.location.clear();
    AddPieces(job);
  } else {
    report_->new_files.push_back(job.file->name);
    for (const DownloadFile* twin : job.twins) report_->new_files.push_back(twin->name);
    job.lock.reset();
    --open_jobs_;
  }
  changed_.notify_all();
}

void Pool::Work() {
  auto http = http_();
  if (!http.has_value()) return Fail(http.error());
  const FetchContext context{&stop_, [&](uint64_t bytes) {
                               fetched_ += bytes;
                               last_byte_ns_ = clock_.Now().time_since_epoch().count();
                             }};
  while (auto piece = Next()) {
    std::string location;
    {
      const std::lock_guard lock(mutex_);
      location = piece->job->location;
    }
    FetchOutcome outcome =
        FetchRange(**http, *piece->job->file, location, piece->range, *piece->job->part, context);
    Settle(*std::move(piece), std::move(outcome));
  }
}

Status Pool::Run(std::vector<Job>& jobs, DownloadReport* report,
                 const std::function<void(uint64_t)>& tick) {
  report_ = report;
  last_byte_ns_ = clock_.Now().time_since_epoch().count();
  uint64_t missing = 0;
  for (const Job& job : jobs)
    if (job.part != nullptr) missing += job.file->bytes - job.part->PresentBytes();
  const auto connections = static_cast<uint64_t>(std::max(1, settings_.connections));
  piece_bytes_ = std::clamp(missing / (connections * 4), kMinPieceBytes, kMaxPieceBytes);
  std::vector<Job*> whole;
  for (Job& job : jobs) {
    if (job.part == nullptr) continue;
    ++open_jobs_;
    AddPieces(job);
    // Complete but not yet published, or empty: no range to wait for.
    if (job.missing == 0) whole.push_back(&job);
  }
  // A file without a range to fetch may turn out wrong, and then it has some.
  const size_t count = std::min<size_t>(queue_.size() + whole.size(), connections);
  std::vector<std::thread> workers;
  for (size_t i = 0; i < count; ++i) {
    auto worker = StartThread("download", [this] { Work(); });
    if (worker.has_value())
      workers.push_back(*std::move(worker));
    else if (workers.empty())
      Fail(worker.error());
  }
  for (Job* job : whole) {
    job->missing = 1;
    FinishPiece(*job, 1);
  }
  std::unique_lock lock(mutex_);
  while (open_jobs_ > 0 && failure_.ok()) {
    changed_.wait_for(lock, kTick);
    std::vector<std::string> notes = std::exchange(notes_, {});
    lock.unlock();
    for (const std::string& note : notes)
      if (events_.on_note) events_.on_note(note);
    tick(fetched_);
    lock.lock();
  }
  lock.unlock();
  for (std::thread& worker : workers) worker.join();
  report->fetched = fetched_;
  return failure_;
}

/// Room for `bytes` in the file system of `folder`, which exists.
Status CheckRoom(uint64_t bytes, const std::filesystem::path& folder) {
  TESSERA_ASSIGN_OR_RETURN(const uint64_t free, FreeDiskBytes(folder));
  if (bytes <= free) return {};
  return ResourceExhausted(
      fmt::format("{} are to be downloaded and {} are free in {}: free some space, or name another "
                  "folder with --hf-cache-dir",
                  Megabytes(bytes), Megabytes(free), folder.string()));
}

/// Takes the file's lock, or finds that another process has completed it.
Status TakeLock(Job& job, const DownloadEvents& events) {
  std::mutex mutex;
  std::condition_variable never;
  for (bool told = false;; told = true) {
    if (IsComplete(*job.file)) return {};
    TESSERA_ASSIGN_OR_RETURN(job.lock, FileLock::TryLock(job.file->lock));
    if (job.lock) break;
    if (!told && events.on_note)
      events.on_note(
          fmt::format("{} is being downloaded by another process; waiting for it", job.file->name));
    std::unique_lock lock(mutex);
    (void)never.wait_for(lock, kTick);
  }
  if (IsComplete(*job.file)) {  // Since we looked.
    job.lock.reset();
    return {};
  }
  TESSERA_ASSIGN_OR_RETURN(
      job.part, PartialFile::Open(job.file->target, job.file->bytes, ValidatorOf(*job.file)));
  if (const uint64_t bytes = job.part->TakenOverBytes(); bytes > 0) {
    job.is_continued = true;
    if (events.on_note)
      events.on_note(fmt::format("{}: going on with the {} that huggingface_hub had left",
                                 job.file->name, Megabytes(bytes)));
  }
  return {};
}

Status ReadOnlyCache(const Status& status, const DownloadFile& file) {
  if (status.code() != Code::kPermissionDenied) return status;
  return PermissionDenied(
      fmt::format("{} is not in the cache, and the cache cannot be written ({}): name another "
                  "folder with --hf-cache-dir",
                  file.name, status.ToString()));
}

}  // namespace

namespace {

/// One for each target: of files with the same bytes one is fetched.
Result<std::vector<Job>> MakeJobs(std::span<const DownloadFile> files) {
  std::vector<Job> jobs;
  std::map<std::filesystem::path, size_t> places;
  for (const DownloadFile& file : files) {
    const auto [place, is_new] = places.try_emplace(file.target, jobs.size());
    if (is_new) {
      jobs.emplace_back().file = &file;
      continue;
    }
    Job& first = jobs[place->second];
    if (first.file->bytes != file.bytes)
      return tessera::Fail(InvalidArgument(
          fmt::format("{} and {} are announced with the same hash and with {} and {} bytes",
                      first.file->name, file.name, first.file->bytes, file.bytes)));
    first.twins.push_back(&file);
  }
  return jobs;
}

}  // namespace

bool IsComplete(const DownloadFile& file) {
  constexpr uint64_t kAbsent = ~uint64_t{0};
  return FileSizeOr(file.target, kAbsent) == file.bytes;
}

Result<DownloadReport> Download(std::span<const DownloadFile> files, const Settings& settings,
                                const HttpFactory& http, const DownloadEvents& events) {
  TESSERA_ASSIGN_OR_RETURN(std::vector<Job> jobs, MakeJobs(files));
  std::vector<Job*> order;
  for (Job& job : jobs)
    if (!IsComplete(*job.file)) order.push_back(&job);
  DownloadReport report;
  const auto show = [&](uint64_t fetched) {
    if (!events.on_progress) return;
    DownloadProgress progress;
    progress.fetched = fetched;
    for (const Job& job : jobs) {
      const uint64_t done = job.part != nullptr ? job.part->PresentBytes() : job.file->bytes;
      progress.files.push_back({job.file->name, done, job.file->bytes});
      progress.done += done;
      progress.total += job.file->bytes;
    }
    events.on_progress(progress);
  };
  if (order.empty()) {
    show(0);
    return report;
  }
  // One order for all processes, so that none waits for one that waits for it.
  std::sort(order.begin(), order.end(),
            [](const Job* a, const Job* b) { return a->file->lock < b->file->lock; });
  for (Job* job : order) {
    const Status status = TakeLock(*job, events);
    if (!status.ok()) return tessera::Fail(ReadOnlyCache(status, *job->file));
  }
  uint64_t missing = 0;
  for (const Job& job : jobs)
    if (job.part != nullptr) missing += job.file->bytes - job.part->PresentBytes();
  TESSERA_RETURN_IF_ERROR(CheckRoom(missing, files.front().target.parent_path()));
  show(0);
  Pool pool(settings, http, events);
  const Status status = pool.Run(jobs, &report, show);
  show(report.fetched);
  if (!status.ok()) return tessera::Fail(status);
  return report;
}

}  // namespace tessera::hub
