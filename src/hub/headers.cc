// SPDX-License-Identifier: Apache-2.0
#include "hub/headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/thread.h"
#include "hub/header_range.h"
#include "hub/patience.h"

namespace tessera::hub {
namespace {

// Holds the header of most safetensors files; a GGUF's vocabulary needs more.
constexpr uint64_t kFirstBytes = 64 << 10;

/// Appends [prefix.size(), end) of the file to `prefix`, in one request.
Status Extend(Http& http, const DownloadFile& file, uint64_t end, std::vector<std::byte>* prefix,
              std::atomic<uint64_t>* fetched) {
  HttpRequest request;
  request.url = file.url;
  request.bearer = file.bearer;
  request.aws = file.aws;
  request.range = ByteRange{prefix->size(), end};
  uint64_t skip = 0;
  bool is_complete = false;
  const HttpSink sink{
      [&](const HttpHead& head) -> Status {
        if (head.status != 206) {
          skip = prefix->size();  // A server without ranges gives the file from its beginning.
          return {};
        }
        const std::string* text = head.Find("content-range");
        const auto range = text != nullptr ? ParseContentRange(*text) : std::nullopt;
        if (!range || range->range.begin != prefix->size())
          return Unavailable(file.name + ": the server answers another range than was asked for");
        if (range->total != file.bytes)
          return DataLoss(fmt::format("{} has {} bytes, but {} were announced", file.name,
                                      range->total, file.bytes));
        return {};
      },
      [&](ByteSpan bytes) -> Status {
        *fetched += bytes.size();
        const uint64_t skipped = std::min<uint64_t>(skip, bytes.size());
        skip -= skipped;
        bytes = bytes.subspan(skipped);
        const uint64_t wanted = std::min<uint64_t>(bytes.size(), end - prefix->size());
        prefix->insert(prefix->end(), bytes.begin(),
                       bytes.begin() + static_cast<ptrdiff_t>(wanted));
        is_complete = prefix->size() == end;
        return is_complete && wanted < bytes.size() ? Cancelled("enough") : Status();
      }};
  const auto head = Get(http, request, sink);
  if (is_complete) return {};
  if (!head.has_value()) return head.error();
  const std::string answer =
      fmt::format("{}: {} answers {}", file.name, WithoutQuery(head->url), head->status);
  if (head->status == 401 || head->status == 403) return PermissionDenied(answer);
  if (head->status == 404) return NotFound(answer);
  return Unavailable(head->ok() ? answer + " and ends early" : answer);
}

/// Extend() again while the failure may pass.
Status ExtendPatiently(Http& http, const DownloadFile& file, uint64_t end, const Settings& settings,
                       std::vector<std::byte>* prefix, std::atomic<uint64_t>* fetched) {
  for (Patience patience(settings);;) {
    const Status status = Extend(http, file, end, prefix, fetched);
    if (status.ok() || status.code() != Code::kUnavailable || !patience.Wait()) return status;
  }
}

Status FetchOne(Http& http, const DownloadFile& file, const std::filesystem::path& folder,
                const Settings& settings, std::atomic<uint64_t>* fetched) {
  std::vector<std::byte> prefix;
  uint64_t needed = std::min(kFirstBytes, file.bytes);
  for (;;) {
    if (needed > prefix.size())
      TESSERA_RETURN_IF_ERROR(ExtendPatiently(http, file, needed, settings, &prefix, fetched));
    auto more = HeaderBytesNeeded(prefix);
    if (!more.has_value()) return more.error().WithContext(file.name);
    if (*more <= prefix.size() || prefix.size() == file.bytes) break;
    needed = std::min(*more, file.bytes);  // What is cut short is for the file's reader to say.
  }
  const std::filesystem::path path = folder / file.name;
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return ErrnoStatus(error.value(), "making", path.parent_path());
  TESSERA_ASSIGN_OR_RETURN(const auto writer, FileWriter::Create(path));
  TESSERA_RETURN_IF_ERROR(writer->Append(prefix));
  TESSERA_RETURN_IF_ERROR(writer->Resize(file.bytes));
  return writer->Finish();
}

}  // namespace

Result<uint64_t> FetchHeaders(std::span<const DownloadFile> files,
                              const std::filesystem::path& folder, const Settings& settings,
                              const HttpFactory& http) {
  std::atomic<size_t> next = 0;
  std::atomic<uint64_t> fetched = 0;
  std::mutex mutex;
  Status failure;
  const auto work = [&] {
    auto mine = http();
    Status status = StatusOf(mine);
    for (size_t i = 0; status.ok() && (i = next++) < files.size();)
      status = FetchOne(**mine, files[i], folder, settings, &fetched);
    if (status.ok()) return;
    next = files.size();
    const std::lock_guard lock(mutex);
    if (failure.ok()) failure = std::move(status);
  };
  const auto threads =
      std::min<size_t>(files.size(), static_cast<size_t>(std::max(1, settings.connections)));
  std::vector<std::thread> workers;
  for (size_t i = 1; i < threads; ++i)
    if (auto worker = StartThread("headers", work); worker.has_value())
      workers.push_back(*std::move(worker));
  work();
  for (std::thread& worker : workers) worker.join();
  if (!failure.ok()) return Fail(failure);
  return fetched.load();
}

}  // namespace tessera::hub
