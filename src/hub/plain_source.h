// SPDX-License-Identifier: Apache-2.0
//
// PlainSource: files at an address or in a bucket, made to look like a repository at a commit, so
// that the same selection, download and cache serve. Nobody announces their hashes: a file is
// known by its validator (ETag, else date), which also names it in the cache, and every answer
// must carry the same one.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "hub/http.h"
#include "hub/listing.h"
#include "hub/repository_name.h"
#include "hub/settings.h"

namespace tessera::hub {

struct PlainSource {
  /// `repository` is made of the source's hash; `commit` changes with any file; of a file
  /// `git_sha1` is made of name, size and validator, and is no hash of its bytes.
  Listing listing;
  struct File {
    std::string url;
    std::string validator;
  };
  std::map<std::string, File> files;  // By name.
};

/// What `name` (place kUrl or kS3) holds now. kNotFound, kPermissionDenied, kUnavailable within
/// Settings::api_patience; kUnimplemented for a server that does not tell the size.
Result<PlainSource> ReadPlainSource(Http& http, const Settings& settings,
                                    const RepositoryName& name);

/// "tessera-url/0123..." or "tessera-s3/0123...": what the cache calls the source. Total.
std::string PlainRepository(const RepositoryName& name);
bool IsPlainRepository(std::string_view repository);

/// For people and manifests: the address without query, "s3://bucket/prefix".
std::string ShownSource(const RepositoryName& name);

}  // namespace tessera::hub
