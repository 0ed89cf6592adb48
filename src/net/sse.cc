// SPDX-License-Identifier: Apache-2.0
#include "net/sse.h"

#include <fmt/format.h>

#include "base/check.h"

namespace tessera::net {
namespace {

bool IsOneLine(std::string_view text) {
  return text.find_first_of("\r\n") == text.npos;
}

void AppendField(std::string_view name, std::string_view value, std::string* out) {
  out->append(name).append(": ").append(value).push_back('\n');
}

void AppendData(std::string_view data, std::string* out) {
  while (true) {
    const size_t end = data.find_first_of("\r\n");
    AppendField("data", data.substr(0, end), out);
    if (end == data.npos) return;
    const bool is_crlf = data[end] == '\r' && end + 1 < data.size() && data[end + 1] == '\n';
    data.remove_prefix(end + (is_crlf ? 2 : 1));
  }
}

}  // namespace

std::string EncodeSse(const SseEvent& event) {
  TESSERA_CHECK(IsOneLine(event.event) && IsOneLine(event.id));
  std::string out;
  if (!event.event.empty()) AppendField("event", event.event, &out);
  if (!event.id.empty()) AppendField("id", event.id, &out);
  AppendData(event.data, &out);
  out.push_back('\n');
  return out;
}

std::string EncodeSseData(std::string_view data) {
  std::string out;
  out.reserve(data.size() + 8);
  AppendData(data, &out);
  out.push_back('\n');
  return out;
}

std::string EncodeSseComment(std::string_view text) {
  TESSERA_CHECK(IsOneLine(text));
  return fmt::format(": {}\n\n", text);
}

SseParser::SseParser(Sink sink, uint64_t event_bytes_max)
    : sink_(std::move(sink)), event_bytes_max_(event_bytes_max) {}

Status SseParser::Feed(std::string_view bytes) {
  static constexpr std::string_view kBom = "\xef\xbb\xbf";
  if (failed_) return ResourceExhausted("the event stream was given up before");
  while (!bytes.empty()) {
    if (skip_lf_) {
      skip_lf_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    event_bytes_ += part.size();
    if (event_bytes_ > event_bytes_max_) {
      failed_ = true;
      return ResourceExhausted(
          fmt::format("an event of the stream is larger than {} bytes", event_bytes_max_));
    }
    line_.append(part);
    if (end == bytes.npos) return {};
    skip_lf_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (is_first_line_ && line_.starts_with(kBom)) line_.erase(0, kBom.size());
    is_first_line_ = false;
    EndLine();
    line_.clear();
  }
  return {};
}

void SseParser::EndLine() {
  if (line_.empty()) return EndEvent();
  if (line_[0] == ':') {
    ++comments_;
    return;
  }
  const std::string_view line = line_;
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    if (has_data_) event_.data.push_back('\n');
    event_.data.append(value);
    has_data_ = true;
  } else if (name == "event") {
    event_.event = value;
  } else if (name == "id" && !value.contains('\0')) {
    event_.id = value;
  }
}

void SseParser::EndEvent() {
  event_bytes_ = 0;
  if (has_data_) sink_(event_);
  // The id stays: it is the last seen one for all events that follow.
  event_.event.clear();
  event_.data.clear();
  has_data_ = false;
}

}  // namespace tessera::net
