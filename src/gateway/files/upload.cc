// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gateway/api/context.h"
#include "gateway/files/file_json.h"
#include "gateway/limits.h"
#include "gateway/spec/brief.h"

namespace tessera::gateway {
namespace {

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

ApiError ErrorOfForm(const Status& status) {
  return {.status = status.code() == Code::kResourceExhausted ? 413 : 400,
          .text = status.message()};
}

}  // namespace

ApiResult<std::string> BaseName(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (name.size() > kFileNameBytesMax)
    return std::unexpected(
        ApiError{.text = fmt::format("filename: longer than {} bytes", kFileNameBytesMax)});
  if (std::ranges::any_of(name, IsControl))
    return std::unexpected(ApiError{.text = "filename: holds a control character"});
  return std::string(name.empty() ? "file" : name);
}

Upload::Upload(FileStore* files, std::string owner, std::string_view boundary)
    : files_(*files), owner_(std::move(owner)), reader_(boundary, this) {}

Status Upload::Stop(ApiError error) {
  error_ = std::move(error);
  return Cancelled("the upload was refused");
}

Status Upload::OnPart(const PartHead& head) {
  is_in_file_ = head.name == "file";
  field_name_ = head.name;
  field_.clear();
  if (!is_in_file_) return {};
  if (file_ != nullptr)
    return Stop({.text = "file: given twice; upload one file with each request"});
  auto name = BaseName(head.filename);
  if (!name.has_value()) return Stop(std::move(name).error());
  auto incoming = files_.Begin(owner_);
  if (!incoming.has_value()) return Stop(std::move(incoming).error());
  filename_ = *std::move(name);
  file_ = *std::move(incoming);
  return {};
}

Status Upload::OnPartBytes(std::string_view bytes) {
  if (!is_in_file_) {
    if (field_.size() + bytes.size() > kFormFieldBytesMax)
      return Stop(
          {.status = 413,
           .text = fmt::format("form: the field {} has more than {} bytes",
                               Brief(field_name_, kFilePurposeBytesMax), kFormFieldBytesMax)});
    field_ += bytes;
    return {};
  }
  if (auto written = file_->Append(bytes); !written.has_value())
    return Stop(std::move(written).error());
  return {};
}

Status Upload::OnPartEnd() {
  if (is_in_file_) return {};
  if (field_name_ != "purpose") {
    warnings_.push_back(
        fmt::format("{}: no such field, ignored", Brief(field_name_, kFilePurposeBytesMax)));
    return {};
  }
  const bool is_word = field_.size() <= kFilePurposeBytesMax &&
                       std::ranges::all_of(field_, [](char c) { return c > 0x20 && c < 0x7f; });
  if (!is_word)
    return Stop({.text = fmt::format("purpose: expected one word of at most {} characters",
                                     kFilePurposeBytesMax)});
  purpose_ = std::exchange(field_, {});
  return {};
}

std::optional<net::HttpError> Upload::OnBytes(std::string_view bytes) {
  const Status read = reader_.Feed(bytes);
  if (read.ok()) return std::nullopt;
  const ApiError error = error_.has_value() ? *error_ : ErrorOfForm(read);
  return net::HttpError{.status = error.status, .code = "invalid_upload", .message = error.text};
}

ApiResult<json::Object> Upload::Finish() {
  if (const Status whole = reader_.Finish(); !whole.ok())
    return std::unexpected(ErrorOfForm(whole));
  if (file_ == nullptr)
    return std::unexpected(ApiError{
        .status = 422, .fields = {{"missing", {"body", "file"}, "Field required", json::Value()}}});
  auto record = file_->Publish(filename_, purpose_);
  if (!record.has_value()) return std::unexpected(std::move(record).error());
  json::Object answer = FileJson(*record);
  if (!warnings_.empty()) {
    json::Array warnings;
    for (const std::string& warning : warnings_) warnings.push_back(json::Value(warning));
    answer["warnings"] = std::move(warnings);
  }
  return answer;
}

void Upload::OnComplete(net::Request /*request*/, net::ResponseWriter writer) {
  const auto answer = Finish();
  answer.has_value() ? SendJson(writer, 200, *answer) : SendError(writer, answer.error());
}

}  // namespace tessera::gateway
