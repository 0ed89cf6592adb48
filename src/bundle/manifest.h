// SPDX-License-Identifier: Apache-2.0
//
// Manifest: manifest.json, what a bundle is and was made from: sources, target, options, the hash
// of every other file. Written last; a folder without it is no bundle. A plain value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bundle/parity.h"

namespace tessera::bundle {

/// Raised when a reader of the version before could misread a bundle.
inline constexpr int64_t kBundleFormatVersion = 2;

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kConfigFile = "config.json";
inline constexpr std::string_view kProgramFile = "program.json";
inline constexpr std::string_view kParametersFile = "model.irpa";
inline constexpr std::string_view kTokenizerFile = "tokenizer.json";
/// The tokenizer as a table that is mapped (text/tokenizer_table.h). A bundle may lack it.
inline constexpr std::string_view kTokenizerTableFile = "tokenizer.table";
inline constexpr std::string_view kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr std::string_view kGenerationConfigFile = "generation_config.json";
inline constexpr std::string_view kChatTemplateFile = "chat_template.jinja";

struct FileRecord {
  std::string name;  // Relative to the bundle or repository; no folder parts in a bundle.
  uint64_t bytes = 0;
  std::string sha256;  // 64 hex digits.

  bool operator==(const FileRecord&) const = default;
};

/// Where a repository came from; empty strings when not known.
struct SourceRecord {
  std::string repository;  // "HuggingFaceTB/SmolLM2-135M-Instruct", or the path that was named.
  std::string revision;    // Commit hash.
  std::string format;      // "GGUF", "safetensors", "IRPA"
  std::string licence;     // As the repository states it.
  std::vector<FileRecord> files;

  bool operator==(const SourceRecord&) const = default;
};

/// How one KV page lies in memory: for tools that move pages between processes.
struct PageLayout {
  std::string order;  // Dimensions, outermost first.
  std::string dtype;
  int64_t tokens = 0;
  int64_t bytes = 0;

  bool operator==(const PageLayout&) const = default;
};

/// Memory that serving needs, from the program.
struct MemoryPlan {
  int64_t parameter_bytes = 0;  // Mapped from model.irpa.
  int64_t kv_bytes_per_token = 0;
  int64_t scratch_bytes = 0;  // For a step of 512 rows.

  bool operator==(const MemoryPlan&) const = default;
};

struct Manifest {
  int64_t format_version = kBundleFormatVersion;
  std::string tessera_version;
  std::string model;       // Name of the model, as in the bundle's path.
  std::string key;         // The store's key, 16 hex digits.
  std::string export_key;  // Of the parameters and the tokenizer alone (store.h); may be empty.
  std::string target;      // "cpu"
  std::string isa;         // What the packed layouts serve: "x86-64-v3" ...
  int64_t tensor_parallel = 1;
  std::string quantization;                    // "source", "q8_0", ...
  std::map<std::string, std::string> options;  // All that change the output.
  SourceRecord source;
  PageLayout page;
  MemoryPlan plan;
  std::optional<Parity> parity;   // Bundles from before there were certificates have none.
  std::vector<FileRecord> files;  // Every file but the manifest, by name.

  bool operator==(const Manifest&) const = default;

  const FileRecord* FindFile(std::string_view name) const;
};

std::string WriteManifest(const Manifest& manifest);

/// kInvalidArgument naming the field; kUnimplemented for a format version we do not know, with both
/// versions; file names must be plain (no '/', no "..", not empty) and distinct.
Result<Manifest> ReadManifest(std::string_view text, std::string_view where);

/// The manifest of a folder. Errors of ReadFile and ReadManifest.
Result<Manifest> LoadManifest(const std::filesystem::path& folder);

enum class Check : uint8_t {
  kSizesAndSmallFiles,  // Sizes of all, hashes of all but the parameters and the tokenizer's table,
                        // which carries a checksum that its reader compares.
  kEverything,          // Hashes of all: reads the parameters once.
};

/// Compares the folder with its manifest. kDataLoss with one line that says which file and what
/// differs: missing, size, or hash.
Status VerifyFiles(const std::filesystem::path& folder, const Manifest& manifest, Check check);

/// The record of a file on disk; reads all of it. `name` is what the record will say.
Result<FileRecord> HashFile(const std::filesystem::path& path, std::string name);

}  // namespace tessera::bundle
