// SPDX-License-Identifier: Apache-2.0
#include "bundle/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "bundle/json_fields.h"
#include "bundle/limits.h"

namespace tessera::bundle {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kHashPieceBytes = 4 << 20;

json::Object ToJson(const FileRecord& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}};
}

json::Array ToJson(const std::vector<FileRecord>& files) {
  json::Array array;
  for (const FileRecord& file : files) array.push_back(ToJson(file));
  return array;
}

bool IsHexHash(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

Result<std::vector<FileRecord>> ReadRecords(const Fields& fields, std::string_view key) {
  TESSERA_ASSIGN_OR_RETURN(const std::vector<Fields> objects,
                           fields.Objects(key, kMaxManifestFiles));
  std::vector<FileRecord> records;
  for (const Fields& object : objects) {
    TESSERA_RETURN_IF_ERROR(object.OnlyKnown({"name", "bytes", "sha256"}));
    FileRecord record;
    TESSERA_ASSIGN_OR_RETURN(record.name, object.Text("name"));
    TESSERA_ASSIGN_OR_RETURN(const int64_t bytes, object.Int("bytes", 0, kMaxBytes));
    record.bytes = static_cast<uint64_t>(bytes);
    TESSERA_ASSIGN_OR_RETURN(record.sha256, object.Text("sha256"));
    if (!IsHexHash(record.sha256))
      return Fail(InvalidArgument(
          fmt::format("\"{}.sha256\" is not 64 lower-case hex digits", object.path())));
    records.push_back(std::move(record));
  }
  return records;
}

Result<SourceRecord> ReadSource(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(
      fields.OnlyKnown({"repository", "revision", "format", "licence", "files"}));
  SourceRecord source;
  TESSERA_ASSIGN_OR_RETURN(source.repository, fields.TextOr("repository", ""));
  TESSERA_ASSIGN_OR_RETURN(source.revision, fields.TextOr("revision", ""));
  TESSERA_ASSIGN_OR_RETURN(source.format, fields.TextOr("format", ""));
  TESSERA_ASSIGN_OR_RETURN(source.licence, fields.TextOr("licence", ""));
  TESSERA_ASSIGN_OR_RETURN(source.files, ReadRecords(fields, "files"));
  return source;
}

Result<PageLayout> ReadPage(const Fields& fields) {
  PageLayout page;
  TESSERA_ASSIGN_OR_RETURN(page.order, fields.Text("order"));
  TESSERA_ASSIGN_OR_RETURN(page.dtype, fields.Text("dtype"));
  TESSERA_ASSIGN_OR_RETURN(page.tokens, fields.Int("tokens", 1, kMaxPageTokens));
  TESSERA_ASSIGN_OR_RETURN(page.bytes, fields.Int("bytes", 1, kMaxBytes));
  return page;
}

Result<MemoryPlan> ReadPlan(const Fields& fields) {
  MemoryPlan plan;
  TESSERA_ASSIGN_OR_RETURN(plan.parameter_bytes, fields.Int("parameter_bytes", 0, kMaxBytes));
  TESSERA_ASSIGN_OR_RETURN(plan.kv_bytes_per_token, fields.Int("kv_bytes_per_token", 0, kMaxBytes));
  TESSERA_ASSIGN_OR_RETURN(plan.scratch_bytes, fields.Int("scratch_bytes", 0, kMaxBytes));
  return plan;
}

Result<std::map<std::string, std::string>> ReadOptions(const json::Value& document) {
  std::map<std::string, std::string> options;
  const json::Value* member = json::Find(document.get_object(), "options");
  if (member == nullptr) return options;
  const json::Object* object = member->if_object();
  if (object == nullptr) return Fail(InvalidArgument("\"options\" is no object"));
  for (const auto& [key, value] : *object) {
    const auto* text = value.if_string();
    if (text == nullptr)
      return Fail(
          InvalidArgument(fmt::format("\"options.{:.60}\" is no string", std::string_view(key))));
    options.emplace(std::string(key), std::string(*text));
  }
  return options;
}

Status CheckNames(const std::vector<FileRecord>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    if (!IsPlainName(files[i].name) || files[i].name == kManifestFile)
      return InvalidArgument(fmt::format(
          "\"files[{}].name\" is \"{:.100}\", expected a plain file name", i, files[i].name));
    for (size_t j = 0; j < i; ++j)
      if (files[j].name == files[i].name)
        return InvalidArgument(fmt::format("\"files\" names {} twice", files[i].name));
  }
  return {};
}

