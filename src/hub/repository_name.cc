// SPDX-License-Identifier: Apache-2.0
#include "hub/repository_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "hub/limits.h"

namespace tessera::hub {
namespace {

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// One of "org" and "repo". "--" is what the cache's folder names put for the slash.
bool IsNamePart(std::string_view part) {
  const auto allowed = [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  return !part.empty() && part.size() <= kMaxNamePartBytes &&
         std::all_of(part.begin(), part.end(), allowed) && part.front() != '-' &&
         part.front() != '.' && part.back() != '-' && part.back() != '.' &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos;
}

bool IsRepository(std::string_view text) {
  const size_t slash = text.find('/');
  return slash != std::string_view::npos && IsNamePart(text.substr(0, slash)) &&
         IsNamePart(text.substr(slash + 1));
}

bool TakePrefix(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

std::string Shown(std::string_view text) {
  return EscapeNonUtf8(std::string(text.substr(0, 120)));
}

Status BadName(std::string_view text, std::string_view why) {
  return InvalidArgument(
      fmt::format("\"{}\" {}: expected org/repo[@revision][:QUANTISATION]", Shown(text), why));
}

/// "org/repo[@revision][:QUANT]", without scheme.
Result<RepositoryName> ParseHubName(std::string_view text) {
  RepositoryName name;
  std::string_view rest = text;
  if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    name.quantization = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    const bool plain = std::all_of(name.quantization.begin(), name.quantization.end(), [](char c) {
      return IsAlphanumeric(c) || c == '_' || c == '-' || c == '.';
    });
    if (name.quantization.empty() || name.quantization.size() > 64 || !plain)
      return Fail(BadName(text, "has no quantisation after the colon"));
  }
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    name.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
    TESSERA_RETURN_IF_ERROR(CheckRevision(name.revision));
  }
  if (!IsRepository(rest)) return Fail(BadName(text, "is no repository name"));
  name.repository = rest;
  return name;
}

/// The path of a page of the hub: "org/repo", "org/repo/tree/REV", "org/repo/resolve/REV/FILE".
Result<RepositoryName> ParseHubPage(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view whole = path;
  const size_t org = path.find('/');
  const size_t end = org == std::string_view::npos ? org : path.find('/', org + 1);
  if (end == std::string_view::npos) return ParseHubName(path);
  TESSERA_ASSIGN_OR_RETURN(RepositoryName name, ParseHubName(path.substr(0, end)));
  path.remove_prefix(end + 1);
  if (TakePrefix(&path, "tree/")) {
    name.revision = path;
  } else if (TakePrefix(&path, "resolve/") || TakePrefix(&path, "blob/")) {
    const size_t slash = path.find('/');
    name.revision = path.substr(0, slash);
    if (slash != std::string_view::npos) name.file = path.substr(slash + 1);
    TESSERA_RETURN_IF_ERROR(CheckFileName(name.file));
    if (!name.file.ends_with(".gguf"))
      return Fail(InvalidArgument(
          fmt::format("{} names one file that is no GGUF: name the repository {} instead",
                      Shown(whole), name.repository)));
  } else {
    return Fail(BadName(whole, "is no page of a repository"));
  }
  TESSERA_RETURN_IF_ERROR(CheckRevision(name.revision));
  return name;
}

/// A GGUF on the hub's host that is no page of a repository.
bool IsPlainFile(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  return path.ends_with(".gguf") && path.find("/resolve/") == std::string_view::npos &&
         path.find("/blob/") == std::string_view::npos;
}

Result<RepositoryName> ParseS3(std::string_view text, std::string_view rest) {
  RepositoryName name;
  name.place = Place::kS3;
  const size_t slash = rest.find('/');
  name.bucket = rest.substr(0, slash);
  std::string_view prefix = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  const size_t base = prefix.rfind('/') == std::string_view::npos ? 0 : prefix.rfind('/');
  if (const size_t colon = prefix.find(':', base); colon != std::string_view::npos) {
    name.quantization = prefix.substr(colon + 1);
    prefix = prefix.substr(0, colon);
  }
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  name.prefix = prefix;
  const auto allowed = [](char c) { return IsAlphanumeric(c) || c == '-' || c == '.'; };
  if (name.bucket.size() < 3 || name.bucket.size() > 63 ||
      !std::all_of(name.bucket.begin(), name.bucket.end(), allowed))
    return Fail(InvalidArgument(
        fmt::format("\"{}\" names no bucket: expected s3://BUCKET/FOLDER", Shown(text))));
  if (!name.prefix.empty()) TESSERA_RETURN_IF_ERROR(CheckFileName(name.prefix));
  return name;
}

Result<RepositoryName> ParseUrl(std::string_view text) {
  RepositoryName name;
  name.place = Place::kUrl;
  name.url = text;
  const std::string_view path = text.substr(0, text.find_first_of("?#"));
  const size_t host = text.find("://") + 3;
  if (text.size() > kMaxUrlBytes || text.find_first_of(" \t\r\n\\") != std::string_view::npos)
    return Fail(InvalidArgument("the address of the model is too long or has spaces in it"));
  if (text.substr(host, path.find('/', host) - host).find('@') != std::string_view::npos)
    return Fail(
        InvalidArgument("an address with a password in it is not taken: it would be "
                        "written down with the model"));
  if (!path.ends_with(".gguf") || path.find('/', host) == std::string_view::npos)
    return Fail(InvalidArgument(fmt::format(
        "\"{}\" is neither a repository of the hub nor the address of a .gguf file", Shown(text))));
  return name;
}

}  // namespace

bool IsCommit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status CheckFileName(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument(fmt::format("the file name \"{}\" {}", Shown(name), why));
  };
  if (name.empty()) return refuse("is empty");
  if (name.size() > kMaxFileNameBytes)
    return refuse(fmt::format("has {} bytes, more than {}", name.size(), kMaxFileNameBytes));
  if (!IsUtf8(name)) return refuse("is no UTF-8");
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\')
      return refuse("has a control character or backslash in it");
  for (std::string_view rest = name;;) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty() || part == "." || part == "..")
      return refuse("reaches outside the model's folder");
    if (part.size() > kMaxFileNamePartBytes)
      return refuse(fmt::format("has a part of more than {} bytes", kMaxFileNamePartBytes));
    if (part.size() == rest.size()) return {};
    rest.remove_prefix(part.size() + 1);
  }
}

