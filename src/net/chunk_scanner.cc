// SPDX-License-Identifier: Apache-2.0
#include "net/chunk_scanner.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/ascii.h"

namespace tessera::net {
namespace {

constexpr uint32_t kSizeDigitsMax = 16;  // Of a 64-bit number.

}  // namespace

std::expected<size_t, HttpError> ChunkScanner::Scan(std::string_view input) {
  size_t position = 0;
  while (position < input.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const auto bytes = std::min<uint64_t>(size_, input.size() - position);
      position += static_cast<size_t>(bytes);
      size_ -= bytes;
      if (size_ == 0) state_ = State::kDataCr;
      continue;
    }
    if (!ScanByte(input[position]))
      return std::unexpected(
          HttpError{400, "invalid_body", "the chunked body is not as RFC 9112 section 7.1 asks"});
    if (++line_bytes_ > line_bytes_max_)
      return std::unexpected(HttpError{
          400, "invalid_body",
          fmt::format("a chunk line or the trailers are longer than {} bytes", line_bytes_max_)});
    ++position;
  }
  return position;
}

bool ChunkScanner::ScanByte(char byte) {
  switch (state_) {
    case State::kSize:
      return ScanSize(byte);
    case State::kExtension:
      if (byte == '\r') state_ = State::kSizeLf;
      return byte == '\r' || IsFieldChar(byte);
    case State::kSizeLf:
      state_ = size_ > 0 ? State::kData : State::kTrailer;
      line_bytes_ = 0;
      return byte == '\n';
    case State::kDataCr:
      state_ = State::kDataLf;
      return byte == '\r';
    case State::kDataLf:
      state_ = State::kSize;
      digits_ = 0;
      line_bytes_ = 0;
      return byte == '\n';
    case State::kTrailer:
      if (byte == '\r') {
        state_ = State::kTrailerLf;
      } else {
        trailer_.push_back(byte);
      }
      return byte == '\r' || IsFieldChar(byte);
    case State::kTrailerLf:
      return byte == '\n' && EndTrailerLine();
    case State::kData:
    case State::kDone:
      break;
  }
  return false;
}

bool ChunkScanner::ScanSize(char byte) {
  if (const int digit = HexValue(byte); digit >= 0) {
    size_ = (digits_ == 0 ? 0 : size_ * 16) + static_cast<uint64_t>(digit);
    return ++digits_ <= kSizeDigitsMax;
  }
  if (byte == ';') state_ = State::kExtension;
  if (byte == '\r') state_ = State::kSizeLf;
  return digits_ > 0 && state_ != State::kSize;
}

bool ChunkScanner::EndTrailerLine() {
  if (trailer_.empty()) {
    state_ = State::kDone;
    return true;
  }
  const bool is_field = IsToken(trailer_.substr(0, trailer_.find(':'))) && trailer_.contains(':');
  trailer_.clear();
  state_ = State::kTrailer;
  return is_field;
}

}  // namespace tessera::net