Result<Manifest> ReadDocument(const json::Value& document) {
  TESSERA_ASSIGN_OR_RETURN(const Fields fields, Fields::Of(document, ""));
  Manifest manifest;
  TESSERA_ASSIGN_OR_RETURN(manifest.format_version, fields.Int("format_version", 0, INT32_MAX));
  // Before anything else: other versions may have other fields.
  if (manifest.format_version != kBundleFormatVersion)
    return Fail(Unimplemented(
        fmt::format("bundle format version {}, this program reads {}; compile the model again",
                    manifest.format_version, kBundleFormatVersion)));
  TESSERA_RETURN_IF_ERROR(
      fields.OnlyKnown({"format_version", "tessera_version", "model", "key", "export_key", "target",
                        "isa", "tensor_parallel", "quantization", "options", "source",
                        "page_layout", "plan", "parity", "files"}));
  TESSERA_ASSIGN_OR_RETURN(manifest.tessera_version, fields.Text("tessera_version"));
  TESSERA_ASSIGN_OR_RETURN(manifest.model, fields.Text("model"));
  TESSERA_ASSIGN_OR_RETURN(manifest.key, fields.Text("key"));
  TESSERA_ASSIGN_OR_RETURN(manifest.export_key, fields.TextOr("export_key", ""));
  TESSERA_ASSIGN_OR_RETURN(manifest.target, fields.Text("target"));
  TESSERA_ASSIGN_OR_RETURN(manifest.isa, fields.Text("isa"));
  TESSERA_ASSIGN_OR_RETURN(manifest.tensor_parallel, fields.Int("tensor_parallel", 1, 1024));
  TESSERA_ASSIGN_OR_RETURN(manifest.quantization, fields.Text("quantization"));
  TESSERA_ASSIGN_OR_RETURN(manifest.options, ReadOptions(document));
  TESSERA_ASSIGN_OR_RETURN(const Fields source, fields.Object("source"));
  TESSERA_ASSIGN_OR_RETURN(manifest.source, ReadSource(source));
  TESSERA_ASSIGN_OR_RETURN(const Fields page, fields.Object("page_layout"));
  TESSERA_ASSIGN_OR_RETURN(manifest.page, ReadPage(page));
  TESSERA_ASSIGN_OR_RETURN(const Fields plan, fields.Object("plan"));
  TESSERA_ASSIGN_OR_RETURN(manifest.plan, ReadPlan(plan));
  if (fields.Has("parity")) {
    TESSERA_ASSIGN_OR_RETURN(const Fields parity, fields.Object("parity"));
    TESSERA_ASSIGN_OR_RETURN(manifest.parity, ReadParity(parity));
  }
  TESSERA_ASSIGN_OR_RETURN(manifest.files, ReadRecords(fields, "files"));
  TESSERA_RETURN_IF_ERROR(CheckNames(manifest.files));
  return manifest;
}

}  // namespace

const FileRecord* Manifest::FindFile(std::string_view name) const {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const FileRecord& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::string WriteManifest(const Manifest& manifest) {
  json::Object options;
  for (const auto& [key, value] : manifest.options) options.emplace(key, value);
  const SourceRecord& source = manifest.source;
  json::Object document = {
      {"format_version", manifest.format_version},
      {"tessera_version", manifest.tessera_version},
      {"model", manifest.model},
      {"key", manifest.key},
      {"export_key", manifest.export_key},
      {"target", manifest.target},
      {"isa", manifest.isa},
      {"tensor_parallel", manifest.tensor_parallel},
      {"quantization", manifest.quantization},
      {"options", options},
      {"source", json::Object{{"repository", source.repository},
                              {"revision", source.revision},
                              {"format", source.format},
                              {"licence", source.licence},
                              {"files", ToJson(source.files)}}},
      {"page_layout", json::Object{{"order", manifest.page.order},
                                   {"dtype", manifest.page.dtype},
                                   {"tokens", manifest.page.tokens},
                                   {"bytes", manifest.page.bytes}}},
      {"plan", json::Object{{"parameter_bytes", manifest.plan.parameter_bytes},
                            {"kv_bytes_per_token", manifest.plan.kv_bytes_per_token},
                            {"scratch_bytes", manifest.plan.scratch_bytes}}},
      {"files", ToJson(manifest.files)},
  };
  if (manifest.parity) document["parity"] = ParityToJson(*manifest.parity);
  return json::SerializePretty(document);
}

Result<Manifest> ReadManifest(std::string_view text, std::string_view where) {
  json::Limits limits;
  limits.max_bytes = kMaxDocumentBytes;
  TESSERA_ASSIGN_OR_RETURN(const json::Value document, json::Parse(text, limits, where));
  Result<Manifest> manifest = ReadDocument(document);
  if (!manifest.has_value()) return Fail(manifest.error().WithContext(std::string(where)));
  return manifest;
}

Result<FileRecord> HashFile(const fs::path& path, std::string name) {
  TESSERA_ASSIGN_OR_RETURN(const auto mapping, MappedFile::Open(path));
  FileRecord record{std::move(name), mapping->bytes().size(), {}};
  Sha256 hash;
  for (ByteSpan rest = mapping->bytes(); !rest.empty();) {
    const ByteSpan piece = rest.first(std::min<uint64_t>(rest.size(), kHashPieceBytes));
    hash.Update(piece);
    rest = rest.subspan(piece.size());
  }
  record.sha256 = hash.FinishHex();
  return record;
}

Result<Manifest> LoadManifest(const fs::path& folder) {
  const fs::path path = folder / kManifestFile;
  TESSERA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxDocumentBytes));
  return ReadManifest(text, path.string());
}

namespace {

bool IsSmallFile(std::string_view name) {
  return !name.ends_with(".irpa") && name != kTokenizerTableFile;
}

}  // namespace

Status VerifyFiles(const fs::path& folder, const Manifest& manifest, Check check) {
  for (const FileRecord& expected : manifest.files) {
    const fs::path path = folder / expected.name;
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    if (error)
      return DataLoss(fmt::format("bundle {}: {} is missing ({})", folder.string(), expected.name,
                                  error.message()));
    if (bytes != expected.bytes)
      return DataLoss(fmt::format("bundle {}: {} has {} bytes, its manifest says {}",
                                  folder.string(), expected.name, bytes, expected.bytes));
    if (check == Check::kSizesAndSmallFiles && !IsSmallFile(expected.name)) continue;
    TESSERA_ASSIGN_OR_RETURN(const FileRecord found, HashFile(path, expected.name));
    if (found.sha256 != expected.sha256)
      return DataLoss(
          fmt::format("bundle {}: {} has SHA-256 {:.16}..., its manifest says {:.16}...",
                      folder.string(), expected.name, found.sha256, expected.sha256));
  }
  return {};
}

}  // namespace tessera::bundle
