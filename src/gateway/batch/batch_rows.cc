// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "gateway/api/completion_v1.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

constexpr std::string_view kCompletions = "/v1/completions", kChat = "/v1/chat/completions";
constexpr uint32_t kRowDepthMax = 60;
constexpr json::Limits kRowLimits{.max_bytes = kBatchRowBytesMax, .max_depth = kRowDepthMax};

std::unexpected<ApiError> Refuse(std::string text) {
  return std::unexpected(ApiError{.status = 400, .text = std::move(text)});
}

/// Counts rows for their limit.
class Counted {
 public:
  explicit Counted(const OnRow& on_row) : on_row_(on_row) {}

  ApiResult<void> Add(BatchRow row) {
    if (++count_ > kBatchRowsMax)
      return Refuse(fmt::format("content: more than {} rows; make several batches", kBatchRowsMax));
    return on_row_(std::move(row));
  }
  ApiResult<void> CheckAny() const {
    if (count_ == 0) return Refuse("content: there are no rows");
    return {};
  }

 private:
  const OnRow& on_row_;
  int64_t count_ = 0;
};

BatchRow Bad(std::string error) {
  BatchRow row;
  row.error = std::move(error);
  return row;
}

/// Takes what has no meaning for a worker off a request; the error of one that cannot be a row.
std::string CleanBody(json::Object* body) {
  json::Object kept;
  for (auto& member : *body)
    if (!member.value().is_null()) kept[member.key()] = std::move(member.value());
  *body = std::move(kept);
  if (const json::Value* stream = json::Find(*body, "stream")) {
    if (!stream->is_bool() || stream->get_bool()) return "stream: rows are answered whole";
    body->erase("stream");
  }
  body->erase("stream_options");
  return {};
}

BatchRow RowOfRequest(const json::Value& request, std::string_view model) {
  if (!request.is_object()) return Bad("expected an object with messages or prompt");
  BatchRow row{.body = request.get_object()};
  if (std::string error = CleanBody(&row.body); !error.empty()) return Bad(std::move(error));
  const bool is_chat = row.body.contains("messages"), is_text = row.body.contains("prompt");
  if (is_chat == is_text) return Bad("expected either messages or prompt");
  if (const json::Value* named = json::Find(row.body, "model")) {
    const auto* text = named->if_string();
    if (text == nullptr || std::string_view(*text) != model)
      return Bad("model: every row of a batch is answered by model_config.model");
    row.body.erase("model");
  }
  row.target = is_chat ? kChat : kCompletions;
  return row;
}

ApiResult<RowsFacts> ReadPrompts(const json::Object& content, const OnRow& on_row) {
  const json::Value* prompts = json::Find(content, "prompts");
  if (prompts == nullptr || !prompts->is_array())
    return std::unexpected(ApiError{
        .status = 422,
        .fields = {{prompts == nullptr ? "missing" : "list_type",
                    {"body", "content", "prompts"},
                    prompts == nullptr ? "Field required" : "Input should be a list of texts",
                    json::Value()}}});
  json::Object shared = content;
  shared.erase("prompts");
  // Checked once with any prompt: the rest is the same for all.
  json::Object asked = shared;
  asked["prompt"] = "";
  auto sample = ReadCompletion(asked, "", /*is_stream=*/false);
  if (!sample.has_value()) {
    ApiError error = std::move(sample).error();
    for (FieldError& field : error.fields) field.loc.insert(field.loc.begin() + 1, "content");
    return std::unexpected(std::move(error));
  }
  sample->body.erase("model");
  Counted rows(on_row);
  for (const json::Value& prompt : prompts->get_array()) {
    BatchRow row{.target = std::string(kCompletions), .body = sample->body};
    if (prompt.is_string())
      row.body["prompt"] = prompt;
    else
      row = Bad("a prompt must be a text");
    if (auto added = rows.Add(std::move(row)); !added.has_value())
      return std::unexpected(std::move(added).error());
  }
  if (auto any = rows.CheckAny(); !any.has_value()) return std::unexpected(any.error());
  return RowsFacts{BatchForm::kPrompts, sample->wants_tokens};
}

ApiResult<RowsFacts> ReadRequests(const json::Array& requests, std::string_view model,
                                  const OnRow& on_row) {
  Counted rows(on_row);
  for (const json::Value& request : requests)
    if (auto added = rows.Add(RowOfRequest(request, model)); !added.has_value())
      return std::unexpected(std::move(added).error());
  if (auto any = rows.CheckAny(); !any.has_value()) return std::unexpected(any.error());
  return RowsFacts{BatchForm::kRequests, false};
}

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

/// The next line of `text`, taken off it; without blank ones. Nothing at its end.
std::optional<std::string_view> TakeLine(std::string_view* text) {
  while (!text->empty()) {
    const size_t end = std::min(text->find('\n'), text->size());
    const std::string_view line = text->substr(0, end);
    text->remove_prefix(std::min(text->size(), end + 1));
    if (!IsBlank(line)) return line;
  }
  return std::nullopt;
}

