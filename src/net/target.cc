// SPDX-License-Identifier: Apache-2.0
//
// Request targets (RFC 9112 section 3.2, RFC 3986): decoding and normalising.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "net/ascii.h"
#include "net/http.h"

namespace tessera::net {
namespace {

bool HasControl(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return !IsFieldChar(c) || c == '\t'; });
}

/// True if a part between '/' or '\' is "..": after decoding "%2F" a segment may hold such parts,
/// and a handler might use it as a file name.
bool HasParentStep(std::string_view segment) {
  size_t start = 0;
  while (start <= segment.size()) {
    const size_t end = std::min(segment.find_first_of("/\\", start), segment.size());
    if (segment.substr(start, end - start) == "..") return true;
    start = end + 1;
  }
  return false;
}

Status ParseSegments(std::string_view path, uint32_t segments_max, Request* request) {
  size_t start = 1;  // Past the leading '/'.
  while (start <= path.size()) {
    const size_t slash = path.find('/', start);
    const size_t end = std::min(slash, path.size());
    const bool last = slash == std::string_view::npos;
    TESSERA_ASSIGN_OR_RETURN(std::string segment,
                             PercentDecode(path.substr(start, end - start), false));
    if (HasControl(segment)) return InvalidArgument("the path holds a control character");
    if (!IsUtf8(segment)) return InvalidArgument("the path is not valid UTF-8");
    if (segment == "." || segment == "..") {
      if (segment == "..") {
        if (request->segments.empty()) return InvalidArgument("the path steps out of the root");
        request->segments.pop_back();
      }
      if (last) request->segments.emplace_back();  // "/a/." is the folder "/a/".
    } else {
      if (HasParentStep(segment)) return InvalidArgument("a path segment holds \"..\"");
      if (request->segments.size() >= segments_max)
        return InvalidArgument(fmt::format("the path has more than {} segments", segments_max));
      request->segments.push_back(std::move(segment));
    }
    start = end + 1;
  }
  if (request->segments.size() == 1 && request->segments[0].empty()) request->segments.clear();
  if (request->segments.empty()) request->path = "/";
  for (const std::string& segment : request->segments) request->path.append("/").append(segment);
  return {};
}

Status ParseQuery(std::string_view query, uint32_t params_max, Request* request) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    if (request->query.size() >= params_max)
      return InvalidArgument(fmt::format("the query has more than {} parameters", params_max));
    const size_t equals = std::min(pair.find('='), pair.size());
    TESSERA_ASSIGN_OR_RETURN(std::string name, PercentDecode(pair.substr(0, equals), true));
    TESSERA_ASSIGN_OR_RETURN(std::string value,
                             PercentDecode(pair.substr(std::min(equals + 1, pair.size())), true));
    if (name.contains('\0') || value.contains('\0'))
      return InvalidArgument("the query holds a NUL character");
    if (!IsUtf8(name) || !IsUtf8(value)) return InvalidArgument("the query is not valid UTF-8");
    request->query.emplace_back(std::move(name), std::move(value));
  }
  return {};
}

}  // namespace

Result<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return Fail(InvalidArgument("a '%' is not followed by two hexadecimal digits"));
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out.push_back(text[i] == '+' && plus_is_space ? ' ' : text[i]);
    }
  }
  return out;
}

std::string PercentEncode(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (IsDigit(c) || IsAlpha(c) || (c != '\0' && std::string_view("-._~").contains(c))) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

Status ParseTarget(std::string_view target, uint32_t segments_max, uint32_t query_params_max,
                   Request* request) {
  request->path.clear();
  request->segments.clear();
  request->query.clear();
  if (target == "*") {
    request->path = "*";
    return {};
  }
  if (target.contains('#')) return InvalidArgument("the target holds a fragment");
  if (!target.starts_with('/')) return InvalidArgument("the target does not begin with '/'");
  const size_t question = std::min(target.find('?'), target.size());
  TESSERA_RETURN_IF_ERROR(ParseSegments(target.substr(0, question), segments_max, request));
  return ParseQuery(target.substr(std::min(question + 1, target.size())), query_params_max,
                    request);
}

}  // namespace tessera::net
