// SPDX-License-Identifier: Apache-2.0
//
// MultipartReader: a multipart/form-data body (RFC 7578, framing of RFC 2046 section 5.1.1) in any
// split -> its parts, as they arrive. Keeps at most a part's head and a delimiter in memory.
//
// What of it is stricter than the text: parts begin with a head that names them in
// Content-Disposition; what stands before the first delimiter is at most
// kMultipartPreambleBytesMax; a delimiter line holds nothing but the delimiter. Quotes in names are
// read both as browsers write them (%22) and as curl does (\").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::gateway {

struct PartHead {
  std::string name;
  std::string filename{};  // As the client wrote it: it may hold folders. UTF-8.
  bool is_file = false;    // A filename was given, be it empty.
  std::string content_type{};
};

/// Told of the parts, in order. An error ends the reading and is what Feed returns.
class MultipartSink {
 public:
  virtual ~MultipartSink() = default;
  virtual Status OnPart(const PartHead& head) = 0;
  virtual Status OnPartBytes(std::string_view bytes) = 0;
  virtual Status OnPartEnd() = 0;
};

/// The boundary in a Content-Type header: 1 to 70 of the characters that RFC 2046 allows.
/// kInvalidArgument for another type, or without one.
Result<std::string> MultipartBoundary(std::string_view content_type);

/// One thread at a time.
class MultipartReader {
 public:
  /// Requires a boundary as MultipartBoundary gives it; `sink` must outlive the reader.
  MultipartReader(std::string_view boundary, MultipartSink* sink);

  /// kInvalidArgument says where the form is malformed, kResourceExhausted which limit is passed,
  /// else what the sink said. No call may follow an error.
  Status Feed(std::string_view bytes);
  /// kInvalidArgument unless the closing delimiter has come.
  Status Finish() const;

 private:
  enum class State : uint8_t { kPreamble, kDelimiter, kHead, kData, kEpilogue };

  /// Each does what can be done with buffer_; false: more bytes are needed.
  Result<bool> ReadPreamble();
  Result<bool> ReadDelimiter();
  Result<bool> ReadHead();
  Result<bool> ReadData();
  Result<bool> Step();

  const std::string delimiter_;  // CRLF "--" boundary.
  MultipartSink* const sink_;
  State state_ = State::kPreamble;
  std::string buffer_;
  size_t start_ = 0;  // Of what is not yet read in buffer_.
  size_t preamble_ = 0;
  bool is_first_ = false;  // The line end between a part's head and its data is still there.
  size_t parts_ = 0;
};

}  // namespace tessera::gateway
