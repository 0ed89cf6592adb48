// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tensor/dtype.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kAbsent = "(absent)";
constexpr size_t kLinesShown = 100;
constexpr size_t kValueBytesShown = 100;

using Leaves = std::map<std::string, std::string>;

std::string LeafText(const json::Value& value) {
  const auto* text = value.if_string();
  return text != nullptr ? std::string(*text) : json::Serialize(value);
}

/// The member that says which element of an array this is, so that one more does not shift all.
std::string ElementName(const json::Value& element, size_t index) {
  if (const json::Object* object = element.if_object())
    for (const char* key : {"name", "entry", "label"})
      if (const json::Value* name = json::Find(*object, key); name != nullptr && name->is_string())
        return std::string(name->get_string());
  return fmt::to_string(index);
}

void Flatten(const json::Value& value, const std::string& place, Leaves* leaves) {
  if (const json::Object* object = value.if_object(); object != nullptr && !object->empty()) {
    for (const auto& [key, member] : *object)
      Flatten(member, fmt::format("{}.{}", place, std::string_view(key)), leaves);
    return;
  }
  const json::Array* array = value.if_array();
  const bool nested = array != nullptr && std::ranges::any_of(*array, [](const json::Value& item) {
                        return item.is_object() || item.is_array();
                      });
  if (!nested) {
    leaves->insert_or_assign(place, LeafText(value));
    return;
  }
  for (size_t i = 0; i < array->size(); ++i)
    Flatten((*array)[i], fmt::format("{}[{}]", place, ElementName((*array)[i], i)), leaves);
}

std::vector<Difference> DiffLeaves(const Leaves& a, const Leaves& b) {
  std::vector<Difference> differences;
  for (const auto& [place, value] : a) {
    const auto other = b.find(place);
    if (other == b.end()) {
      differences.push_back({place, value, std::string(kAbsent)});
    } else if (other->second != value) {
      differences.push_back({place, value, other->second});
    }
  }
  for (const auto& [place, value] : b)
    if (!a.contains(place)) differences.push_back({place, std::string(kAbsent), value});
  std::ranges::sort(differences, {}, &Difference::where);
  return differences;
}

/// "F32 [2,512]"
std::string TypeText(const formats::ParameterEntry& entry) {
  return fmt::format("{} {}{}", tensor::Name(entry.dtype), entry.shape.ToString(),
                     entry.splat ? " splat" : "");
}

/// Sizes, hashes and keys: they tell that something differs, the rest tells what.
bool FollowsFromOthers(std::string_view where) {
  return where.starts_with("manifest.files[") || where == "manifest.key" ||
         where == "manifest.export_key";
}

Result<json::Value> Parsed(const std::string& text) {
  json::Limits limits;
  limits.max_bytes = text.size();
  return json::Parse(text, limits, "");
}

}  // namespace

std::vector<Difference> DiffJson(const json::Value& a, const json::Value& b,
                                 std::string_view root) {
  Leaves of_a, of_b;
  Flatten(a, std::string(root), &of_a);
  Flatten(b, std::string(root), &of_b);
  return DiffLeaves(of_a, of_b);
}

std::vector<Difference> DiffParameters(const formats::ParameterIndex& a,
                                       const formats::ParameterIndex& b) {
  Leaves of_a, of_b;
  const auto place = [](const formats::ParameterEntry& entry) {
    return fmt::format("parameters.{}", entry.name);
  };
  for (const auto& entry : a.entries()) of_a.emplace(place(entry), TypeText(entry));
  for (const auto& entry : b.entries()) of_b.emplace(place(entry), TypeText(entry));
  std::vector<Difference> differences = DiffLeaves(of_a, of_b);
  for (const auto& entry : a.entries()) {
    const formats::ParameterEntry* other = b.Find(entry.name);
    if (other == nullptr || TypeText(entry) != TypeText(*other)) continue;
    if (entry.splat) {
      if (entry.splat->pattern != other->splat->pattern ||
          entry.splat->pattern_bytes != other->splat->pattern_bytes)
        differences.push_back({place(entry), "a splat", "another splat"});
      continue;
    }
    const ByteSpan bytes_a = a.View(entry).bytes, bytes_b = b.View(*other).bytes;
    if (bytes_a.size() == bytes_b.size() && bytes_a.data() == bytes_b.data()) continue;
    const auto differs = std::ranges::mismatch(bytes_a, bytes_b);
    if (differs.in1 == bytes_a.end() && differs.in2 == bytes_b.end()) continue;
    differences.push_back(
        {place(entry), "its bytes",
         fmt::format("other bytes from byte {} on", differs.in1 - bytes_a.begin())});
  }
  std::ranges::stable_sort(differences, {}, &Difference::where);
  return differences;
}

Result<std::vector<Difference>> DiffBundles(const bundle::Bundle& a, const bundle::Bundle& b) {
  struct Document {
    std::string_view root;
    std::string a, b;
  };
  const Document documents[] = {
      {"manifest", bundle::WriteManifest(a.manifest), bundle::WriteManifest(b.manifest)},
      {"config", bundle::WriteServingConfig(a.config), bundle::WriteServingConfig(b.config)},
      {"program", bundle::WriteProgram(a.program), bundle::WriteProgram(b.program)}};
  std::vector<Difference> differences;
  for (const Document& document : documents) {
    TESSERA_ASSIGN_OR_RETURN(const json::Value of_a, Parsed(document.a));
    TESSERA_ASSIGN_OR_RETURN(const json::Value of_b, Parsed(document.b));
    const auto found = DiffJson(of_a, of_b, document.root);
    differences.insert(differences.end(), found.begin(), found.end());
  }
  bool same_parameters = true;
  for (const bundle::FileRecord& file : a.manifest.files) {
    const bundle::FileRecord* other = b.manifest.FindFile(file.name);
    if (file.name.ends_with(".irpa"))
      same_parameters = same_parameters && other != nullptr && other->sha256 == file.sha256;
  }
  if (!same_parameters) {
    const auto found = DiffParameters(a.archive, b.archive);
    differences.insert(differences.end(), found.begin(), found.end());
  }
  std::ranges::stable_partition(differences, [](const Difference& difference) {
    return !FollowsFromOthers(difference.where);
  });
  return differences;
}

std::string DiffText(const std::vector<Difference>& differences) {
  if (differences.empty()) return "no difference\n";
  std::string text;
  for (const Difference& difference : differences) {
    if (&difference - differences.data() == kLinesShown)
      return text + fmt::format("and {} more; --json has all\n", differences.size() - kLinesShown);
    const auto shown = [](const std::string& value) {
      return value.size() <= kValueBytesShown ? value
                                              : value.substr(0, kValueBytesShown - 3) + "...";
    };
    text += fmt::format("{}: {} -> {}\n", difference.where, shown(difference.from),
                        shown(difference.to));
  }
  return text;
}

json::Value DiffReport(const std::vector<Difference>& differences) {
  json::Array list;
  for (const Difference& difference : differences)
    list.push_back(json::Object{
        {"where", difference.where}, {"from", difference.from}, {"to", difference.to}});
  return json::Object{{"same", differences.empty()}, {"differences", std::move(list)}};
}

}  // namespace tessera::cli
