// SPDX-License-Identifier: Apache-2.0
//
// SigV4: signatures of requests to S3 and what speaks like it ("AWS Signature Version 4", in the
// documentation of Amazon's IAM). Requests of ours have no body. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hub/settings.h"

namespace tessera::hub {

struct SigV4Request {
  std::string_view url;  // Escaped, as it is sent; the path is signed as it stands (as S3 does).
  std::string_view service = "s3";
  int64_t unix_seconds = 0;
  /// Beside Host, X-Amz-Date and X-Amz-Security-Token, which are always signed.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// The headers that the request needs: Host, X-Amz-Date, X-Amz-Security-Token where there is one,
/// those of `request`, and Authorization. Requires keys in `aws`.
std::vector<std::pair<std::string, std::string>> SignGet(const AwsSettings& aws,
                                                         SigV4Request request);

/// What S3 wants to be told and signed of a request without body, as a header.
std::pair<std::string, std::string> EmptyPayloadHeader();

}  // namespace tessera::hub
