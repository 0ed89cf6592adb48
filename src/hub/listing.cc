// SPDX-License-Identifier: Apache-2.0
#include "hub/listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"
#include "hub/limits.h"
#include "hub/repository_name.h"

namespace tessera::hub {
namespace {

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<RepositoryFile> ParseFile(const json::Object& row, std::string name) {
  RepositoryFile file;
  file.name = std::move(name);
  const json::Object* lfs = nullptr;
  if (const json::Value* value = json::Find(row, "lfs")) {
    if (!value->is_object()) return Fail(InvalidArgument("lfs is no object"));
    lfs = &value->get_object();
  }
  TESSERA_ASSIGN_OR_RETURN(const int64_t own_bytes, json::GetInt(row, "size", -1));
  int64_t bytes = own_bytes;
  if (lfs != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(bytes, json::GetInt(*lfs, "size", own_bytes));
    TESSERA_ASSIGN_OR_RETURN(file.sha256, json::GetString(*lfs, "sha256", ""));
    if (file.sha256.empty()) {  // As git-lfs itself calls it.
      TESSERA_ASSIGN_OR_RETURN(file.sha256, json::GetString(*lfs, "oid", ""));
    }
    if (!IsHex(file.sha256, 64))
      return Fail(InvalidArgument("lfs.sha256 is not 64 lower-case hex digits"));
  } else {
    TESSERA_ASSIGN_OR_RETURN(file.git_sha1, json::GetString(row, "blobId", ""));
    if (!IsHex(file.git_sha1, 40))
      return Fail(InvalidArgument("blobId is not 40 lower-case hex digits"));
  }
  if (bytes < 0 || static_cast<uint64_t>(bytes) > kMaxFileBytes)
    return Fail(InvalidArgument(fmt::format("size is {}, expected 0 to {}", bytes, kMaxFileBytes)));
  file.bytes = static_cast<uint64_t>(bytes);
  return file;
}

/// cardData.license, else the tag "license:...": text or a list of texts.
std::string LicenceOf(const json::Object& root) {
  const json::Value* card = json::Find(root, "cardData");
  if (card != nullptr && card->is_object())
    if (const json::Value* value = json::Find(card->get_object(), "license"))
      if (value->is_string()) return EscapeNonUtf8(std::string(value->get_string()).substr(0, 200));
  const json::Value* tags = json::Find(root, "tags");
  if (tags == nullptr || !tags->is_array()) return "";
  constexpr std::string_view kTag = "license:";
  for (const json::Value& tag : tags->get_array())
    if (tag.is_string() && std::string_view(tag.get_string()).starts_with(kTag))
      return EscapeNonUtf8(std::string(tag.get_string()).substr(kTag.size(), 200));
  return "";
}

Status ParseFiles(const json::Array& rows, Listing* listing, size_t* refused_names) {
  if (rows.size() > kMaxListedFiles)
    return ResourceExhausted(fmt::format("siblings has {} files, more than the limit of {}",
                                         rows.size(), kMaxListedFiles));
  for (const json::Value& row : rows) {
    if (!row.is_object()) return InvalidArgument("siblings has a member that is no object");
    TESSERA_ASSIGN_OR_RETURN(std::string name, json::NeedString(row.get_object(), "rfilename"));
    if (!CheckFileName(name).ok()) {
      if (refused_names != nullptr) ++*refused_names;
      continue;
    }
    const std::string context = fmt::format("siblings, file \"{}\"", name);
    auto file = ParseFile(row.get_object(), std::move(name));
    if (!file.has_value()) return std::move(file).error().WithContext(context);
    listing->files.push_back(*std::move(file));
  }
  std::vector<std::string_view> names;
  for (const RepositoryFile& file : listing->files) names.push_back(file.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return InvalidArgument(fmt::format("siblings names \"{}\" twice", *twice));
  return {};
}

Result<Listing> ParseRoot(const json::Value& value, size_t* refused_names) {
  if (!value.is_object()) return Fail(InvalidArgument("expected an object"));
  const json::Object& root = value.get_object();
  Listing listing;
  TESSERA_ASSIGN_OR_RETURN(listing.repository, json::NeedString(root, "id"));
  TESSERA_ASSIGN_OR_RETURN(const RepositoryName name, ParseRepositoryName(listing.repository, ""));
  if (name.place != Place::kHub || name.repository != listing.repository)
    return Fail(InvalidArgument("id is no repository name"));
  TESSERA_ASSIGN_OR_RETURN(listing.commit, json::NeedString(root, "sha"));
  if (!IsCommit(listing.commit))
    return Fail(InvalidArgument("sha is not 40 lower-case hex digits"));
  listing.licence = LicenceOf(root);
  const json::Value* rows = json::Find(root, "siblings");
  if (rows == nullptr || !rows->is_array())
    return Fail(InvalidArgument("siblings is missing, expected an array"));
  TESSERA_RETURN_IF_ERROR(ParseFiles(rows->get_array(), &listing, refused_names));
  return listing;
}

}  // namespace

const RepositoryFile* Listing::Find(std::string_view name) const {
  for (const RepositoryFile& file : files)
    if (file.name == name) return &file;
  return nullptr;
}

Result<Listing> ParseListing(std::string_view text, std::string_view where, size_t* refused_names) {
  if (refused_names != nullptr) *refused_names = 0;
  const json::Limits limits{.max_bytes = kMaxListingBytes, .max_depth = 16, .max_keys = 4096};
  TESSERA_ASSIGN_OR_RETURN(const json::Value root, json::Parse(text, limits, where));
  auto listing = ParseRoot(root, refused_names);
  if (!listing.has_value()) return Fail(listing.error().WithContext(std::string(where)));
  return listing;
}

std::string WriteListing(const Listing& listing) {
  json::Object root;
  root["id"] = listing.repository;
  root["sha"] = listing.commit;
  if (!listing.licence.empty()) root["cardData"] = json::Object{{"license", listing.licence}};
  json::Array rows;
  for (const RepositoryFile& file : listing.files) {
    json::Object row{{"rfilename", file.name}, {"size", file.bytes}};
    if (file.sha256.empty()) {
      row["blobId"] = file.git_sha1;
    } else {
      row["lfs"] = json::Object{{"sha256", file.sha256}, {"size", file.bytes}};
    }
    rows.push_back(std::move(row));
  }
  root["siblings"] = std::move(rows);
  return json::Serialize(root) + "\n";
}

}  // namespace tessera::hub
