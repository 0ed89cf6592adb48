// SPDX-License-Identifier: Apache-2.0
//
// FileSender: files as answers, of any size, without one in memory. Threads of its own, so that
// slow peers keep none of the server's: a download whose peer takes nothing gives its turn to the
// next. Range requests (RFC 9110 section 14) of one range.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "net/response_writer.h"
#include "net/worker_pool.h"

namespace tessera::gateway {

/// Bytes [begin, end) of a file.
struct ByteRange {
  uint64_t begin = 0, end = 0;
};

/// "bytes=0-99", "bytes=100-", "bytes=-5" of a file of `size`. Nothing: to be ignored, since it is
/// none or asks for several. kOutOfRange: 416.
Result<std::optional<ByteRange>> ReadRange(std::string_view header, uint64_t size);

class FileSender {
 public:
  static Result<std::unique_ptr<FileSender>> Start();
  /// Answers under way are cut.
  ~FileSender() = default;

  /// Opens the file, which must be a regular one and no link, and answers the request with its
  /// bytes: 200 or 206; 416 for a range outside of it, 503 when too many are being sent. An error
  /// (kNotFound, ...) means that nothing was answered yet.
  Status Send(const std::filesystem::path& path, const net::Request& request, net::Headers headers,
              const net::ResponseWriter& writer);

 private:
  class Transfer;
  explicit FileSender(std::unique_ptr<net::WorkerPool> workers) : workers_(std::move(workers)) {}
  void Continue(const std::shared_ptr<Transfer>& transfer);

  std::unique_ptr<net::WorkerPool> workers_;
};

}  // namespace tessera::gateway
