// SPDX-License-Identifier: Apache-2.0
#include "text/textkit_abi.h"

namespace tessera::text {
namespace {

Code ToCode(tk_code code) {
  switch (code) {
    case TK_OK:
      return Code::kOk;
    case TK_INVALID_ARGUMENT:
      return Code::kInvalidArgument;
    case TK_RESOURCE_EXHAUSTED:
      return Code::kResourceExhausted;
    case TK_UNIMPLEMENTED:
      return Code::kUnimplemented;
    default:
      return Code::kInternal;
  }
}

}  // namespace

Status FromTextkit(tk_code code, const TextkitBuffer& error, std::source_location where) {
  if (code == TK_OK) return Status();
  return Status(ToCode(code), error.str(), where);
}

}  // namespace tessera::text
