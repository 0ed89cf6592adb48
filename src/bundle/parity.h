// SPDX-License-Identifier: Apache-2.0
//
// Parity: the certificate in a manifest of how near a program is to the weights that it was made
// from. A plain value; compiler/certificate.h decides when one is made, certify/ measures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/status.h"

namespace tessera::bundle {

class Fields;

struct Parity {
  enum class Kind : uint8_t {
    kExact,     // Every weight has the value that the source gives it; nothing was to be measured.
    kMeasured,  // `program`, and `comparison` where the original could be run, too.
    kAbsent,    // Weights were rounded and nothing was measured; `reason` says why.
  };
  /// The float original against the program, over the same positions.
  struct Comparison {
    double original_nll = 0;       // Mean negative log-likelihood of a token, in nats.
    double mean_kl = 0;            // KL(original || program), mean over positions, in nats.
    double same_top1 = 0;          // Share of positions with the same most likely token.
    int64_t worst_layer = 0;       // Whose keys and values differ most,
    double worst_layer_error = 0;  // |difference| / |original| over all of them.
    bool operator==(const Comparison&) const = default;
  };

  Kind kind = Kind::kAbsent;
  std::string reason;                // Why there is no comparison; else empty.
  std::string tokenizer_sha256;      // Of tokenizer.json.
  std::string chat_template_sha256;  // Empty: the model has none.
  int64_t tokens = 0;                // Of the text that was scored; 0 unless kMeasured.
  double program_nll = 0;            // As Comparison::original_nll.
  std::optional<Comparison> comparison;

  bool operator==(const Parity&) const = default;
};

/// One line for people: "parity over 511 tokens: mean NLL 3.120 (original 3.100), ...".
std::string Summary(const Parity& parity);

json::Object ParityToJson(const Parity& parity);
/// kInvalidArgument naming the field.
Result<Parity> ReadParity(const Fields& fields);

}  // namespace tessera::bundle
