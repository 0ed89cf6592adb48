// SPDX-License-Identifier: Apache-2.0
//
// Any input of a batch is refused or gives rows, each of which either has an error or a target and
// a body without `model` and `stream`, and reads back from its line as the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "gateway/batch/batch_rows.h"
#include "gateway/limits.h"

namespace {

using tessera::gateway::ApiResult;
using tessera::gateway::BatchRow;

ApiResult<void> CheckRow(const BatchRow& row) {
  if (row.error.empty()) {
    TESSERA_CHECK(row.target == "/v1/completions" || row.target == "/v1/chat/completions");
    TESSERA_CHECK(!row.body.contains("model") && !row.body.contains("stream"));
  }
  const auto back = tessera::gateway::ReadRow(tessera::gateway::WriteRow(row));
  TESSERA_CHECK(back.has_value() && back->error == row.error && back->custom_id == row.custom_id);
  if (row.error.empty()) TESSERA_CHECK(back->body == row.body && back->target == row.target);
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  int64_t rows = 0;
  const tessera::gateway::OnRow on_row = [&](const BatchRow& row) {
    ++rows;
    return CheckRow(row);
  };
  if (tessera::gateway::ReadContentText(text, "m", on_row).has_value()) TESSERA_CHECK(rows > 0);
  rows = 0;
  std::string model;
  if (tessera::gateway::ReadBatchLines(text, "/v1/completions", &model, on_row).has_value())
    TESSERA_CHECK(rows > 0 && rows <= tessera::gateway::kBatchRowsMax);
  return 0;
}
