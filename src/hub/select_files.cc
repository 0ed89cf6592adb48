// SPDX-License-Identifier: Apache-2.0
#include "hub/select_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/json.h"
#include "hub/limits.h"
#include "hub/repository_name.h"

namespace tessera::hub {
namespace {

// What model/ and text/ read of a folder besides weights; all at its top.
constexpr std::string_view kSmallFiles[] = {
    "config.json",           "generation_config.json",  "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "chat_template.jinja",   "chat_template.json",      "quantize_config.json",
    "quant_config.json",     "hf_quant_config.json",
};
constexpr std::string_view kMoreTemplates = "additional_chat_templates/";
constexpr std::string_view kPickles[] = {".bin", ".pt", ".pth", ".ckpt", ".pkl"};
constexpr size_t kNamesShown = 40;

bool IsTopLevel(std::string_view name) {
  return name.find('/') == std::string_view::npos;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return lower;
}

bool IsGgufModel(std::string_view name) {
  return name.ends_with(".gguf") && Lower(name).find("mmproj") == std::string::npos;
}

/// "dir/Model-Q4_K_M-00002-of-00003.gguf" -> {"dir/Model-Q4_K_M", 2, 3}; whole files have part 0.
struct GgufName {
  std::string stem;
  int part = 0;
  int parts = 0;
};
GgufName SplitGgufName(std::string_view name) {
  constexpr size_t kTail = 15;  // "-00002-of-00003"
  name.remove_suffix(5);
  if (name.size() <= kTail) return {std::string(name)};
  const std::string_view tail = name.substr(name.size() - kTail);
  const auto digits = [](std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || !digits(tail.substr(1, 5)) ||
      !digits(tail.substr(10, 5)))
    return {std::string(name)};
  const auto number = [](std::string_view text) {
    int value = 0;
    for (const char c : text) value = value * 10 + (c - '0');
    return value;
  };
  return {std::string(name.substr(0, name.size() - kTail)), number(tail.substr(1, 5)),
          number(tail.substr(10, 5))};
}

/// A GGUF with all its parts, opened by the first.
Result<Selection> SelectParts(const Listing& listing, const std::string& stem) {
  std::vector<std::pair<GgufName, const RepositoryFile*>> found;
  for (const RepositoryFile& file : listing.files)
    if (IsGgufModel(file.name))
      if (GgufName name = SplitGgufName(file.name); name.stem == stem)
        found.emplace_back(std::move(name), &file);
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.part, a.first.parts) < std::tie(b.first.part, b.first.parts);
  });
  Selection selection;
  const int parts = found.front().first.parts;
  for (const auto& [name, file] : found) {
    const auto expected = static_cast<int>(selection.files.size()) + (parts > 0 ? 1 : 0);
    // Of a whole file beside parts of the same name the whole one is enough.
    if (parts == 0 && expected == 1) break;
    if (name.part != expected || name.parts != parts) break;
    selection.files.push_back(file);
  }
  const int needed = std::max(parts, 1);
  if (static_cast<int>(selection.files.size()) != needed)
    return Fail(NotFound(fmt::format("{} lacks part {} of the {} of {}", listing.repository,
                                     selection.files.size() + 1, needed, stem)));
  selection.model = selection.files.front()->name;
  return selection;
}

/// Whether `wanted` (lower case) stands in `stem` between separators, or is a folder's name.
bool NamesQuantization(std::string_view stem, std::string_view wanted) {
  const std::string text = Lower(stem);
  constexpr std::string_view kSeparators = "-./_";
  for (size_t at = 0; (at = text.find(wanted, at)) != std::string::npos; ++at) {
    const bool begins = at == 0 || kSeparators.find(text[at - 1]) != std::string_view::npos;
    const size_t end = at + wanted.size();
    // "Q4_K" must not choose "Q4_K_M".
    const bool ends =
        end == text.size() || text[end] == '-' || text[end] == '.' || text[end] == '/';
    if (begins && ends) return true;
  }
  return false;
}

/// What to write after the colon for a file: its name from the first part that looks like a format.
std::string QuantizationOf(std::string_view stem) {
  const std::string_view base = stem.substr(stem.rfind('/') + 1);
  for (size_t at = base.size(); at-- > 0;) {
    if (base[at] != '-' && base[at] != '.') continue;
    const std::string tail = Lower(base.substr(at + 1));
    for (const std::string_view begin : {"q", "iq", "bf16", "f16", "f32", "fp16", "mxfp", "tq"})
      if (tail.starts_with(begin) && tail.size() > 1) return std::string(base.substr(at + 1));
  }
  return std::string(base);
}

Result<Selection> SelectGguf(const Listing& listing, std::string_view quantization) {
  std::set<std::string> stems;
  for (const RepositoryFile& file : listing.files)
    if (IsGgufModel(file.name)) stems.insert(SplitGgufName(file.name).stem);
  std::vector<std::string> chosen;
  std::vector<std::string> choices;
  for (const std::string& stem : stems) {
    if (choices.size() < kNamesShown) choices.push_back(QuantizationOf(stem));
    if (quantization.empty() || NamesQuantization(stem, Lower(quantization)))
      chosen.push_back(stem);
  }
  if (stems.empty())
    return Fail(NotFound(fmt::format("{} has no GGUF file, so \":{}\" chooses nothing",
                                     listing.repository, quantization)));
  if (chosen.size() != 1)
    return Fail(InvalidArgument(
        fmt::format("{} has {} GGUF files{}: choose one with {}:NAME, NAME one of {}",
                    listing.repository, chosen.empty() ? stems.size() : chosen.size(),
                    quantization.empty() ? ""
                    : chosen.empty()     ? fmt::format(", none of them \"{}\"", quantization)
                                         : fmt::format(" that match \"{}\"", quantization),
                    listing.repository, fmt::join(choices, ", "))));
  return SelectParts(listing, chosen.front());
}

