// SPDX-License-Identifier: Apache-2.0
#include "gateway/models/model_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/file.h"
#include "gateway/limits.h"
#include "gateway/models/built_in_aliases.h"
#include "gateway/spec/brief.h"

namespace tessera::gateway {
namespace {

constexpr size_t kNearestMax = 3;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

/// org/name, each of name bytes and neither "." nor "..".
bool IsRepository(std::string_view text) {
  text = text.substr(0, text.find('@'));
  text = text.substr(0, text.find(':'));
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  for (const std::string_view part : {text.substr(0, slash), text.substr(slash + 1)})
    if (part.empty() || part.front() == '.' || part.front() == '-' ||
        !std::ranges::all_of(part, IsNameByte))
      return false;
  return true;
}

bool IsAddress(std::string_view text) {
  for (const std::string_view scheme : {"https://", "s3://", "hf://"})
    if (text.starts_with(scheme) && text.size() > scheme.size())
      return std::ranges::none_of(text,
                                  [](char c) { return static_cast<unsigned char>(c) <= 0x20; });
  return false;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // Of the prefix of `a` so far to each prefix of `b`.
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

Result<ModelTable> ModelTable::Read(const ModelTableOptions& options) {
  ModelTable table;
  if (!options.aliases_file.empty()) {
    TESSERA_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(options.aliases_file, kAliasFileBytesMax));
    TESSERA_ASSIGN_OR_RETURN(table.aliases_, ParseAliases(text, options.aliases_file.string()));
    // Paths of the file are as seen from where it lies.
    for (auto& [alias, target] : table.aliases_) {
      const std::filesystem::path path = options.aliases_file.parent_path() / target;
      std::error_code ignored;
      if (!IsAddress(target) && std::filesystem::exists(path, ignored))
        target = std::filesystem::absolute(path).lexically_normal().string();
    }
  }
  for (const auto& [alias, target] : kBuiltInAliases) table.aliases_.emplace(alias, target);
  if (!options.model_root.empty()) {
    std::error_code error;
    table.model_root_ = std::filesystem::canonical(options.model_root, error);
    if (error) return Fail(ErrnoStatus(error.value(), "--model-root", options.model_root));
  }
  return table;
}

std::vector<std::string> ModelTable::Nearest(std::string_view name) const {
  name = name.substr(0, kNameBytesMax);
  std::vector<std::pair<size_t, std::string>> near;
  for (const auto& [alias, target] : aliases_) {
    const size_t distance = EditDistance(name, alias);
    if (distance <= std::max<size_t>(2, name.size() / 3)) near.emplace_back(distance, alias);
  }
  std::ranges::sort(near);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(near.size(), kNearestMax); ++i)
    names.push_back(std::move(near[i].second));
  return names;
}

Result<std::string> ModelTable::UnderRoot(std::string_view path) const {
  if (model_root_.empty()) return Fail(NotFound("paths are served only with --model-root"));
  std::error_code error;
  const auto full = std::filesystem::canonical(model_root_ / path, error);
  if (error) return Fail(NotFound(fmt::format("there is no {} under --model-root", path)));
  const auto [root_end, ignored] =
      std::mismatch(model_root_.begin(), model_root_.end(), full.begin(), full.end());
  if (root_end != model_root_.end())
    return Fail(PermissionDenied(fmt::format("{} leads out of --model-root", path)));
  return full.string();
}

Result<std::string> ModelTable::Resolve(std::string_view model_name) const {
  if (const auto found = aliases_.find(model_name); found != aliases_.end()) return found->second;
  if (model_name.starts_with("https://huggingface.co/")) return std::string(model_name);
  if (!model_root_.empty()) {
    auto path = UnderRoot(model_name);
    if (path.has_value() || path.error().code() == Code::kPermissionDenied) return path;
  }
  if (IsRepository(model_name)) return std::string(model_name);
  const std::vector<std::string> near = Nearest(model_name);
  return Fail(NotFound(fmt::format(
      "model_name: '{}' is neither an alias nor a repository (org/name) nor a path under "
      "--model-root{}",
      Brief(model_name, kNameBytesMax),
      near.empty() ? std::string() : fmt::format("; did you mean {}?", fmt::join(near, ", ")))));
}

Result<std::string> ModelTable::ResolveCheckpoint(std::string_view path) const {
  if (path.starts_with("hf://")) return std::string(path.substr(5));
  if (IsAddress(path)) return std::string(path);
  auto full = UnderRoot(path);
  if (!full.has_value()) return Fail(full.error().WithContext("checkpoint_path"));
  return full;
}

}  // namespace tessera::gateway
