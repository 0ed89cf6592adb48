// SPDX-License-Identifier: Apache-2.0
#include "text/tool_probe.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "text/json_scanner.h"
#include "text/reasoning_parser.h"
#include "text/tool_parser.h"

namespace tessera::text {
namespace {

// Words that no template writes by itself, and none of which is part of another.
constexpr std::string_view kAsk = "zqask";
constexpr std::string_view kSystem = "zqsystem";
constexpr std::string_view kContent = "zqcontent";
constexpr std::array<std::string_view, 2> kNames = {"zqtoola", "zqtoolb"};
// Mistral's templates want ids of nine letters or digits.
constexpr std::array<std::string_view, 2> kIds = {"zqident01", "zqident02"};
constexpr std::array<std::array<std::string_view, 2>, 2> kKeys = {
    {{"zqkeya", "zqkeyb"}, {"zqkeyc", "zqkeyd"}}};
constexpr std::array<std::array<std::string_view, 2>, 2> kValues = {
    {{"zqvala", "zqvalb"}, {"zqvalc", "zqvald"}}};

constexpr int64_t kNumber = 580'913'276;

/// Which of the forms of a history that are in use a template takes.
struct HistoryForm {
  bool arguments_as_text = false;
  bool content_as_null = false;
};
constexpr std::array<HistoryForm, 4> kHistoryForms = {
    {{false, false}, {false, true}, {true, false}, {true, true}}};

json::Object ArgumentsOf(size_t call) {
  json::Object arguments;
  for (size_t i = 0; i < 2; ++i) arguments[kKeys[call][i]] = kValues[call][i];
  return arguments;
}

json::Value BothTools() {
  json::Array tools;
  for (size_t call = 0; call < kNames.size(); ++call) {
    json::Object properties;
    for (const std::string_view key : kKeys[call])
      properties[key] = {{"type", "string"}, {"description", "d"}};
    tools.push_back({{"type", "function"},
                     {"function",
                      {{"name", kNames[call]},
                       {"description", "d"},
                       {"parameters",
                        {{"type", "object"},
                         {"properties", std::move(properties)},
                         {"required", json::Array(kKeys[call].begin(), kKeys[call].end())}}}}}});
  }
  return tools;
}

/// `number` true: the first argument is kNumber instead of a string.
json::Value CallMessage(size_t calls, const HistoryForm& form, bool number = false) {
  json::Array list;
  for (size_t i = 0; i < calls; ++i) {
    json::Object object = ArgumentsOf(i);
    if (number) object[kKeys[i][0]] = kNumber;
    json::Value arguments = std::move(object);
    if (form.arguments_as_text) arguments = json::Serialize(arguments);
    list.push_back({{"id", kIds[i]},
                    {"type", "function"},
                    {"function", {{"name", kNames[i]}, {"arguments", std::move(arguments)}}}});
  }
  return {{"role", "assistant"},
          {"content", form.content_as_null ? json::Value(nullptr) : json::Value("")},
          {"tool_calls", std::move(list)}};
}

/// What of tools a template is given.
enum class Tools : uint8_t { kNone, kEmpty, kBoth };

class Prober {
 public:
  Prober(const ChatTemplate& chat_template, const json::Object& vars,
         std::span<const std::string> end_texts)
      : template_(chat_template), vars_(vars), end_texts_(end_texts) {}

  ToolProbe Run();

 private:
  /// What follows the user's question.
  std::optional<std::string> Region(std::optional<json::Value> answer) const;
  std::optional<std::string> Render(json::Array messages, Tools tools, bool is_open) const;
  std::optional<ToolSyntax> Learn(const HistoryForm& form, bool as_parameters) const;
  std::string JsonKeyEnd(const HistoryForm& form, const std::string& key_end) const;
  std::string_view WithoutTurnBegin(std::string_view text) const;
  std::string_view WithoutTurnEnd(std::string_view text) const;

