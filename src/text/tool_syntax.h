// SPDX-License-Identifier: Apache-2.0
//
// ToolSyntax: how a model writes calls of functions into its text, as data. A model's own form is
// learnt from its chat template (tool_probe.h) or taken from the table of named forms below;
// tool_parser.h reads it, WriteToolCalls writes it, and constraints are made of it.
//
//   <tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>
//   '-call_begin-''----------- parts ---------------''-- call_end -'
//
//   [TOOL_CALLS][{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]
//   section_begin                           separator                      section_end
//
// White space in these texts is what the model was trained to write; readers take any or none.
// Plain values; immutable once made.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tessera::text {

/// A piece of what stands between call_begin and call_end.
struct CallPart {
  enum class Kind : uint8_t {
    kLiteral,
    kName,       // The function's name, bare.
    kArguments,  // As ToolSyntax::arguments says.
    kId,         // Nine letters or digits that name the call.
    kIndex,      // The number of the call, from 0.
  };
  Kind kind = Kind::kLiteral;
  std::string text;  // Of kLiteral.
  friend bool operator==(const CallPart&, const CallPart&) = default;
};

struct ToolSyntax {
  enum class Form : uint8_t {
    kObject,     // A JSON object with the members name_key and arguments_key, in any order.
    kNameAsKey,  // A JSON object whose only member is called like the function: {"f": {...}}.
    kNameFirst,  // The bare name, then the arguments.
  };
  enum class Arguments : uint8_t {
    kJson,        // A JSON object.
    kParameters,  // Each argument between marks of its own; strings bare, other values as JSON.
  };

  std::string name;  // "hermes"; "learnt" when it comes from a template.
  Form form = Form::kObject;
  Arguments arguments = Arguments::kJson;

  std::string section_begin;  // Once, before the first call. May be empty, as all of these.
  std::string call_begin;     // Before each call.
  std::vector<CallPart> parts;
  std::string call_end;
  std::string separator;  // Between a call's end and the next one's beginning.
  std::string section_end;
  bool several = true;  // Whether an answer may hold more than one call.

  // kObject.
  std::string name_key;
  std::string arguments_key;

  // kParameters: parameter_begin KEY key_end VALUE parameter_end, with parameter_separator between.
  std::string parameter_begin;
  std::string key_end;
  std::string json_key_end;  // Of values that are no strings, where that differs; else empty.
  std::string parameter_end;
  std::string parameter_separator;

  /// What the template wants in the history.
  bool history_arguments_as_text = false;  // "arguments": "{...}" instead of an object.
  bool history_content_as_null = false;    // "content": null instead of "" beside calls.

  /// What announces calls within text: `<tool_call>`. Empty: nothing does, an answer that begins
  /// with a JSON object may be a call.
  std::string Marker() const;
  bool IsObject() const { return form != Form::kNameFirst; }
};

/// One call to write.
struct ToolCall {
  std::string name;
  json::Object arguments;
};
/// The calls as the model would write them.
std::string WriteToolCalls(const ToolSyntax& syntax, std::span<const ToolCall> calls);

/// The form for models that have none of their own: `<tool_call>` around a JSON object.
const ToolSyntax& DefaultToolSyntax();
/// The named form whose marks a template's source spells out; null when there is none. For
/// templates that tell the model of a form and do not write it themselves.
const ToolSyntax* ToolSyntaxIn(std::string_view template_source);
/// By the names that --tool-call-parser takes; null when there is none of that name.
const ToolSyntax* FindToolSyntax(std::string_view name);
std::vector<std::string_view> ToolSyntaxNames();

/// `text` cut into what compares as a whole: marks such as <tool_call>, </function>, [TOOL_CALLS],
/// and single bytes of everything else.
std::vector<std::string_view> Atoms(std::string_view text);

}  // namespace tessera::text
