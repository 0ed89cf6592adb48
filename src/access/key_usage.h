// SPDX-License-Identifier: Apache-2.0
//
// KeyUsage: what one key has used of its limits, and counts of it. It outlives reloads of the key
// file, so that a reload gives nobody a fresh allowance. Thread-safe.
//
//   request comes      CountRequest()                          429 beyond rpm
//   it generates       Begin(prompt tokens)                    429 beyond tpm or concurrency
//   tokens are made    ChargeOutput(n), may leave tpm below 0
//   it is over         End()
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "access/api_key.h"
#include "access/token_bucket.h"
#include "base/clock.h"
#include "net/http.h"

namespace tessera::access {

/// Whom an engine takes a caller for; 0 is nobody's.
using ClientId = uint64_t;

/// What a caller gets who has to wait, or asks too much (then `retry_after` is 0).
struct Refusal {
  int http_status = 429;
  std::string message;
  std::string type;     // Kind of error, in the words of OpenAI's API.
  std::string code;     // Stable word for programs.
  std::string param{};  // Field at fault; empty: none.
  std::chrono::seconds retry_after{0};
};

class KeyUsage {
 public:
  struct Counters {
    int64_t requests = 0;  // Counted ones, those refused included.
    int64_t refused = 0;   // By one of its limits.
    int64_t prompt_tokens = 0;
    int64_t completion_tokens = 0;
    int64_t open = 0;  // Now, of those that generate.
  };

  /// `client`: whom the engine takes it for. `clock` must outlive it.
  KeyUsage(ClientId client, const Clock& clock) : client_(client), clock_(clock) {}
  KeyUsage(const KeyUsage&) = delete;
  KeyUsage& operator=(const KeyUsage&) = delete;

  ClientId client() const { return client_; }
  /// Of the key as it is from now on. What was used stays used.
  void SetKey(const ApiKey& key);

  std::optional<Refusal> CountRequest();
  /// One call, whatever number of prompts and choices it has.
  std::optional<Refusal> Begin(int64_t prompt_tokens);
  void ChargeOutput(int64_t tokens);
  /// After a Begin that was not refused. `refunded`: prompt tokens that were never computed.
  void End(int64_t refunded = 0);

  /// x-ratelimit-{limit,remaining,reset}-{requests,tokens}, of the limits that there are. `reset`
  /// is the time until all of it is there again: "20ms", "8.64s", "6m0s".
  void AddHeaders(net::Headers* headers) const;
  Counters counters() const;

 private:
  Refusal Refuse(std::string message, std::string type, Duration wait);

  const ClientId client_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::string name_;
  int64_t concurrency_ = 0;
  std::optional<TokenBucket> requests_;
  std::optional<TokenBucket> tokens_;
  Counters counters_;
};

/// As the x-ratelimit-reset headers write it: rounded up to milliseconds, from a minute on to
/// seconds.
std::string FormatReset(Duration duration);

}  // namespace tessera::access
