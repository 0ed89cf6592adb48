// SPDX-License-Identifier: Apache-2.0
#include "server/operate/fields.h"

namespace tessera::server::operate {
namespace {

using openai::Kind;
using openai::Use;

// clang-format off
constexpr openai::Field kFields[] = {
    // name, where, kind, low, high, use, meaning
    {"confirm", kDrain, Kind::kString, 0, 0, Use::kUsed, "The model's name: there is no way back but a restart."},
    {"timeout", kDrain, Kind::kNumber, 0, 86400, Use::kUsed, "Seconds that running requests have to finish (default: --drain-seconds)."},
};
// clang-format on

}  // namespace

std::span<const openai::Field> AdminFields() {
  return kFields;
}

}  // namespace tessera::server::operate
