// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/row_call.h"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"
#include "gateway/api/completion_v1.h"
#include "gateway/limits.h"
#include "gateway/spec/brief.h"

namespace tessera::gateway {
namespace {

class RowSink final : public ForwardSink {
 public:
  RowSink(RowOutcome outcome, std::shared_ptr<RowInbox> inbox)
      : outcome_(std::move(outcome)), inbox_(std::move(inbox)) {}

  void OnHead(net::Response head) override { outcome_.http_status = head.status; }
  void OnBody(std::string_view bytes) override {
    if (outcome_.body.size() + bytes.size() > kBatchAnswerBytesMax)
      outcome_.is_too_large = true;
    else
      outcome_.body += bytes;
  }
  void OnEnd(const Status& status) override {
    outcome_.status = status;
    inbox_->Put(std::move(outcome_));
  }

 private:
  RowOutcome outcome_;
  const std::shared_ptr<RowInbox> inbox_;
};

/// The text of a worker's error, in OpenAI's form.
std::string ErrorText(const std::string& body) {
  const auto parsed = json::Parse(body, {}, "answer");
  if (parsed.has_value() && parsed->is_object())
    if (const json::Value* error = json::Find(parsed->get_object(), "error"))
      if (const auto* object = error->if_object())
        if (const auto text = json::GetString(*object, "message", ""); text && !text->empty())
          return *text;
  return EscapeNonUtf8(Brief(body, kTextBytesMax));
}

/// A worker's answer as the batch shows it.
Result<json::Value> ResultBody(const std::string& body, const BatchRecord& batch) {
  if (batch.form == BatchForm::kPrompts) {
    AskedCompletion asked;
    asked.wants_tokens = batch.wants_tokens;
    TESSERA_ASSIGN_OR_RETURN(json::Object answer, CompletionAnswer(asked, body, ""));
    return std::move(answer["output"]);
  }
  TESSERA_ASSIGN_OR_RETURN(json::Value answer,
                           json::Parse(body, {.max_bytes = kBatchAnswerBytesMax}, "answer"));
  if (!answer.is_object()) return Fail(DataLoss("a worker's answer is no object"));
  // Not the name of a temporary endpoint.
  answer.get_object()["model"] = batch.model;
  return answer;
}

bool IsPassing(int http_status) {
  return http_status >= 500 || http_status == 429 || http_status == 408;
}

}  // namespace

void RowInbox::Put(RowOutcome outcome) {
  const std::lock_guard lock(mutex_);
  outcomes_.push_back(std::move(outcome));
  changed_.notify_one();
}

void RowInbox::Wake() {
  const std::lock_guard lock(mutex_);
  is_woken_ = true;
  changed_.notify_one();
}

std::vector<RowOutcome> RowInbox::Take(Duration patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return is_woken_ || !outcomes_.empty(); });
  is_woken_ = false;
  return std::exchange(outcomes_, {});
}

CancelForward StartRow(const Context& context, const std::shared_ptr<Route>& route,
                       const BatchRow& row, const BatchRecord& batch, RowOutcome outcome,
                       std::shared_ptr<RowInbox> inbox) {
  net::ClientRequest request{.method = "POST", .target = row.target};
  request.headers = {{"Content-Type", "application/json"},
                     {"X-Request-Id", fmt::format("{}-{}", batch.id, outcome.row)}};
  json::Object body = row.body;
  body["model"] = batch.endpoint_name();
  request.body = json::Serialize(body);
  return StartForward(
      context.upstream, route,
      {.request = std::move(request), .deadline = context.clock->Now() + context.hold},
      std::make_shared<RowSink>(std::move(outcome), std::move(inbox)));
}

RowVerdict JudgeRow(const RowOutcome& outcome, const BatchRecord& batch) {
  using Kind = RowVerdict::Kind;
  const bool is_answered = outcome.http_status != 0;
  if (!is_answered && (outcome.status.code() == Code::kDeadlineExceeded ||
                       outcome.status.code() == Code::kResourceExhausted))
    return {.kind = Kind::kWait, .why = outcome.status.message()};
  if (!is_answered || !outcome.status.ok())
    return {.kind = Kind::kTryAgain, .why = "the worker broke off: " + outcome.status.message()};
  RowVerdict verdict{.result = {.row = outcome.row, .status = outcome.http_status}};
  if (outcome.is_too_large) {
    verdict.result.error = fmt::format("the answer has more than {} bytes", kBatchAnswerBytesMax);
    return verdict;
  }
  if (IsPassing(outcome.http_status))
    return {.kind = Kind::kTryAgain,
            .why = fmt::format("status {}: {}", outcome.http_status, ErrorText(outcome.body))};
  if (outcome.http_status != 200) {
    verdict.result.error = ErrorText(outcome.body);
    if (verdict.result.error.empty())
      verdict.result.error = fmt::format("the worker refused it with {}", outcome.http_status);
    return verdict;
  }
  auto body = ResultBody(outcome.body, batch);
  if (!body.has_value()) return {.kind = Kind::kTryAgain, .why = body.error().ToString()};
  verdict.result.body = *std::move(body);
  return verdict;
}

}  // namespace tessera::gateway
