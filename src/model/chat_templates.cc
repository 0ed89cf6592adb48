// SPDX-License-Identifier: Apache-2.0
#include "model/chat_templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "model/limits.h"

namespace tessera::model {
namespace {

namespace fs = std::filesystem;
using Templates = std::map<std::string, std::string>;  // name -> text

constexpr std::string_view kDefault = "default";

Status Put(Templates& templates, std::string name, std::string text) {
  if (text.size() > kMaxTemplateFileBytes) {
    return ResourceExhausted(fmt::format("chat template '{}' has {} bytes, at most {}", name,
                                         text.size(), kMaxTemplateFileBytes));
  }
  templates[std::move(name)] = std::move(text);
  if (templates.size() <= kMaxTemplates) return {};
  return ResourceExhausted(fmt::format("more than {} chat templates", kMaxTemplates));
}

/// "chat_template": a string, or a list of {"name", "template"}.
Status PutMember(Templates& templates, const json::Object& object) {
  const json::Value* value = json::Find(object, "chat_template");
  if (value == nullptr) return {};
  if (value->is_string()) {
    return Put(templates, std::string(kDefault), std::string(value->get_string()));
  }
  const json::Array* list = value->if_array();
  if (list == nullptr) {
    return InvalidArgument(fmt::format("'chat_template' is {}, expected a string or an array",
                                       json::KindName(*value)));
  }
  for (const json::Value& item : *list) {
    const json::Object* entry = item.if_object();
    if (entry == nullptr) {
      return InvalidArgument("'chat_template' holds something else than objects");
    }
    TESSERA_ASSIGN_OR_RETURN(std::string name, json::NeedString(*entry, "name"));
    TESSERA_ASSIGN_OR_RETURN(std::string text, json::NeedString(*entry, "template"));
    TESSERA_RETURN_IF_ERROR(Put(templates, std::move(name), std::move(text)));
  }
  return {};
}

Status PutJsonFile(Templates& templates, const fs::path& path) {
  // JSON escapes lengthen the text, by at most six bytes for one.
  TESSERA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 6 * kMaxTemplateFileBytes));
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, json::Parse(text, {}, path.string()));
  if (!value.is_object()) {
    return InvalidArgument(
        fmt::format("{} is {}, expected an object", path.string(), json::KindName(value)));
  }
  return PutMember(templates, value.get_object()).WithContext(path.string());
}

Status PutFolder(Templates& templates, const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".jinja") continue;
    TESSERA_ASSIGN_OR_RETURN(std::string text, ReadFile(it->path(), kMaxTemplateFileBytes));
    TESSERA_RETURN_IF_ERROR(Put(templates, it->path().stem().string(), std::move(text)));
  }
  if (!error) return {};
  return Unavailable(fmt::format("reading {}: {}", folder.string(), error.message()));
}

std::vector<NamedTemplate> InOrder(Templates templates) {
  std::vector<NamedTemplate> list;
  for (auto& [name, text] : templates) list.push_back({name, std::move(text)});
  std::stable_partition(list.begin(), list.end(),
                        [](const NamedTemplate& item) { return item.name == kDefault; });
  return list;
}

}  // namespace

Result<std::vector<NamedTemplate>> ReadHfChatTemplates(const fs::path& folder,
                                                       const json::Object* tokenizer_config) {
  Templates templates;
  if (tokenizer_config != nullptr) {
    TESSERA_RETURN_IF_ERROR(
        PutMember(templates, *tokenizer_config).WithContext("tokenizer_config.json"));
  }
  std::error_code ignored;  // A file that cannot be examined is not there.
  if (IsPresent(folder / "chat_template.json")) {
    TESSERA_RETURN_IF_ERROR(PutJsonFile(templates, folder / "chat_template.json"));
  }
  if (IsPresent(folder / "chat_template.jinja")) {
    TESSERA_ASSIGN_OR_RETURN(std::string text,
                             ReadFile(folder / "chat_template.jinja", kMaxTemplateFileBytes));
    TESSERA_RETURN_IF_ERROR(Put(templates, std::string(kDefault), std::move(text)));
  }
  if (fs::is_directory(folder / "additional_chat_templates", ignored)) {
    TESSERA_RETURN_IF_ERROR(PutFolder(templates, folder / "additional_chat_templates"));
  }
  return InOrder(std::move(templates));
}

Result<std::vector<NamedTemplate>> ReadGgufChatTemplates(const formats::Metadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  Templates templates;
  for (const auto& [key, value] : metadata.items()) {
    const bool is_named =
        key.starts_with(kKey) && key.size() > kKey.size() + 1 && key[kKey.size()] == '.';
    if (key != kKey && !is_named) continue;
    TESSERA_ASSIGN_OR_RETURN(std::string text, metadata.Text(key));
    std::string name(is_named ? key.substr(kKey.size() + 1) : kDefault);
    TESSERA_RETURN_IF_ERROR(Put(templates, std::move(name), std::move(text)));
  }
  return InOrder(std::move(templates));
}

}  // namespace tessera::model
