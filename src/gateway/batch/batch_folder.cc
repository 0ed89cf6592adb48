// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRowsFile = "rows.jsonl", kResultsFile = "results.jsonl";
constexpr size_t kPieceBytes = 256u << 10;

Result<std::string> ReadSpan(int fd, uint64_t offset, uint64_t size, const fs::path& folder) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrnoStatus(errno, "reading", folder));
    if (got == 0) return Fail(DataLoss(folder.string() + ": a file became shorter"));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

/// Calls `on_line` with each whole line and its offset; what follows the last is not one. Returns
/// where it begins.
Result<uint64_t> ForEachLine(int fd, const fs::path& folder,
                             const std::function<Status(std::string_view, uint64_t)>& on_line) {
  std::string buffer, piece(kPieceBytes, '\0');
  uint64_t begin = 0, read = 0;
  while (true) {
    const ssize_t got = pread(fd, piece.data(), piece.size(), static_cast<off_t>(read));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrnoStatus(errno, "reading", folder));
    if (got == 0) return begin;
    read += static_cast<uint64_t>(got);
    buffer.append(piece.data(), static_cast<size_t>(got));
    size_t start = 0;
    for (size_t end; (end = buffer.find('\n', start)) != std::string::npos; start = end + 1)
      TESSERA_RETURN_IF_ERROR(
          on_line(std::string_view(buffer).substr(start, end - start), begin + start));
    buffer.erase(0, start);
    begin += start;
  }
}

/// How every line of results begins, as Append writes it: enough to find one without reading all.
struct ResultHead {
  size_t row = 0;
  bool has_failed = false;
};
std::optional<ResultHead> ReadHead(std::string_view line) {
  constexpr std::string_view kRow = "{\"row\":", kStatus = ",\"status\":";
  ResultHead head;
  int status = 0;
  if (!line.starts_with(kRow) || !line.ends_with('}')) return std::nullopt;
  const char* const end = line.data() + line.size();
  const auto row = std::from_chars(line.data() + kRow.size(), end, head.row);
  std::string_view rest(row.ptr, static_cast<size_t>(end - row.ptr));
  if (row.ec != std::errc() || !rest.starts_with(kStatus)) return std::nullopt;
  const auto code = std::from_chars(rest.data() + kStatus.size(), end, status);
  rest = {code.ptr, static_cast<size_t>(end - code.ptr)};
  head.has_failed = rest.starts_with(",\"error\":");
  if (code.ec != std::errc() || (!head.has_failed && !rest.starts_with(",\"body\":")))
    return std::nullopt;
  return head;
}

}  // namespace

// --- Maker ---------------------------------------------------------------------------------

Result<std::unique_ptr<BatchFolder::Maker>> BatchFolder::Maker::Make(const fs::path& folder) {
  if (mkdir(folder.c_str(), S_IRWXU) != 0) return Fail(ErrnoStatus(errno, "making", folder));
  std::unique_ptr<Maker> maker(new Maker(folder));
  TESSERA_ASSIGN_OR_RETURN(maker->writer_, FileWriter::Create(folder / kRowsFile));
  return maker;
}

BatchFolder::Maker::~Maker() {
  if (is_kept_) return;
  writer_.reset();
  std::error_code ignored;  // The next start removes what has no record.
  fs::remove_all(folder_, ignored);
}

Status BatchFolder::Maker::Add(std::string_view row) {
  if (writer_->size() + buffer_.size() + row.size() > kBatchRowsBytesMax)
    return ResourceExhausted(fmt::format(
        "content: the rows have more than {} bytes; make several batches", kBatchRowsBytesMax));
  ++rows_;
  buffer_ += row;
  buffer_ += '\n';
  if (buffer_.size() < kPieceBytes) return {};
  const std::string bytes = std::exchange(buffer_, {});
  return writer_->Append(AsBytes(bytes));
}

Status BatchFolder::Maker::Finish() {
  TESSERA_RETURN_IF_ERROR(writer_->Append(AsBytes(buffer_)));
  TESSERA_RETURN_IF_ERROR(writer_->Finish());
  TESSERA_RETURN_IF_ERROR(SyncDirectory(folder_));
  return SyncDirectory(folder_.parent_path());
}

// --- BatchFolder ---------------------------------------------------------------------------

