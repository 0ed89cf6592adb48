// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events (WHATWG HTML, "Server-sent events"): writing events, and an incremental parser
// for clients. Plain values; a parser belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::net {

struct SseEvent {
  std::string event{};  // Empty: the default type, "message".
  std::string data{};   // Lines are separated by '\n'.
  std::string id{};     // Empty: none. Last seen one when parsed.
};

/// "data: ...\n\n", one data line per line of text; "\r\n" and "\r" count as line ends. `event` and
/// `id` must not hold line ends (CHECK: they are ours).
std::string EncodeSse(const SseEvent& event);
/// The same for the usual case of data alone.
std::string EncodeSseData(std::string_view data);
/// ": text\n\n": ignored by clients, keeps proxies and idle timers content. `text` without line
/// ends.
std::string EncodeSseComment(std::string_view text);

class SseParser {
 public:
  using Sink = std::function<void(SseEvent event)>;

  /// `event_bytes_max` bounds one event's lines together.
  explicit SseParser(Sink sink, uint64_t event_bytes_max = 16u << 20);

  /// Bytes in any split; complete events go to the sink in order. kResourceExhausted past the
  /// limit, and for every call after that. An event without its blank line is never reported, as
  /// the standard asks.
  Status Feed(std::string_view bytes);
  uint64_t comments() const { return comments_; }

 private:
  void EndLine();
  void EndEvent();

  Sink sink_;
  uint64_t event_bytes_max_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool skip_lf_ = false;  // The last byte was a CR: a LF after it belongs to the same line end.
  bool is_first_line_ = true;  // May begin with a byte order mark.
  bool failed_ = false;
  uint64_t event_bytes_ = 0;
  uint64_t comments_ = 0;
};

}  // namespace tessera::net
