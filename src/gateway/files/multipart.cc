// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/multipart.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "gateway/limits.h"
#include "net/http.h"

namespace tessera::gateway {
namespace {

constexpr size_t kBoundaryBytesMax = 70;
constexpr size_t kPaddingBytesMax = 64;  // White space behind a delimiter.

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool EqualsNoCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

using Parameters = std::vector<std::pair<std::string_view, std::string>>;

/// The value at the front of `text`, a quoted string or what goes up to ';', taken off it.
Result<std::string> TakeValue(std::string_view* text) {
  std::string value;
  if (!text->starts_with('"')) {
    const size_t end = std::min(text->find(';'), text->size());
    value = Trim(text->substr(0, end));
    text->remove_prefix(end);
    return value;
  }
  for (size_t i = 1; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == '"') {
      text->remove_prefix(i + 1);
      return value;
    }
    // Only these two are escaped: old browsers send paths with plain backslashes.
    const bool is_escape =
        c == '\\' && i + 1 < text->size() && ((*text)[i + 1] == '"' || (*text)[i + 1] == '\\');
    value += is_escape ? (*text)[++i] : c;
  }
  return Fail(InvalidArgument("a quoted text does not end"));
}

/// "first; a=b; c=\"d\"" -> its parameters; the first word is returned. Names occur once.
Result<std::string_view> ReadParameters(std::string_view text, Parameters* parameters) {
  const size_t end = std::min(text.find(';'), text.size());
  const std::string_view first = Trim(text.substr(0, end));
  text.remove_prefix(end);
  while (text.starts_with(';')) {
    text = Trim(text.substr(1));
    if (text.empty()) break;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return Fail(InvalidArgument("a parameter has no value"));
    const std::string_view name = Trim(text.substr(0, equals));
    text = Trim(text.substr(equals + 1));
    for (const auto& [other, value] : *parameters)
      if (EqualsNoCase(other, name)) return Fail(InvalidArgument("a parameter is given twice"));
    TESSERA_ASSIGN_OR_RETURN(std::string value, TakeValue(&text));
    parameters->emplace_back(name, std::move(value));
    text = Trim(text);
  }
  if (!text.empty()) return Fail(InvalidArgument("text follows a parameter"));
  return first;
}

const std::string* FindParameter(const Parameters& parameters, std::string_view name) {
  for (const auto& [key, value] : parameters)
    if (EqualsNoCase(key, name)) return &value;
  return nullptr;
}

/// What browsers write for the three characters that would end a quoted text.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view code = text.substr(i, 3);
    const bool is_code = code == "%22" || EqualsNoCase(code, "%0D") || EqualsNoCase(code, "%0A");
    plain += !is_code ? text[i] : code == "%22" ? '"' : Lower(code[2]) == 'd' ? '\r' : '\n';
    if (is_code) i += 2;
  }
  return plain;
}

/// RFC 8187 ("UTF-8''na%C3%AFve"): no client should send it in a form (RFC 7578), older Python
/// clients do.
Result<std::string> ReadExtended(std::string_view text) {
  const size_t language = text.find('\'');
  const size_t value =
      language == std::string_view::npos ? language : text.find('\'', language + 1);
  if (value == std::string_view::npos || !EqualsNoCase(text.substr(0, language), "utf-8"))
    return Fail(InvalidArgument("filename* is not of the form UTF-8''name"));
  return net::PercentDecode(text.substr(value + 1), /*plus_is_space=*/false);
}

Status ReadDisposition(std::string_view value, PartHead* head) {
  Parameters parameters;
  TESSERA_ASSIGN_OR_RETURN(const std::string_view kind, ReadParameters(value, &parameters));
  const std::string* name = FindParameter(parameters, "name");
  if (!EqualsNoCase(kind, "form-data") || name == nullptr)
    return InvalidArgument("Content-Disposition is not of the form form-data; name=\"...\"");
  head->name = Unescape(*name);
  if (const std::string* extended = FindParameter(parameters, "filename*")) {
    TESSERA_ASSIGN_OR_RETURN(head->filename, ReadExtended(*extended));
    head->is_file = true;
  } else if (const std::string* plain = FindParameter(parameters, "filename")) {
    head->filename = Unescape(*plain);
    head->is_file = true;
  }
  if (!IsUtf8(head->name) || !IsUtf8(head->filename))
    return InvalidArgument("a name in Content-Disposition is not UTF-8");
  return {};
}

Result<PartHead> ReadPartHead(std::string_view text) {
  PartHead head;
  bool has_disposition = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find("\r\n"), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 2));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0)
      return Fail(InvalidArgument("a line of a part's head is not of the form name: value"));
    if (std::ranges::any_of(line, [](char c) { return IsControl(c) && c != '\t'; }))
      return Fail(InvalidArgument("a part's head holds a control character"));
    const std::string_view value = Trim(line.substr(colon + 1));
    if (EqualsNoCase(line.substr(0, colon), "Content-Disposition")) {
      if (has_disposition) return Fail(InvalidArgument("a part has two Content-Dispositions"));
      has_disposition = true;
      TESSERA_RETURN_IF_ERROR(ReadDisposition(value, &head));
    } else if (EqualsNoCase(line.substr(0, colon), "Content-Type")) {
      head.content_type = value;
    }
  }
  if (!has_disposition) return Fail(InvalidArgument("a part has no Content-Disposition"));
  return head;
}