Result<std::unique_ptr<BatchFolder>> BatchFolder::Open(const fs::path& folder, Use use) {
  const int rows = open((folder / kRowsFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (rows < 0) return Fail(ErrnoStatus(errno, "opening", folder / kRowsFile));
  const int flags = use == Use::kAppend ? O_RDWR | O_CREAT : O_RDONLY;
  const int results = open((folder / kResultsFile).c_str(), flags | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const int error = errno;
  std::unique_ptr<BatchFolder> opened(new BatchFolder(folder, rows, results));
  TESSERA_RETURN_IF_ERROR(opened->LoadRows());
  if (results < 0 && error == ENOENT) return opened;  // To be read before there is any.
  if (results < 0) return Fail(ErrnoStatus(error, "opening", folder / kResultsFile));
  TESSERA_RETURN_IF_ERROR(opened->LoadResults());
  if (use == Use::kAppend && ftruncate(results, static_cast<off_t>(opened->end_)) != 0)
    return Fail(ErrnoStatus(errno, "cutting half a result off", folder));
  return opened;
}

BatchFolder::~BatchFolder() {
  close(rows_fd_);
  if (results_fd_ >= 0) close(results_fd_);
}

Status BatchFolder::LoadRows() {
  const auto end = ForEachLine(rows_fd_, folder_, [&](std::string_view line, uint64_t offset) {
    rows_.push_back({offset, line.size()});
    return Status();
  });
  results_.resize(rows_.size());
  return StatusOf(end);
}

Status BatchFolder::Note(std::string_view line, uint64_t offset) {
  const auto head = ReadHead(line);
  if (!head.has_value() || head->row >= results_.size())
    return DataLoss(folder_.string() + ": a result is damaged");
  Span& span = results_[head->row];
  if (span.size > 0) return DataLoss(folder_.string() + ": a row has two results");
  span = {offset, line.size()};
  ++(head->has_failed ? failed_ : completed_);
  return {};
}

Status BatchFolder::LoadResults() {
  TESSERA_ASSIGN_OR_RETURN(
      end_, ForEachLine(results_fd_, folder_, [&](std::string_view line, uint64_t offset) {
        return Note(line, offset);
      }));
  return {};
}

Result<std::string> BatchFolder::Row(size_t row) const {
  return ReadSpan(rows_fd_, rows_[row].offset, rows_[row].size, folder_);
}

Result<RowResult> BatchFolder::ResultOf(size_t row) const {
  TESSERA_ASSIGN_OR_RETURN(const std::string line, ReadSpan(results_fd_, results_[row].offset,
                                                            results_[row].size, folder_));
  TESSERA_ASSIGN_OR_RETURN(json::Value parsed,
                           json::Parse(line, {.max_bytes = kBatchAnswerBytesMax * 8}, "result"));
  if (!parsed.is_object()) return Fail(DataLoss(folder_.string() + ": a result is damaged"));
  json::Object& object = parsed.get_object();
  RowResult result{.row = row};
  TESSERA_ASSIGN_OR_RETURN(const int64_t status, json::GetInt(object, "status", 0));
  result.status = static_cast<int>(status);
  TESSERA_ASSIGN_OR_RETURN(result.error, json::GetString(object, "error", ""));
  if (json::Value* body = object.if_contains("body")) result.body = std::move(*body);
  return result;
}

Status BatchFolder::Append(const RowResult& result) {
  json::Object object{{"row", result.row}, {"status", result.status}};
  if (result.has_failed())
    object["error"] = result.error;
  else
    object["body"] = result.body;
  std::string line = json::Serialize(object);
  const uint64_t size = line.size();
  line += '\n';
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = pwrite(results_fd_, line.data() + done, line.size() - done,
                                   static_cast<off_t>(end_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      // Half a line would be taken for the beginning of the next.
      if (ftruncate(results_fd_, static_cast<off_t>(end_)) != 0)
        return ErrnoStatus(errno, "cutting half a result off", folder_);
      return ErrnoStatus(error, "writing a result in", folder_);
    }
    done += static_cast<size_t>(written);
  }
  results_[result.row] = {end_, size};
  end_ += line.size();
  ++(result.has_failed() ? failed_ : completed_);
  return {};
}

Status BatchFolder::Sync() const {
  if (fsync(results_fd_) != 0) return ErrnoStatus(errno, "syncing", folder_);
  return {};
}

}  // namespace tessera::gateway
