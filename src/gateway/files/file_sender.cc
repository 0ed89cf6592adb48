// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/file_sender.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/file.h"
#include "gateway/api/context.h"

namespace tessera::gateway {
namespace {

constexpr int kThreads = 4;
constexpr size_t kTransfersMax = 256;  // Waiting for their turn.
constexpr size_t kPieceBytes = 256u << 10;
constexpr uint64_t kUnsentMax = 1u << 20;
constexpr int kPiecesPerTurn = 16;
constexpr auto kWaitForRoom = std::chrono::milliseconds(20);

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<std::optional<ByteRange>> ReadRange(std::string_view header, uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  if (!header.starts_with(kUnit)) return std::nullopt;
  header.remove_prefix(kUnit.size());
  const size_t dash = header.find('-');
  if (dash == std::string_view::npos || header.contains(',')) return std::nullopt;
  const std::string_view first = header.substr(0, dash), last = header.substr(dash + 1);
  const auto begin = Number(first), end = Number(last);
  if ((!first.empty() && !begin.has_value()) || (!last.empty() && !end.has_value()) ||
      (first.empty() && last.empty()) || (begin && end && *begin > *end))
    return std::nullopt;
  if (first.empty()) {  // The last so many.
    if (*end == 0 || size == 0) return Fail(OutOfRange("the file has no such bytes"));
    return ByteRange{size - std::min(*end, size), size};
  }
  if (*begin >= size) return Fail(OutOfRange("the file has no such bytes"));
  return ByteRange{*begin, end.has_value() ? std::min(*end, size - 1) + 1 : size};
}

/// One answer under way. Of one thread at a time.
class FileSender::Transfer {
 public:
  Transfer(int fd, net::ResponseWriter writer) : fd_(fd), writer_(std::move(writer)) {}
  ~Transfer() { close(fd_); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  int fd() const { return fd_; }
  const net::ResponseWriter& writer() const { return writer_; }
  ByteRange range{};

  /// Sends some. False: there is nothing left to do.
  bool Turn() {
    for (int i = 0; i < kPiecesPerTurn; ++i) {
      if (writer_.disconnected()) return false;
      if (range.begin == range.end) {
        (void)writer_.Finish();
        return false;
      }
      if (writer_.unsent_bytes() >= kUnsentMax) {
        // A peer that takes nothing is cut by the connection; until then others have a turn.
        const Status room = writer_.WaitForRoom(kWaitForRoom);
        return room.ok() || room.code() == Code::kDeadlineExceeded;
      }
      // An error or a file that became shorter: not finished, so that the peer sees a cut answer.
      if (!SendPiece()) return false;
    }
    return true;
  }

 private:
  bool SendPiece() {
    piece_.resize(std::min<uint64_t>(kPieceBytes, range.end - range.begin));
    ssize_t got = 0;
    do {
      got = pread(fd_, piece_.data(), piece_.size(), static_cast<off_t>(range.begin));
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    range.begin += static_cast<uint64_t>(got);
    return writer_.Write(std::string_view(piece_).substr(0, static_cast<size_t>(got))).ok();
  }

  const int fd_;
  const net::ResponseWriter writer_;
  std::string piece_;
};

Result<std::unique_ptr<FileSender>> FileSender::Start() {
  TESSERA_ASSIGN_OR_RETURN(auto workers, net::WorkerPool::Make(kThreads, kTransfersMax));
  return std::unique_ptr<FileSender>(new FileSender(std::move(workers)));
}

void FileSender::Continue(const std::shared_ptr<Transfer>& transfer) {
  // A full queue drops the transfer, which cuts its answer.
  (void)workers_->TryPost([this, transfer] {
    if (transfer->Turn()) Continue(transfer);
  });
}

Status FileSender::Send(const std::filesystem::path& path, const net::Request& request,
                        net::Headers headers, const net::ResponseWriter& writer) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, "opening", path);
  const auto transfer = std::make_shared<Transfer>(fd, writer);
  struct stat info {};
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "reading the size of", path);
  if (!S_ISREG(info.st_mode)) return NotFound(path.string() + " is no regular file");
  const auto size = static_cast<uint64_t>(info.st_size);
  transfer->range = {0, size};
  int status = 200;
  headers.Set("Accept-Ranges", "bytes");
  const auto known = request.headers.Find("If-Range");
  const bool is_same = !known.has_value() || known == headers.Find("ETag");
  if (const auto asked = request.headers.Find("Range"); asked.has_value() && is_same) {
    const auto range = ReadRange(*asked, size);
    if (!range.has_value()) {
      net::Response refusal =
          net::Response::Json(416, ErrorBody({.status = 416, .text = range.error().message()}));
      refusal.headers.Set("Content-Range", fmt::format("bytes */{}", size));
      (void)writer.Send(std::move(refusal));
      return {};
    }
    if (range->has_value()) {
      transfer->range = **range;
      status = 206;
      headers.Set("Content-Range", fmt::format("bytes {}-{}/{}", transfer->range.begin,
                                               transfer->range.end - 1, size));
    }
  }
  if (request.method == "HEAD") transfer->range.end = transfer->range.begin;
  const bool is_taken = workers_->TryPost([this, transfer, status, headers = std::move(headers)] {
    if (transfer->writer().StartStream(status, headers).ok()) Continue(transfer);
  });
  if (!is_taken)
    SendError(writer, {.status = 503, .text = "Too many files are being sent; try again"});
  return {};
}

}  // namespace tessera::gateway
