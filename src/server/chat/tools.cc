// SPDX-License-Identifier: Apache-2.0
#include "server/chat/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "server/chat/content.h"
#include "server/limits.h"

namespace tessera::server::chat {
namespace {

using openai::ApiResult;
using openai::Warning;

constexpr std::string_view kGivenToTemplate = "is given to the chat template, which may not use it";

bool IsToolName(const json::Value* name) {
  const auto* text = name == nullptr ? nullptr : name->if_string();
  return text != nullptr && !text->empty() && text->size() <= text::kToolNameBytesMax &&
         std::ranges::all_of(*text, text::IsToolNameByte);
}

class ToolReader {
 public:
  ToolReader(const ToolWords& words, std::vector<Warning>* warnings)
      : words_(words), warnings_(warnings) {}

  Problem ReadAll(const json::Array& list, ToolFields* fields) {
    if (list.size() > kToolsMax)
      return openai::BadField(words_.tools, fmt::format("{} has {} entries, expected at most {}",
                                                        words_.tools, list.size(), kToolsMax));
    for (size_t i = 0; i < list.size(); ++i) {
      Place place = Place{words_.tools, std::string(words_.tools)}.Entry(i);
      const json::Value* function = &list[i];
      if (Problem problem = CheckType(*function, place)) return problem;
      if (!words_.wrapper.empty())
        if (Problem problem = Unwrap(&function, &place)) return problem;
      if (Problem problem = ReadFunction(*function, place, fields)) return problem;
    }
    return std::nullopt;
  }

 private:
  Problem CheckType(const json::Value& value, const Place& place) const {
    if (words_.type.empty()) return std::nullopt;
    const json::Object* tool = value.if_object();
    const json::Value* type = tool == nullptr ? nullptr : json::Find(*tool, "type");
    if (type == nullptr && tool != nullptr && !words_.needs_type) return std::nullopt;
    if (type != nullptr && *type == json::Value(words_.type)) return std::nullopt;
    return BadPlace(
        place.Member("type"),
        fmt::format("is {}, expected \"{}\": this server knows no other tools",
                    type != nullptr && type->is_string()
                        ? fmt::format("\"{:.50}\"", std::string_view(type->get_string()))
                        : "missing or no string",
                    words_.type));
  }

  Problem Unwrap(const json::Value** value, Place* place) const {
    const json::Object& tool = (*value)->get_object();
    const json::Value* function = json::Find(tool, words_.wrapper);
    if (function == nullptr) return BadPlace(place->Member(words_.wrapper), "is missing");
    const std::string_view known[] = {"type", words_.wrapper};
    WarnOfUnknown(tool, known, *place, kGivenToTemplate, warnings_);
    *place = place->Member(words_.wrapper);
    *value = function;
    return std::nullopt;
  }

  Problem ReadFunction(const json::Value& value, const Place& place, ToolFields* fields) {
    const json::Object* function = value.if_object();
    if (function == nullptr)
      return BadPlace(place,
                      fmt::format("is of type {}, expected an object", json::KindName(value)));
    const json::Value* name = json::Find(*function, "name");
    if (!IsToolName(name))
      return BadPlace(
          place.Member("name"),
          fmt::format("is {}, expected 1 to {} letters, digits, \"_\" or \"-\"",
                      name == nullptr ? "missing" : fmt::format("{:.100}", json::Serialize(*name)),
                      text::kToolNameBytesMax));
    if (!names_seen_.insert(std::string(name->get_string())).second)
      return BadPlace(place.Member("name"), fmt::format("is \"{}\", which another function has",
                                                        std::string_view(name->get_string())));
    const json::Value* description = json::Find(*function, "description");
    if (description != nullptr && !description->is_string())
      return BadPlace(place.Member("description"), fmt::format("is of type {}, expected a string",
                                                               json::KindName(*description)));
    const json::Value* strict = json::Find(*function, "strict");
    if (strict != nullptr && !strict->is_bool())
      return BadPlace(place.Member("strict"), fmt::format("is of type {}, expected true or false",
                                                          json::KindName(*strict)));
    const json::Value* parameters = json::Find(*function, words_.parameters);
    const Place schema = place.Member(words_.parameters);
    if (Problem problem = CheckParameters(parameters, schema)) return problem;
    fields->functions.push_back(
        {.name = std::string(name->get_string()),
         .parameters = parameters == nullptr ? json::Value(nullptr) : *parameters,
         .parameters_path = schema.path,
         .is_strict = strict != nullptr && strict->get_bool(),
         .is_allowed = true});
    fields->tools.push_back({{"type", "function"}, {"function", ForTemplate(*function, place)}});
    return std::nullopt;
  }

