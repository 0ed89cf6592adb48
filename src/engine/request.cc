// SPDX-License-Identifier: Apache-2.0
#include "engine/request.h"

namespace tessera::engine {

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      return "error";
  }
  return "unknown";
}

std::string_view CacheMissName(CacheMiss::Reason reason) {
  switch (reason) {
    case CacheMiss::Reason::kNone:
      return "none";
    case CacheMiss::Reason::kOff:
      return "off";
    case CacheMiss::Reason::kNeverStored:
      return "never_stored";
    case CacheMiss::Reason::kDiffers:
      return "differs";
    case CacheMiss::Reason::kEvicted:
      return "evicted";
    case CacheMiss::Reason::kLogprobs:
      return "prompt_logprobs";
    case CacheMiss::Reason::kSlowStore:
      return "disk_slow";
    case CacheMiss::Reason::kLostInStore:
      return "disk_lost";
  }
  return "unknown";
}

}  // namespace tessera::engine
