// SPDX-License-Identifier: Apache-2.0
//
// SelectFiles: which files of a repository a model needs, and nothing else: safetensors rather than
// pickles, which are programs and are refused by name; of several GGUF files the one that was
// chosen. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/listing.h"

namespace tessera::hub {

struct Selection {
  std::vector<const RepositoryFile*> files;  // Small ones first. Point into the listing.
  /// Not empty: files that this one (a *.safetensors.index.json among `files`) names are needed,
  /// too: SelectShards.
  std::string index;
  /// What to open, relative to the snapshot: a GGUF file, or "" for the folder.
  std::string model;
};

/// `quantization` chooses among GGUF files ("Q4_K_M", letters of either case), `file` is one of
/// them; both may be empty. kInvalidArgument lists what there is to choose; kFailedPrecondition
/// names the pickles of a repository that has nothing else; kNotFound for what is not there.
Result<Selection> SelectFiles(const Listing& listing, std::string_view quantization,
                              std::string_view file);

/// The shards that an index names, in its order, each once. kNotFound for one that the repository
/// lacks; kInvalidArgument for an index that cannot be read.
Result<std::vector<const RepositoryFile*>> SelectShards(const Listing& listing,
                                                        std::string_view index_text,
                                                        std::string_view where);

}  // namespace tessera::hub
