// SPDX-License-Identifier: Apache-2.0
//
// RepositoryName: what people write to name a model that is not a path on disk.
//
//   org/repo[@revision][:QUANT]               a repository of the hub; QUANT chooses a GGUF file
//   hf://org/repo..., ENDPOINT/org/repo[/tree/REVISION]
//   ENDPOINT/org/repo/{resolve,blob}/REVISION/FILE.gguf     one file of it
//   https://HOST/.../NAME.gguf                a file anywhere
//   s3://BUCKET/PREFIX                        a folder or a file of a bucket
//   file:PATH                                 the same as PATH
//
// A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::hub {

enum class Place : uint8_t { kHub, kUrl, kS3, kPath };

struct RepositoryName {
  Place place = Place::kHub;
  std::string repository;    // kHub: "org/repo".
  std::string revision;      // kHub: branch, tag or commit; empty: "main".
  std::string quantization;  // kHub, kS3: as written, "Q4_K_M"; empty: not chosen.
  std::string file;          // kHub: this very file; empty: what a model needs.
  std::string url;           // kUrl.
  std::string bucket;        // kS3.
  std::string prefix;        // kS3: without slashes at its ends.
  std::string path;          // kPath.

  bool operator==(const RepositoryName&) const = default;
};

/// Whether `text` can only be meant as a name: it has a scheme, or is org/repo with the characters
/// that the hub allows. What exists on disk is a path whatever it looks like; callers look first.
bool IsNameShaped(std::string_view text);

/// `endpoint` is the hub's address: its pages name repositories, too (besides huggingface.co).
/// kInvalidArgument says what was expected.
Result<RepositoryName> ParseRepositoryName(std::string_view text, std::string_view endpoint);

/// kInvalidArgument for what is no revision: empty, too long, or with parts that reach elsewhere.
Status CheckRevision(std::string_view revision);

/// Whether `text` is 40 lower-case hex digits.
bool IsCommit(std::string_view text);

/// kInvalidArgument for a file name that must not be made in a folder of ours: absolute, "..",
/// empty parts, backslashes, control bytes, too long.
Status CheckFileName(std::string_view name);

}  // namespace tessera::hub