  static Problem CheckParameters(const json::Value* parameters, const Place& place) {
    if (parameters == nullptr) return std::nullopt;
    const json::Object* schema = parameters->if_object();
    if (schema == nullptr)
      return BadPlace(place, fmt::format("is of type {}, expected an object: a JSON schema",
                                         json::KindName(*parameters)));
    const json::Value* type = json::Find(*schema, "type");
    if (type != nullptr && *type != "object")
      return BadPlace(place.Member("type"),
                      fmt::format("is {:.100}, expected \"object\"", json::Serialize(*type)));
    return std::nullopt;
  }

  /// The function in the words that templates know; members in the order in which they came.
  json::Object ForTemplate(const json::Object& function, const Place& place) {
    const std::string_view known[] = {"name", "description", words_.parameters, "strict"};
    json::Object made, others;
    for (const auto& [key, value] : function) {
      const std::string_view name = key;
      if (name == words_.parameters) {
        made["parameters"] = value;
        continue;
      }
      const bool is_ignored = std::ranges::find(words_.ignored, name) != words_.ignored.end() ||
                              (words_.wrapper.empty() && !words_.type.empty() && name == "type");
      if (is_ignored) continue;
      made[name] = value;
      if (std::ranges::find(known, name) == std::end(known)) others[name] = value;
    }
    WarnOfUnknown(others, {}, place, kGivenToTemplate, warnings_);
    return made;
  }

  const ToolWords& words_;
  std::vector<Warning>* const warnings_;
  std::set<std::string> names_seen_;
};

}  // namespace

std::shared_ptr<const std::vector<text::ToolSpec>> ToolFields::Specs() const {
  auto specs = std::make_shared<std::vector<text::ToolSpec>>();
  for (const Function& function : functions) {
    if (!function.is_allowed) continue;
    text::ToolSpec spec{.name = function.name, .text_parameters = {}};
    const json::Object* schema = function.parameters.if_object();
    const json::Value* properties = schema == nullptr ? nullptr : json::Find(*schema, "properties");
    if (properties != nullptr && properties->is_object())
      for (const auto& [key, value] : properties->get_object())
        if (text::TakesOnlyText(value)) spec.text_parameters.emplace(key);
    specs->push_back(std::move(spec));
  }
  return specs;
}

ApiResult<ToolFields> ReadTools(const json::Object& body, const ToolWords& words,
                                Problem (*read_choice)(const json::Value& choice,
                                                       ToolFields* fields),
                                std::vector<Warning>* warnings) {
  ToolFields fields;
  if (const json::Value* list = json::Find(body, words.tools))
    if (Problem problem = ToolReader(words, warnings).ReadAll(list->get_array(), &fields))
      return std::unexpected(*std::move(problem));
  if (!fields.functions.empty()) fields.choice = ToolFields::Choice::kAuto;
  if (const json::Value* choice = json::Find(body, words.choice))
    if (Problem problem = read_choice(*choice, &fields))
      return std::unexpected(*std::move(problem));
  if (fields.choice == ToolFields::Choice::kRequired && fields.functions.empty())
    return std::unexpected(
        BadChoice(words, fmt::format("asks for a call, but there are no {}", words.tools)));
  if (fields.functions.empty()) fields.choice = ToolFields::Choice::kNone;
  return fields;
}

openai::ApiError BadChoice(const ToolWords& words, std::string_view what) {
  return openai::BadField(words.choice, fmt::format("{} {}", words.choice, what));
}

void ForbidAll(ToolFields* fields) {
  for (ToolFields::Function& function : fields->functions) function.is_allowed = false;
}

Problem Allow(const json::Value* name, const ToolWords& words, ToolFields* fields) {
  if (name == nullptr || !name->is_string())
    return BadChoice(words, "names no function: its name is missing or no string");
  const std::string_view wanted = name->get_string();
  const auto found = std::ranges::find(fields->functions, wanted, &ToolFields::Function::name);
  if (found == fields->functions.end())
    return BadChoice(words, fmt::format("names the function \"{:.100}\", which is none of {}",
                                        wanted, words.tools));
  found->is_allowed = true;
  return std::nullopt;
}

Problem RequireOnly(const json::Value* name, const ToolWords& words, ToolFields* fields) {
  fields->choice = ToolFields::Choice::kRequired;
  fields->several = false;
  ForbidAll(fields);
  return Allow(name, words, fields);
}

}  // namespace tessera::server::chat