Status CheckRevision(std::string_view revision) {
  if (revision.empty() || revision.size() > kMaxRevisionBytes)
    return InvalidArgument(fmt::format("a revision has 1 to {} characters, this one {}",
                                       kMaxRevisionBytes, revision.size()));
  if (revision.find_first_of(" ~^:?*[") != std::string_view::npos || !CheckFileName(revision).ok())
    return InvalidArgument(fmt::format(
        "\"{}\" is no revision: expected a branch, a tag or a commit", Shown(revision)));
  return {};
}

bool IsNameShaped(std::string_view text) {
  for (const std::string_view scheme : {"hf://", "https://", "http://", "s3://", "file:"})
    if (text.starts_with(scheme)) return true;
  if (text.ends_with(".gguf")) return false;  // Of which a path is likelier meant.
  const std::string_view repository = text.substr(0, text.find_first_of("@:"));
  return IsRepository(repository);
}

Result<RepositoryName> ParseRepositoryName(std::string_view text, std::string_view endpoint) {
  std::string_view rest = text;
  if (TakePrefix(&rest, "hf://")) return ParseHubName(rest);
  if (TakePrefix(&rest, "s3://")) return ParseS3(text, rest);
  if (TakePrefix(&rest, "file:")) {
    if (rest.starts_with("///")) rest.remove_prefix(2);
    if (rest.empty() || rest.starts_with("//"))
      return Fail(
          InvalidArgument(fmt::format("\"{}\" names no file: expected file:PATH", Shown(text))));
    RepositoryName name;
    name.place = Place::kPath;
    name.path = rest;
    return name;
  }
  for (const std::string_view hub :
       {endpoint, std::string_view("https://huggingface.co"), std::string_view("https://hf.co")})
    if (!hub.empty() && rest.starts_with(hub) && rest.substr(hub.size()).starts_with('/') &&
        !IsPlainFile(rest.substr(hub.size() + 1)))
      return ParseHubPage(rest.substr(hub.size() + 1));
  if (text.starts_with("https://") || text.starts_with("http://")) return ParseUrl(text);
  return ParseHubName(text);
}

}  // namespace tessera::hub
