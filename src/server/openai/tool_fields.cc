// SPDX-License-Identifier: Apache-2.0
#include "server/openai/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "server/limits.h"

namespace tessera::server::openai {
namespace {

using Problem = std::optional<ApiError>;

constexpr std::array<std::string_view, 2> kToolMembers = {"type", "function"};
constexpr std::array<std::string_view, 4> kFunctionMembers = {"name", "description", "parameters",
                                                              "strict"};

/// Words under which a request gives functions and the choice among them.
struct Names {
  std::string_view tools;
  std::string_view choice;
};
constexpr Names kNewer = {"tools", "tool_choice"};
constexpr Names kOlder = {"functions", "function_call"};

void WarnUnknown(const json::Object& object, std::span<const std::string_view> known,
                 const std::string& where, std::vector<Warning>* warnings) {
  for (const auto& [key, value] : object)
    if (!value.is_null() && std::ranges::find(known, std::string_view(key)) == known.end())
      warnings->push_back(
          {"unknown_field", fmt::format("{}.{:.100}", where, std::string_view(key)),
           fmt::format("the member \"{:.100}\" of {} is not known and is given to the chat "
                       "template, which may not use it",
                       std::string_view(key), where)});
}

bool IsToolName(std::string_view name) {
  return !name.empty() && name.size() <= text::kToolNameBytesMax &&
         std::ranges::all_of(name, text::IsToolNameByte);
}

class ToolReader {
 public:
  ToolReader(Names names, std::vector<Warning>* warnings) : names_(names), warnings_(warnings) {}

