// SPDX-License-Identifier: Apache-2.0
#include "net/http.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/ascii.h"

namespace tessera::net {

std::string_view ReasonPhrase(int status) {
  static constexpr std::pair<int, std::string_view> kPhrases[] = {
      {100, "Continue"},
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {424, "Failed Dependency"},
      {428, "Precondition Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {499, "Client Closed Request"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {507, "Insufficient Storage"},
  };
  for (const auto& [code, phrase] : kPhrases)
    if (code == status) return phrase;
  return "Unknown";
}

void Headers::Add(std::string_view name, std::string_view value) {
  fields_.emplace_back(name, value);
}

void Headers::Set(std::string_view name, std::string_view value) {
  Remove(name);
  Add(name, value);
}

void Headers::Remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return EqualsNoCase(field.first, name); });
}

std::optional<std::string_view> Headers::Find(std::string_view name) const {
  for (const auto& [key, value] : fields_)
    if (EqualsNoCase(key, name)) return value;
  return std::nullopt;
}

bool Headers::HasToken(std::string_view name, std::string_view token) const {
  for (const auto& [key, value] : fields_) {
    if (!EqualsNoCase(key, name)) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      if (EqualsNoCase(Trim(rest.substr(0, comma)), token)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

Status Headers::Check() const {
  for (const auto& [name, value] : fields_) {
    if (!IsToken(name))
      return InvalidArgument(
          "a header name is empty or holds a character that "
          "names may not have");
    if (!std::ranges::all_of(value, IsFieldChar))
      return InvalidArgument(fmt::format("the value of header {} holds a control character", name));
  }
  return {};
}

std::optional<std::string_view> Request::Query(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return value;
  return std::nullopt;
}

std::string_view Request::Param(std::string_view name) const {
  for (const auto& [key, value] : params)
    if (key == name) return value;
  return {};
}

Response Response::Json(int status, std::string body) {
  return {status, {{"Content-Type", "application/json"}}, std::move(body)};
}

Response Response::Text(int status, std::string body) {
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body)};
}

}  // namespace tessera::net
