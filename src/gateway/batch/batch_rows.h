// SPDX-License-Identifier: Apache-2.0
//
// The rows of a batch: what callers give as content, in a request or a file, -> what workers are
// asked, one call for each row. A bad row becomes a row with an error, which fails alone; an input
// that is no list of rows is refused whole. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "gateway/batch/batch_record.h"
#include "gateway/spec/read_spec.h"

namespace tessera::gateway {

struct BatchRow {
  std::string target{};     // "/v1/completions" or "/v1/chat/completions" of a worker.
  json::Object body{};      // Without `model`.
  std::string error{};      // Not empty: the row fails with it and nobody is asked.
  std::string custom_id{};  // Of OpenAI's lines.

  bool operator==(const BatchRow&) const = default;
};

/// One line of JSON, and back. kDataLoss for what is none.
std::string WriteRow(const BatchRow& row);
Result<BatchRow> ReadRow(std::string_view line);

/// Takes rows in order; an error ends the reading and is returned.
using OnRow = std::function<ApiResult<void>(BatchRow row)>;

struct RowsFacts {
  BatchForm form = BatchForm::kPrompts;
  bool wants_tokens = false;
};

/// llm-engine's content: {prompts, max_new_tokens, temperature, ...}, or a list of requests with
/// `messages` or `prompt`. `model` is the batch's: a row may repeat it. 422 names what is wrong
/// with the whole; 400 also for none or more than kBatchRowsMax rows.
ApiResult<RowsFacts> ReadContent(const json::Value& content, std::string_view model,
                                 const OnRow& on_row);
/// The same of a file: JSON of a content, or a request a line.
ApiResult<RowsFacts> ReadContentText(std::string_view text, std::string_view model,
                                     const OnRow& on_row);

/// OpenAI's input: a line is {custom_id, method: POST, url: `target`, body: {model, ...}}. Lines of
/// white space are left out. `model` is that of the first row that names one; the others must name
/// the same.
ApiResult<void> ReadBatchLines(std::string_view text, std::string_view target, std::string* model,
                               const OnRow& on_row);

}  // namespace tessera::gateway
