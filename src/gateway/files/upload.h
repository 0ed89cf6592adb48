// SPDX-License-Identifier: Apache-2.0
//
// Upload: POST /v1/files as its body arrives: form -> FileStore, with nothing held in memory but
// the small fields.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/files/file_store.h"
#include "gateway/files/multipart.h"
#include "net/body_receiver.h"

namespace tessera::gateway {

/// On one thread at a time. What was stored is gone when it dies before its answer.
class Upload final : public net::BodyReceiver, private MultipartSink {
 public:
  /// `files` must outlive it.
  Upload(FileStore* files, std::string owner, std::string_view boundary);

  std::optional<net::HttpError> OnBytes(std::string_view bytes) override;
  void OnComplete(net::Request request, net::ResponseWriter writer) override;

  /// The end of the form: publishes the file. 422 without one, 400 for a form that is cut off.
  ApiResult<json::Object> Finish();

 private:
  Status OnPart(const PartHead& head) override;
  Status OnPartBytes(std::string_view bytes) override;
  Status OnPartEnd() override;
  /// Keeps the error for OnBytes, and ends the reading.
  Status Stop(ApiError error);

  FileStore& files_;
  const std::string owner_;
  MultipartReader reader_;
  std::optional<ApiError> error_;
  std::unique_ptr<FileStore::Incoming> file_;
  std::string filename_, purpose_, field_name_, field_;
  std::vector<std::string> warnings_;
  bool is_in_file_ = false;
};

/// The last part of a path as any system writes it, "file" if there is none. 400 for a name that
/// could not be shown: control characters, more than kFileNameBytesMax.
ApiResult<std::string> BaseName(std::string_view path);

}  // namespace tessera::gateway