Status OnlyPickles(const Listing& listing) {
  std::vector<std::string_view> pickles;
  for (const RepositoryFile& file : listing.files)
    for (const std::string_view ending : kPickles)
      if (file.name.ends_with(ending) && pickles.size() < 8) pickles.push_back(file.name);
  if (pickles.empty())
    return NotFound(
        fmt::format("{} has no model: neither safetensors nor GGUF files", listing.repository));
  return FailedPrecondition(fmt::format(
      "{} has its weights as pickles only ({}), which are programs and are not loaded: look for a "
      "repository or revision with safetensors",
      listing.repository, fmt::join(pickles, ", ")));
}

Status AddWeights(const Listing& listing, Selection* selection) {
  constexpr std::string_view kIndex = "model.safetensors.index.json";
  constexpr std::string_view kSingle = "model.safetensors";
  if (const RepositoryFile* single = listing.Find(kSingle)) {
    selection->files.push_back(single);
    return {};
  }
  if (const RepositoryFile* index = listing.Find(kIndex)) {
    selection->files.push_back(index);
    selection->index = kIndex;
    return {};
  }
  for (const std::string_view ending : {".safetensors", ".irpa"}) {
    std::vector<const RepositoryFile*> found;
    for (const RepositoryFile& file : listing.files)
      if (IsTopLevel(file.name) && file.name.ends_with(ending)) found.push_back(&file);
    if (found.size() > 1 && ending == ".safetensors")
      return InvalidArgument(fmt::format(
          "{} has {} safetensors files and no model.safetensors.index.json that says which belong "
          "together",
          listing.repository, found.size()));
    if (found.empty()) continue;
    selection->files.insert(selection->files.end(), found.begin(), found.end());
    return {};
  }
  return OnlyPickles(listing);
}

Status CheckDistinct(const Selection& selection) {
  std::set<std::string> names;
  for (const RepositoryFile* file : selection.files)
    if (!names.insert(Lower(file->name)).second)
      return InvalidArgument(fmt::format(
          "the repository has two files that differ in letter case only: {}", file->name));
  return {};
}

}  // namespace

Result<Selection> SelectFiles(const Listing& listing, std::string_view quantization,
                              std::string_view file) {
  if (!file.empty()) {
    const RepositoryFile* named = listing.Find(file);
    if (named == nullptr)
      return Fail(NotFound(fmt::format("{} has no file {}", listing.repository, file)));
    if (IsGgufModel(named->name)) return SelectParts(listing, SplitGgufName(named->name).stem);
    Selection selection;
    selection.files = {named};
    selection.model = named->name;
    return selection;
  }
  if (!quantization.empty()) return SelectGguf(listing, quantization);
  Selection selection;
  for (const std::string_view name : kSmallFiles)
    if (const RepositoryFile* small = listing.Find(name)) selection.files.push_back(small);
  for (const RepositoryFile& more : listing.files)
    if (more.name.starts_with(kMoreTemplates) && more.name.ends_with(".jinja"))
      selection.files.push_back(&more);
  const bool has_safetensors =
      std::any_of(listing.files.begin(), listing.files.end(), [](const RepositoryFile& one) {
        return IsTopLevel(one.name) && one.name.ends_with(".safetensors");
      });
  const bool has_gguf =
      std::any_of(listing.files.begin(), listing.files.end(),
                  [](const RepositoryFile& one) { return IsGgufModel(one.name); });
  if (!has_safetensors && has_gguf) return SelectGguf(listing, quantization);
  TESSERA_RETURN_IF_ERROR(AddWeights(listing, &selection));
  TESSERA_RETURN_IF_ERROR(CheckDistinct(selection));
  for (const std::string_view needed : {"config.json", "tokenizer.json"})
    if (listing.Find(needed) == nullptr)
      return Fail(
          NotFound(fmt::format("{} has no {}, so it cannot be run", listing.repository, needed)));
  return selection;
}

Result<std::vector<const RepositoryFile*>> SelectShards(const Listing& listing,
                                                        std::string_view index_text,
                                                        std::string_view where) {
  const json::Limits limits{.max_bytes = kMaxIndexBytes, .max_depth = 8, .max_keys = 1u << 20};
  TESSERA_ASSIGN_OR_RETURN(const json::Value root, json::Parse(index_text, limits, where));
  const json::Value* map = root.is_object() ? json::Find(root.get_object(), "weight_map") : nullptr;
  if (map == nullptr || !map->is_object())
    return Fail(InvalidArgument(fmt::format("{} has no object weight_map", where)));
  std::vector<const RepositoryFile*> shards;
  std::set<std::string_view> seen;
  for (const auto& [tensor, shard] : map->get_object()) {
    if (!shard.is_string())
      return Fail(
          InvalidArgument(fmt::format("{}: weight_map has a shard that is no text", where)));
    const std::string_view name(shard.get_string());
    if (!seen.insert(name).second) continue;
    const RepositoryFile* file = CheckFileName(name).ok() ? listing.Find(name) : nullptr;
    if (file == nullptr)
      return Fail(NotFound(fmt::format("{} names the shard \"{}\", which {} does not have", where,
                                       name.substr(0, 120), listing.repository)));
    if (!file->name.ends_with(".safetensors"))
      return Fail(InvalidArgument(
          fmt::format("{} names {} as a shard, which is no safetensors file", where, file->name)));
    shards.push_back(file);
  }
  return shards;
}

}  // namespace tessera::hub
