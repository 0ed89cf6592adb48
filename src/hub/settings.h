// SPDX-License-Identifier: Apache-2.0
//
// Settings: everything that the hub layer may be told. The environment is read in cli/ only, so a
// value of this type is all that decides. Secrets never enter messages or logs.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace tessera::hub {

/// For s3://; all empty: requests are not signed (public buckets).
struct AwsSettings {
  std::string access_key;
  std::string secret_key;
  std::string session_token;
  std::string region = "us-east-1";
  /// "http://127.0.0.1:9000"; empty: https://BUCKET.s3.REGION.amazonaws.com.
  std::string endpoint;
};

struct Settings {
  std::string endpoint = "https://huggingface.co";  // Without a slash at the end.
  std::string token;                                // Empty: anonymous.
  /// The folder that huggingface_hub calls HF_HUB_CACHE.
  std::filesystem::path cache;
  /// Files from plain addresses and buckets, in the same layout (plain_source.h).
  std::filesystem::path downloads;
  bool offline = false;
  std::string ca_file;  // PEM; empty: the system's.
  AwsSettings aws;
  int connections = 8;
  std::chrono::milliseconds connect_timeout{10'000};
  /// A transfer that brings no byte for this long is ended and taken up again.
  std::chrono::milliseconds stall_timeout{20'000};
  /// A question to the API must be answered whole within this many times that: an answer that
  /// comes byte by byte never stalls.
  static constexpr int kAnswerStalls = 6;
  std::chrono::milliseconds answer_timeout() const { return kAnswerStalls * stall_timeout; }
  /// First wait after a failure; doubles up to `retry_wait_max` as long as nothing arrives.
  std::chrono::milliseconds retry_wait{500};
  std::chrono::milliseconds retry_wait_max{30'000};
  /// Retries have no number, but they end when not one byte arrived for this long.
  std::chrono::milliseconds patience{600'000};
  /// The same for questions to the API, where a cached answer may serve instead.
  std::chrono::milliseconds api_patience{20'000};
};

}  // namespace tessera::hub