  Problem ReadTools(const json::Array& list, ToolFields* fields) {
    if (list.size() > kToolsMax)
      return Bad(fmt::format("{} has {} entries, expected at most {}", names_.tools, list.size(),
                             kToolsMax));
    for (size_t i = 0; i < list.size(); ++i) {
      where_ = fmt::format("{}[{}]", names_.tools, i);
      json::Value function = list[i];
      if (names_.tools == kNewer.tools)
        if (Problem problem = Unwrap(&function)) return problem;
      if (Problem problem = ReadFunction(function, fields)) return problem;
      fields->tools.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    return std::nullopt;
  }

 private:
  ApiError Bad(std::string message) const { return BadField(names_.tools, std::move(message)); }

  Problem Unwrap(json::Value* value) {
    const json::Object* tool = value->if_object();
    const json::Value* type = tool == nullptr ? nullptr : json::Find(*tool, "type");
    if (type == nullptr || *type != "function")
      return Bad(fmt::format(
          "{}.type is {}, expected \"function\": this server knows no other tools", where_,
          type != nullptr && type->is_string()
              ? fmt::format("\"{:.50}\"", std::string_view(type->get_string()))
              : "missing or no string"));
    const json::Value* function = json::Find(*tool, "function");
    if (function == nullptr) return Bad(fmt::format("{}.function is missing", where_));
    WarnUnknown(*tool, kToolMembers, where_, warnings_);
    where_ += ".function";
    json::Value inner = *function;
    *value = std::move(inner);
    return std::nullopt;
  }

  Problem ReadFunction(const json::Value& value, ToolFields* fields) {
    const json::Object* function = value.if_object();
    if (function == nullptr)
      return Bad(
          fmt::format("{} is of type {}, expected an object", where_, json::KindName(value)));
    WarnUnknown(*function, kFunctionMembers, where_, warnings_);
    const json::Value* name = json::Find(*function, "name");
    if (name == nullptr || !name->is_string() || !IsToolName(name->get_string()))
      return Bad(
          fmt::format("{}.name is {}, expected 1 to {} letters, digits, \"_\" or \"-\"", where_,
                      name == nullptr ? "missing" : fmt::format("{:.100}", json::Serialize(*name)),
                      text::kToolNameBytesMax));
    if (!names_seen_.insert(std::string(name->get_string())).second)
      return Bad(fmt::format("{}.name is \"{}\", which another function has", where_,
                             std::string_view(name->get_string())));
    const json::Value* description = json::Find(*function, "description");
    if (description != nullptr && !description->is_string())
      return Bad(fmt::format("{}.description is of type {}, expected a string", where_,
                             json::KindName(*description)));
    const json::Value* strict = json::Find(*function, "strict");
    if (strict != nullptr && !strict->is_bool())
      return Bad(fmt::format("{}.strict is of type {}, expected true or false", where_,
                             json::KindName(*strict)));
    const json::Value* parameters = json::Find(*function, "parameters");
    if (Problem problem = CheckParameters(parameters)) return problem;
    fields->functions.push_back(
        {.name = std::string(name->get_string()),
         .parameters = parameters == nullptr ? json::Value(nullptr) : *parameters,
         .is_strict = strict != nullptr && strict->get_bool(),
         .is_allowed = true});
    return std::nullopt;
  }

  Problem CheckParameters(const json::Value* parameters) const {
    if (parameters == nullptr) return std::nullopt;
    const json::Object* schema = parameters->if_object();
    if (schema == nullptr)
      return Bad(fmt::format("{}.parameters is of type {}, expected an object: a JSON schema",
                             where_, json::KindName(*parameters)));
    const json::Value* type = json::Find(*schema, "type");
    if (type != nullptr && *type != "object")
      return Bad(fmt::format("{}.parameters.type is {:.100}, expected \"object\"", where_,
                             json::Serialize(*type)));
    return std::nullopt;
  }

  const Names names_;
  std::vector<Warning>* const warnings_;
  std::string where_;
  std::set<std::string> names_seen_;
};

ApiError BadChoice(const Names& names, std::string what) {
  return BadField(names.choice, fmt::format("{} {}", names.choice, what));
}

/// Lets only the function `name` be called.
Problem Allow(std::string_view name, const Names& names, ToolFields* fields) {
  const auto found = std::ranges::find(fields->functions, name, &ToolFields::Function::name);
  if (found == fields->functions.end())
    return BadChoice(names, fmt::format("names the function \"{:.100}\", which is none of {}", name,
                                        names.tools));
  found->is_allowed = true;
  return std::nullopt;
}

Problem AllowOnly(const json::Value* function, const Names& names, ToolFields* fields) {
  const json::Value* name = function == nullptr || !function->is_object()
                                ? nullptr
                                : json::Find(function->get_object(), "name");
  if (name == nullptr || !name->is_string())
    return BadChoice(names, "names no function: its name is missing or no string");
  return Allow(name->get_string(), names, fields);
}

void ForbidAll(ToolFields* fields) {
  for (ToolFields::Function& function : fields->functions) function.is_allowed = false;
}

/// {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [...]}}
Problem ReadAllowed(const json::Value* value, ToolFields* fields) {
  const json::Object* allowed = value == nullptr ? nullptr : value->if_object();
  const json::Value* mode = allowed == nullptr ? nullptr : json::Find(*allowed, "mode");
  const json::Value* list = allowed == nullptr ? nullptr : json::Find(*allowed, "tools");
  if (mode == nullptr || (*mode != "auto" && *mode != "required") || list == nullptr ||
      !list->is_array() || list->get_array().empty())
    return BadChoice(kNewer,
                     "of type allowed_tools needs allowed_tools with a mode, auto or required, and "
                     "a list of tools");
  fields->choice = *mode == "auto" ? ToolFields::Choice::kAuto : ToolFields::Choice::kRequired;
  ForbidAll(fields);
  for (const json::Value& entry : list->get_array()) {
    const json::Value* function =
        entry.is_object() ? json::Find(entry.get_object(), "function") : nullptr;
    if (Problem problem = AllowOnly(function, kNewer, fields)) return problem;
  }
  return std::nullopt;
}

Problem ReadChoiceWord(std::string_view word, const Names& names, ToolFields* fields) {
  if (word == "none") {
    fields->choice = ToolFields::Choice::kNone;
  } else if (word == "auto") {
    fields->choice = ToolFields::Choice::kAuto;
  } else if (word == "required" && names.choice == kNewer.choice) {
    fields->choice = ToolFields::Choice::kRequired;
  } else {
    return BadChoice(names, fmt::format("is \"{:.50}\", expected none, auto{} or a function", word,
                                        names.choice == kNewer.choice ? ", required" : ""));
  }
  return std::nullopt;
}

Problem ReadChoice(const json::Value& choice, const Names& names, ToolFields* fields) {
  if (const auto* word = choice.if_string()) return ReadChoiceWord(*word, names, fields);
  const json::Object* object = choice.if_object();
  if (object == nullptr)
    return BadChoice(names, fmt::format("is of type {}, expected a string or an object",
                                        json::KindName(choice)));
  const json::Value* function = &choice;
  if (names.choice == kNewer.choice) {
    const json::Value* type = json::Find(*object, "type");
    if (type != nullptr && *type == "allowed_tools")
      return ReadAllowed(json::Find(*object, "allowed_tools"), fields);
    if (type == nullptr || *type != "function")
      return BadChoice(names, "has another type than function or allowed_tools");
    function = json::Find(*object, "function");
  }
  fields->choice = ToolFields::Choice::kRequired;
  fields->several = false;  // One function was asked for: it is called once.
  ForbidAll(fields);
  return AllowOnly(function, names, fields);
}

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

ApiResult<ToolFields> ReadToolFields(const json::Object& body, std::vector<Warning>* warnings) {
  ToolFields fields;
  fields.several = BoolOr(body, "parallel_tool_calls", true);
  const bool is_older =
      json::Find(body, kOlder.tools) != nullptr || json::Find(body, kOlder.choice) != nullptr;
  const bool is_newer =
      json::Find(body, kNewer.tools) != nullptr || json::Find(body, kNewer.choice) != nullptr;
  if (is_older && is_newer)
    return std::unexpected(
        BadField(kOlder.tools,
                 "functions and function_call are older names of tools and tool_choice; give "
                 "one or the other"));
  const Names names = is_older ? kOlder : kNewer;
  fields.is_older = is_older;
  if (is_older) fields.several = false;  // The older form has room for one.
  if (const json::Value* list = json::Find(body, names.tools))
    if (Problem problem = ToolReader(names, warnings).ReadTools(list->get_array(), &fields))
      return std::unexpected(*std::move(problem));
  if (!fields.functions.empty()) fields.choice = ToolFields::Choice::kAuto;
  if (const json::Value* choice = json::Find(body, names.choice))
    if (Problem problem = ReadChoice(*choice, names, &fields))
      return std::unexpected(*std::move(problem));
  if (fields.choice == ToolFields::Choice::kRequired && fields.functions.empty())
    return std::unexpected(
        BadChoice(names, fmt::format("asks for a call, but there are no {}", names.tools)));
  if (fields.functions.empty()) fields.choice = ToolFields::Choice::kNone;
  return fields;
}

}  // namespace tessera::server::openai
