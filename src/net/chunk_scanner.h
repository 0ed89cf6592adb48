// SPDX-License-Identifier: Apache-2.0
//
// ChunkScanner: the strict grammar of a chunked body (RFC 9112 section 7.1), checked byte by byte
// before Boost.Beast decodes it: Beast takes "0x1" for a size of 0, which a proxy may read as 1,
// and then one sees a second request where the other sees data.
//   chunk    = 1*16 HEXDIG [";" extension of visible characters] CRLF data CRLF
//   last     = 1*"0" [";" ...] CRLF, then trailer lines "token:value" CRLF, then CRLF
// One thread; owned by a RequestParser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/errors.h"

namespace tessera::net {

class ChunkScanner {
 public:
  /// `line_bytes_max` bounds one chunk line, and all trailers together.
  explicit ChunkScanner(uint32_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  /// Scans new bytes; stops behind the end of the body. Returns how many are good.
  std::expected<size_t, HttpError> Scan(std::string_view input);
  bool is_done() const { return state_ == State::kDone; }
  /// The last chunk line is read, the end of the body not yet.
  bool is_in_trailers() const { return state_ == State::kTrailer || state_ == State::kTrailerLf; }

 private:
  enum class State : uint8_t {
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailer,
    kTrailerLf,
    kDone
  };

  bool ScanByte(char byte);  // False: refused. Every state but kData and kDone.
  bool ScanSize(char byte);
  bool EndTrailerLine();

  const uint32_t line_bytes_max_;
  State state_ = State::kSize;
  uint64_t size_ = 0;        // Of the chunk, then what is left of its data.
  uint32_t digits_ = 0;      // Of the size.
  uint64_t line_bytes_ = 0;  // Of the chunk line, or of the trailers.
  std::string trailer_;
};

}  // namespace tessera::net