  const ChatTemplate& template_;
  const json::Object& vars_;
  const std::span<const std::string> end_texts_;
  std::string turn_begin_;  // Of the assistant, before the text.
  std::string turn_end_;
};

std::optional<std::string> Prober::Render(json::Array messages, Tools tools, bool is_open) const {
  RenderInput input;
  input.messages = std::move(messages);
  if (tools != Tools::kNone) input.tools = json::Array();
  if (tools == Tools::kBoth) input.tools = BothTools();
  input.add_generation_prompt = is_open;
  input.vars = vars_;
  auto text = template_.Render(input);
  if (!text.has_value()) return std::nullopt;
  return *std::move(text);
}

std::optional<std::string> Prober::Region(std::optional<json::Value> answer) const {
  json::Array messages{{{"role", "user"}, {"content", kAsk}}};
  const bool is_open = !answer.has_value();
  if (answer.has_value()) messages.push_back(*std::move(answer));
  const auto text = Render(std::move(messages), Tools::kBoth, is_open);
  if (!text.has_value()) return std::nullopt;
  const size_t ask = text->rfind(kAsk);
  if (ask == std::string::npos) return std::nullopt;
  return text->substr(ask + kAsk.size());
}

size_t CommonBegin(std::string_view a, std::string_view b) {
  const auto x = Atoms(a);
  const auto y = Atoms(b);
  size_t bytes = 0;
  for (size_t i = 0; i < std::min(x.size(), y.size()) && x[i] == y[i]; ++i) bytes += x[i].size();
  return bytes;
}

std::string_view TrimmedFront(std::string_view text) {
  while (!text.empty() && IsJsonSpace(text.front())) text.remove_prefix(1);
  return text;
}
std::string_view TrimmedBack(std::string_view text) {
  while (!text.empty() && IsJsonSpace(text.back())) text.remove_suffix(1);
  return text;
}

size_t CommonEnd(std::string_view a, std::string_view b) {
  const auto x = Atoms(a);
  const auto y = Atoms(b);
  size_t bytes = 0;
  for (size_t i = 1; i <= std::min(x.size(), y.size()) && x[x.size() - i] == y[y.size() - i]; ++i)
    bytes += x[x.size() - i].size();
  return bytes;
}

/// What stands before, between and behind two things of a kind, as a list of them is written.
struct ListMarks {
  std::string list_begin, begin, end, separator, list_end;
};
ListMarks Split(std::string_view before, std::string_view between, std::string_view behind) {
  ListMarks marks;
  const size_t begin = CommonEnd(before, between);
  marks.begin = before.substr(before.size() - begin);
  marks.list_begin = before.substr(0, before.size() - begin);
  const std::string_view rest = between.substr(0, between.size() - begin);
  const size_t end = CommonBegin(rest, behind);
  marks.end = behind.substr(0, end);
  marks.separator = rest.substr(end);
  marks.list_end = behind.substr(end);
  return marks;
}

/// A span of a text.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};

/// End of the JSON value that begins at `at`, or nothing.
std::optional<size_t> JsonEnd(std::string_view text, size_t at) {
  JsonScanner scanner;
  for (size_t i = at; i < text.size(); ++i) {
    const JsonScanner::Step step = scanner.Push(text[i]);
    if (step == JsonScanner::Step::kBad) return std::nullopt;
    if (step == JsonScanner::Step::kDone) return i + 1;
  }
  return std::nullopt;
}

/// The smallest JSON object that covers `inside`.
std::optional<Span> ObjectAround(std::string_view text, Span inside) {
  size_t at = inside.begin + 1;
  while (at > 0 && (at = text.rfind('{', at - 1)) != std::string_view::npos) {
    const auto end = JsonEnd(text, at);
    if (end.has_value() && *end >= inside.end) return Span{at, *end};
    if (at == 0) break;
  }
  return std::nullopt;
}

std::optional<Span> Find(std::string_view text, std::string_view word, size_t from) {
  const size_t at = text.find(word, from);
  if (at == std::string_view::npos) return std::nullopt;
  return Span{at, at + word.size()};
}

/// Where a call's words stand in a region.
struct Words {
  Span name;
  Span arguments;  // From the first key to the last value.
};
std::optional<Words> FindWords(std::string_view text, size_t call) {
  const auto name = Find(text, kNames[call], 0);
  const auto key = Find(text, kKeys[call][0], 0);
  if (!name.has_value() || !key.has_value()) return std::nullopt;
  const auto value = Find(text, kValues[call][1], key->end);
  if (!value.has_value()) return std::nullopt;
  return Words{*name, {key->begin, value->end}};
}

/// A call as found in a text: its whole extent and where its parts are in it.
struct FoundCall {
  Span extent;  // From the object's bracket or the bare name, to the arguments' or object's end.
  Span name;
  Span arguments;
  bool is_object = false;
};

std::optional<FoundCall> FindCall(std::string_view text, size_t call, bool as_parameters) {
  const auto words = FindWords(text, call);
  if (!words.has_value()) return std::nullopt;
  FoundCall found;
  found.name = words->name;
  if (as_parameters) {
    if (words->name.end > words->arguments.begin) return std::nullopt;
    found.arguments = words->arguments;
    found.extent = {words->name.begin, words->arguments.end};
    return found;
  }
  const auto arguments = ObjectAround(text, words->arguments);
  if (!arguments.has_value()) return std::nullopt;
  const auto parsed =
      json::Parse(text.substr(arguments->begin, arguments->end - arguments->begin), {}, "call");
  const bool is_exact = parsed.has_value() && *parsed == json::Value(ArgumentsOf(call));
  if (is_exact) found.arguments = *arguments;
  const Span both{std::min(words->name.begin, words->arguments.begin),
                  std::max(words->name.end, words->arguments.end)};
  if (const auto object = ObjectAround(text, both)) {
    found.is_object = true;
    found.extent = *object;
    return is_exact ? std::optional(found) : std::nullopt;
  }
  if (!is_exact || words->name.end > arguments->begin) return std::nullopt;
  found.extent = {words->name.begin, arguments->end};
  return found;
}

/// `text` between the parts of call `call`, with its id or index taken out.
void AddLiteral(std::string_view text, size_t call, std::vector<CallPart>* parts) {
  size_t at = text.find(kIds[call]);
  if (at != std::string_view::npos) {
    AddLiteral(text.substr(0, at), call, parts);
    parts->push_back({CallPart::Kind::kId, {}});
    return AddLiteral(text.substr(at + kIds[call].size()), call, parts);
  }
  if (!text.empty()) parts->push_back({CallPart::Kind::kLiteral, std::string(text)});
}

std::vector<CallPart> PartsOf(std::string_view text, const FoundCall& found, size_t call) {
  std::vector<CallPart> parts;
  const auto literal = [&](size_t begin, size_t end) {
    AddLiteral(text.substr(begin, end - begin), call, &parts);
  };
  const bool name_first = found.name.begin < found.arguments.begin;
  const Span first = name_first ? found.name : found.arguments;
  const Span second = name_first ? found.arguments : found.name;
  literal(found.extent.begin, first.begin);
  parts.push_back({name_first ? CallPart::Kind::kName : CallPart::Kind::kArguments, {}});
  literal(first.end, second.begin);
  parts.push_back({name_first ? CallPart::Kind::kArguments : CallPart::Kind::kName, {}});
  literal(second.end, found.extent.end);
  return parts;
}

/// Literals that differ in the call's number only, "0" and "1", are written with the number.
void FindIndex(const std::vector<CallPart>& second, std::vector<CallPart>* parts) {
  const std::vector<CallPart> first = std::exchange(*parts, {});
  for (size_t i = 0; i < first.size(); ++i) {
    const std::string& a = first[i].text;
    const std::string& b = i < second.size() ? second[i].text : a;
    const size_t at = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
    const bool is_number = a.size() == b.size() && at < a.size() && a[at] == '0' && b[at] == '1' &&
                           a.substr(at + 1) == b.substr(at + 1);
    if (!is_number) {
      parts->push_back(first[i]);
      continue;
    }
    if (at > 0) parts->push_back({CallPart::Kind::kLiteral, a.substr(0, at)});
    parts->push_back({CallPart::Kind::kIndex, {}});
    if (at + 1 < a.size()) parts->push_back({CallPart::Kind::kLiteral, a.substr(at + 1)});
  }
}

/// The keys of an object that is a call.
bool FindKeys(std::string_view object_text, ToolSyntax* syntax) {
  const auto value = json::Parse(object_text, {}, "call");
  if (!value.has_value() || !value->is_object()) return false;
  const json::Object& object = value->get_object();
  for (const auto& [key, member] : object) {
    if (member == json::Value(kNames[0])) syntax->name_key = key;
    if (member == json::Value(ArgumentsOf(0))) syntax->arguments_key = key;
  }
  if (object.size() == 1 && object.begin()->key() == kNames[0]) {
    syntax->form = ToolSyntax::Form::kNameAsKey;
    syntax->arguments_key.clear();
    return true;
  }
  syntax->form = ToolSyntax::Form::kObject;
  return !syntax->name_key.empty() && !syntax->arguments_key.empty();
}

/// From the region of one call: how a parameter is marked, and what stands behind the last one.
bool FindParameterMarks(std::string_view region, const FoundCall& found, std::string_view call_end,
                        ToolSyntax* syntax, std::string* rest) {
  const auto key = Find(region, kKeys[0][0], found.name.end);
  const auto value = Find(region, kValues[0][0], key->end);
  if (!value.has_value()) return false;
  const auto next_key = Find(region, kKeys[0][1], value->end);
  if (!next_key.has_value()) return false;
  const auto text = [&](size_t begin, size_t end) { return region.substr(begin, end - begin); };
  const ListMarks marks =
      Split(text(found.name.end, key->begin), text(value->end, next_key->begin), call_end);
  syntax->arguments = ToolSyntax::Arguments::kParameters;
  syntax->key_end = text(key->end, value->begin);
  syntax->parameter_begin = marks.begin;
  syntax->parameter_end = marks.end;
  syntax->parameter_separator = marks.separator;
  syntax->parts = {{CallPart::Kind::kName, {}}};
  if (!marks.list_begin.empty())
    syntax->parts.push_back({CallPart::Kind::kLiteral, marks.list_begin});
  syntax->parts.push_back({CallPart::Kind::kArguments, {}});
  *rest = marks.list_end;
  // Bare values need marks that do not occur in them.
  return TrimmedFront(marks.begin).starts_with('<') && marks.end.find('<') != std::string::npos &&
         syntax->key_end.find('>') != std::string::npos;
}

/// What stands before the first call in a region, without what stands before any text there, empty
/// thoughts included.
std::string_view Prober::WithoutTurnBegin(std::string_view text) const {
  text = TrimmedFront(text.substr(CommonBegin(text, turn_begin_)));
  for (const std::string_view name : ReasoningSyntaxNames()) {
    const ReasoningSyntax& syntax = *FindReasoningSyntax(name);
    const size_t end = text.find(syntax.end);
    if (text.starts_with(syntax.begin) && end != std::string_view::npos)
      text = TrimmedFront(text.substr(end + syntax.end.size()));
  }
  return text;
}

/// What stands behind the last call in a region, without what ends any turn, or an answer.
std::string_view Prober::WithoutTurnEnd(std::string_view text) const {
  std::string_view turn_end = TrimmedBack(turn_end_);
  text = TrimmedBack(text);
  while (!text.empty() && !turn_end.empty()) {
    const std::string_view last = Atoms(text).back();
    if (Atoms(turn_end).back() != last) break;
    text = TrimmedBack(text.substr(0, text.size() - last.size()));
    turn_end = TrimmedBack(turn_end.substr(0, turn_end.size() - last.size()));
  }
  for (const std::string& end : end_texts_)
    if (!end.empty()) text = text.substr(0, text.find(end));
  return TrimmedBack(text);
}

std::vector<ToolSpec> Specs() {
  std::vector<ToolSpec> specs;
  for (size_t call = 0; call < kNames.size(); ++call)
    specs.push_back({std::string(kNames[call]), {kKeys[call].begin(), kKeys[call].end()}});
  return specs;
}

/// Whether the parser of `syntax` reads just these calls.
bool ReadsBack(const ToolSyntax& syntax, std::string_view text, size_t calls) {
  ToolParser parser(std::make_shared<ToolSyntax>(syntax),
                    std::make_shared<std::vector<ToolSpec>>(Specs()), {});
  std::vector<ToolEvent> events;
  parser.Push(text, &events);
  parser.Finish(&events);
  if (events.size() != 2 * calls || !parser.problem().empty()) return false;
  for (size_t i = 0; i < calls; ++i) {
    const auto arguments = json::Parse(events[2 * i + 1].text, {}, "arguments");
    if (events[2 * i].text != kNames[i] || !arguments.has_value() ||
        *arguments != json::Value(ArgumentsOf(i)))
      return false;
  }
  return true;
}

/// The syntax without its lists: form, parts, keys. `rest` becomes what stands behind a call.
bool FindForm(std::string_view text, const FoundCall& found, std::string_view behind,
              ToolSyntax* syntax, std::string* rest) {
  *rest = behind;
  if (syntax->arguments == ToolSyntax::Arguments::kParameters)
    return FindParameterMarks(text, found, behind, syntax, rest);
  syntax->parts = PartsOf(text, found, 0);
  if (!found.is_object) return true;
  return FindKeys(text.substr(found.extent.begin, found.extent.end - found.extent.begin), syntax);
}

/// What stands between a key and a value that is no string; empty when it is `key_end`.
std::string Prober::JsonKeyEnd(const HistoryForm& form, const std::string& key_end) const {
  const auto text = Region(CallMessage(1, form, /*number=*/true));
  if (!text.has_value()) return {};
  const auto key = Find(*text, kKeys[0][0], 0);
  const auto value =
      key.has_value() ? Find(*text, std::to_string(kNumber), key->end) : std::nullopt;
  if (!value.has_value()) return {};
  std::string found = text->substr(key->end, value->begin - key->end);
  return found == key_end ? std::string() : found;
}

std::optional<ToolSyntax> Prober::Learn(const HistoryForm& form, bool as_parameters) const {
  const auto one = Region(CallMessage(1, form));
  const auto found = one.has_value() ? FindCall(*one, 0, as_parameters) : std::nullopt;
  if (!found.has_value()) return std::nullopt;
  const auto two = Region(CallMessage(2, form));
  const auto first = two.has_value() ? FindCall(*two, 0, as_parameters) : std::nullopt;
  const auto second = two.has_value() ? FindCall(*two, 1, as_parameters) : std::nullopt;

  ToolSyntax syntax;
  syntax.name = "learnt";
  syntax.form = ToolSyntax::Form::kNameFirst;
  if (as_parameters) syntax.arguments = ToolSyntax::Arguments::kParameters;
  syntax.history_arguments_as_text = form.arguments_as_text;
  syntax.history_content_as_null = form.content_as_null;
  syntax.several =
      first.has_value() && second.has_value() && first->extent.end <= second->extent.begin;
  // Some templates close the list of calls only behind several.
  const std::string_view text = syntax.several ? *two : *one;
  const Span begin = syntax.several ? first->extent : found->extent;
  const Span end = syntax.several ? second->extent : found->extent;
  const std::string_view before = WithoutTurnBegin(text.substr(0, begin.begin));
  const std::string_view behind = WithoutTurnEnd(text.substr(end.end));
  std::string rest;
  if (!FindForm(text, syntax.several ? *first : *found, behind, &syntax, &rest))
    return std::nullopt;
  if (as_parameters) syntax.json_key_end = JsonKeyEnd(form, syntax.key_end);
  if (!syntax.several) {
    syntax.call_begin = before;
    syntax.call_end = rest;
  } else {
    std::string_view between = text.substr(begin.end, end.begin - begin.end);
    if (!between.starts_with(syntax.parameter_end)) return std::nullopt;
    between.remove_prefix(syntax.parameter_end.size());
    ListMarks marks = Split(before, between, rest);
    syntax.section_begin = std::move(marks.list_begin);
    syntax.call_begin = std::move(marks.begin);
    syntax.call_end = std::move(marks.end);
    syntax.separator = std::move(marks.separator);
    syntax.section_end = std::move(marks.list_end);
    if (!as_parameters) FindIndex(PartsOf(text, *second, 1), &syntax.parts);
  }
  std::string calls(before);
  calls += text.substr(begin.begin, end.end - begin.begin);
  calls += behind;
  if (!ReadsBack(syntax, calls, syntax.several ? 2 : 1)) return std::nullopt;
  return syntax;
}

ToolProbe Prober::Run() {
  ToolProbe probe;
  const json::Value ask{{"role", "user"}, {"content", kAsk}};
  const json::Value system{{"role", "system"}, {"content", kSystem}};
  const auto shown = Render({ask}, Tools::kBoth, true);
  probe.shows_tools = shown.has_value() && shown->find(kNames[0]) != std::string::npos &&
                      shown->find(kNames[1]) != std::string::npos;
  probe.needs_list = !Render({ask}, Tools::kNone, true).has_value() &&
                     Render({ask}, Tools::kEmpty, true).has_value();
  const auto with_system =
      Render({system, ask}, probe.needs_list ? Tools::kEmpty : Tools::kNone, true);
  probe.takes_system = with_system.has_value() && with_system->find(kSystem) != std::string::npos;

  const auto plain = Region(json::Value{{"role", "assistant"}, {"content", kContent}});
  const size_t content = plain.has_value() ? plain->find(kContent) : std::string::npos;
  if (content == std::string::npos) {
    probe.reason = "the template does not write an assistant's text when there are tools";
    return probe;
  }
  turn_begin_ = plain->substr(0, content);
  turn_end_ = plain->substr(content + kContent.size());
  // The prompt may begin the turn further than an answer without thoughts does.
  if (const auto open = Region(std::nullopt))
    if (turn_begin_.starts_with(*open) && open->size() > turn_begin_.size()) turn_begin_ = *open;
  bool writes_objects = false;
  for (const HistoryForm& form : kHistoryForms) {
    // Text in the place of an object is written as it is; it shows no syntax.
    if (form.arguments_as_text && writes_objects) continue;
    const auto one = Region(CallMessage(1, form));
    const bool has_words = one.has_value() && one->find(kValues[0][0]) != std::string::npos &&
                           one->find(kValues[0][1]) != std::string::npos;
    probe.writes_calls |= has_words;
    writes_objects |= has_words;
    for (const bool as_parameters : {false, true}) {
      probe.syntax = Learn(form, as_parameters);
      if (probe.syntax.has_value()) return probe;
    }
  }
  probe.reason = "the template writes no calls, or in a form that is not known";
  return probe;
}

}  // namespace

ToolProbe ProbeTools(const ChatTemplate& chat_template, const json::Object& vars,
                     std::span<const std::string> end_texts) {
  return Prober(chat_template, vars, end_texts).Run();
}

}  // namespace tessera::text