bool IsBoundaryChar(char c) {
  return (c >= '0' && c <= '9') || (Lower(c) >= 'a' && Lower(c) <= 'z') ||
         std::string_view("'()+_,-./:=? ").contains(c);
}

}  // namespace

Result<std::string> MultipartBoundary(std::string_view content_type) {
  Parameters parameters;
  TESSERA_ASSIGN_OR_RETURN(const std::string_view type, ReadParameters(content_type, &parameters));
  if (!EqualsNoCase(type, "multipart/form-data"))
    return Fail(InvalidArgument("expected Content-Type: multipart/form-data"));
  const std::string* boundary = FindParameter(parameters, "boundary");
  if (boundary == nullptr || boundary->empty() || boundary->size() > kBoundaryBytesMax ||
      boundary->ends_with(' ') || !std::ranges::all_of(*boundary, IsBoundaryChar))
    return Fail(InvalidArgument(
        fmt::format("the boundary of multipart/form-data must be 1 to {} characters of RFC 2046",
                    kBoundaryBytesMax)));
  return *boundary;
}

MultipartReader::MultipartReader(std::string_view boundary, MultipartSink* sink)
    // The first delimiter may come without the line end before it.
    : delimiter_("\r\n--" + std::string(boundary)), sink_(sink), buffer_("\r\n") {}

Status MultipartReader::Feed(std::string_view bytes) {
  buffer_ += bytes;
  while (true) {
    TESSERA_ASSIGN_OR_RETURN(const bool has_moved, Step());
    if (!has_moved) break;
  }
  buffer_.erase(0, std::exchange(start_, 0));
  return {};
}

Status MultipartReader::Finish() const {
  if (state_ == State::kEpilogue) return {};
  return InvalidArgument("the form ends before its closing delimiter");
}

Result<bool> MultipartReader::Step() {
  switch (state_) {
    case State::kPreamble:
      return ReadPreamble();
    case State::kDelimiter:
      return ReadDelimiter();
    case State::kHead:
      return ReadHead();
    case State::kData:
      return ReadData();
    case State::kEpilogue:
      start_ = buffer_.size();
      return false;
  }
  return false;
}

Result<bool> MultipartReader::ReadPreamble() {
  const size_t found = buffer_.find(delimiter_, start_);
  const bool is_there = found != std::string::npos;
  const size_t kept = std::min(buffer_.size() - start_, delimiter_.size() - 1);
  const size_t end = is_there ? found : buffer_.size() - kept;
  preamble_ += end - start_;
  start_ = end;
  if (preamble_ > kMultipartPreambleBytesMax)
    return Fail(InvalidArgument("the form does not begin with its boundary"));
  if (!is_there) return false;
  start_ += delimiter_.size();
  state_ = State::kDelimiter;
  return true;
}

Result<bool> MultipartReader::ReadDelimiter() {
  const std::string_view rest = std::string_view(buffer_).substr(start_);
  if (rest.size() < 2) return false;
  if (rest.starts_with("--")) {
    state_ = State::kEpilogue;
    return true;
  }
  const size_t blank = std::min(rest.find_first_not_of(" \t"), rest.size());
  if (blank > kPaddingBytesMax) return Fail(InvalidArgument("a delimiter is followed by blanks"));
  const std::string_view end = rest.substr(blank, 2);
  if (end.size() < 2 && std::string_view("\r\n").starts_with(end)) return false;
  if (end != "\r\n") return Fail(InvalidArgument("text follows a delimiter on its line"));
  if (++parts_ > kMultipartPartsMax)
    return Fail(
        ResourceExhausted(fmt::format("the form has more than {} parts", kMultipartPartsMax)));
  start_ += blank + 2;
  state_ = State::kHead;
  return true;
}

Result<bool> MultipartReader::ReadHead() {
  const std::string_view rest = std::string_view(buffer_).substr(start_);
  const size_t end = rest.starts_with("\r\n") ? 0 : rest.find("\r\n\r\n");
  const bool is_there = end != std::string_view::npos;
  // Three bytes may be those of its end.
  if (is_there ? end > kPartHeadBytesMax : rest.size() > kPartHeadBytesMax + 3)
    return Fail(
        ResourceExhausted(fmt::format("a part's head is larger than {} bytes", kPartHeadBytesMax)));
  if (!is_there) return false;
  TESSERA_ASSIGN_OR_RETURN(const PartHead head, ReadPartHead(rest.substr(0, end)));
  TESSERA_RETURN_IF_ERROR(sink_->OnPart(head));
  // The line end before the data may belong to a delimiter already, when there is no data.
  start_ += end + 2;
  state_ = State::kData;
  is_first_ = true;
  return true;
}

Result<bool> MultipartReader::ReadData() {
  const size_t found = buffer_.find(delimiter_, start_);
  const bool is_there = found != std::string::npos;
  const size_t kept = std::min(buffer_.size() - start_, delimiter_.size() - 1);
  const size_t end = is_there ? found : buffer_.size() - kept;
  if (is_first_ && end >= start_ + 2) {
    start_ += 2;
    is_first_ = false;
  } else if (is_first_ && !is_there) {
    return false;
  }
  if (end > start_) {
    TESSERA_RETURN_IF_ERROR(
        sink_->OnPartBytes(std::string_view(buffer_).substr(start_, end - start_)));
    start_ = end;
  }
  if (!is_there) return false;
  TESSERA_RETURN_IF_ERROR(sink_->OnPartEnd());
  start_ += delimiter_.size();
  state_ = State::kDelimiter;
  return true;
}

}  // namespace tessera::gateway