ApiResult<RowsFacts> ReadRequestLines(std::string_view text, std::string_view model,
                                      const OnRow& on_row) {
  Counted rows(on_row);
  while (const auto line = TakeLine(&text)) {
    const auto request = json::Parse(*line, kRowLimits, "row");
    auto added = rows.Add(request.has_value() ? RowOfRequest(*request, model)
                                              : Bad(request.error().ToString()));
    if (!added.has_value()) return std::unexpected(std::move(added).error());
  }
  if (auto any = rows.CheckAny(); !any.has_value()) return std::unexpected(any.error());
  return RowsFacts{BatchForm::kRequests, false};
}

std::string_view TextOf(const json::Object& object, std::string_view key) {
  const json::Value* value = json::Find(object, key);
  const auto* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

/// One of OpenAI's lines. `model` as in ReadBatchLines.
BatchRow RowOfLine(std::string_view line, std::string_view target, std::string* model,
                   std::set<std::string>* ids) {
  const auto parsed = json::Parse(line, kRowLimits, "line");
  if (!parsed.has_value()) return Bad(parsed.error().ToString());
  if (!parsed->is_object()) return Bad("expected an object with custom_id, method, url and body");
  const json::Object& object = parsed->get_object();
  BatchRow row{.custom_id = std::string(TextOf(object, "custom_id"))};
  const auto bad = [&](std::string error) {
    row.error = std::move(error);
    row.body.clear();
    return row;
  };
  if (row.custom_id.empty() || row.custom_id.size() > kBatchCustomIdBytesMax) {
    row.custom_id.clear();
    return bad(fmt::format("custom_id: expected 1 to {} bytes", kBatchCustomIdBytesMax));
  }
  if (!ids->insert(row.custom_id).second) return bad("custom_id: used by a row before");
  if (TextOf(object, "method") != "POST") return bad("method: expected POST");
  if (TextOf(object, "url") != target) return bad(fmt::format("url: expected {}", target));
  const json::Value* body = json::Find(object, "body");
  if (body == nullptr || !body->is_object()) return bad("body: expected an object");
  row.body = body->get_object();
  if (std::string error = CleanBody(&row.body); !error.empty()) return bad(std::move(error));
  const std::string named(TextOf(row.body, "model"));
  if (named.empty()) return bad("model: expected the name of an endpoint");
  if (model->empty()) *model = named;
  if (named != *model) return bad("model: every row of a batch names the same");
  row.body.erase("model");
  row.target = target;
  return row;
}

}  // namespace

std::string WriteRow(const BatchRow& row) {
  json::Object object;
  if (row.error.empty()) {
    object["target"] = row.target;
    object["body"] = row.body;
  } else {
    object["error"] = row.error;
  }
  if (!row.custom_id.empty()) object["custom_id"] = row.custom_id;
  return json::Serialize(object);
}

Result<BatchRow> ReadRow(std::string_view line) {
  const auto parsed = json::Parse(line, {}, "stored row");
  if (!parsed.has_value() || !parsed->is_object()) return Fail(DataLoss("stored row: damaged"));
  const json::Object& object = parsed->get_object();
  BatchRow row{.target = std::string(TextOf(object, "target")),
               .error = std::string(TextOf(object, "error")),
               .custom_id = std::string(TextOf(object, "custom_id"))};
  if (const json::Value* body = json::Find(object, "body"); body != nullptr && body->is_object())
    row.body = body->get_object();
  if (row.target.empty() && row.error.empty()) return Fail(DataLoss("stored row: damaged"));
  return row;
}

ApiResult<RowsFacts> ReadContent(const json::Value& content, std::string_view model,
                                 const OnRow& on_row) {
  if (content.is_object()) return ReadPrompts(content.get_object(), on_row);
  if (content.is_array()) return ReadRequests(content.get_array(), model, on_row);
  return std::unexpected(
      ApiError{.status = 422,
               .fields = {{"union_type",
                           {"body", "content"},
                           "Input should be an object with prompts or a list of requests",
                           json::Value()}}});
}

ApiResult<RowsFacts> ReadContentText(std::string_view text, std::string_view model,
                                     const OnRow& on_row) {
  const auto content =
      json::Parse(text, {.max_bytes = kBatchInputBytesMax, .max_depth = kRowDepthMax}, "input");
  // One request in a file of its own is a line as well.
  const bool is_request =
      content.has_value() && content->is_object() && !content->get_object().contains("prompts") &&
      (content->get_object().contains("messages") || content->get_object().contains("prompt"));
  if (is_request) return ReadRequests({*content}, model, on_row);
  if (content.has_value()) return ReadContent(*content, model, on_row);
  const std::string_view first = text.substr(0, text.find('\n'));
  const bool is_lines =
      first.size() < text.size() && json::Parse(first, kRowLimits, "line").has_value();
  if (is_lines) return ReadRequestLines(text, model, on_row);
  return Refuse(content.error().ToString() +
                "; expected JSON of {prompts, ...}, of a list of requests, or a request a line");
}

ApiResult<void> ReadBatchLines(std::string_view text, std::string_view target, std::string* model,
                               const OnRow& on_row) {
  Counted rows(on_row);
  std::set<std::string> ids;
  while (const auto line = TakeLine(&text))
    if (auto added = rows.Add(RowOfLine(*line, target, model, &ids)); !added.has_value())
      return added;
  return rows.CheckAny();
}

}  // namespace tessera::gateway
