// SPDX-License-Identifier: Apache-2.0
#include "gateway/launch/launcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace tessera::gateway {
namespace {

bool IsIdCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

bool IsWorkerId(std::string_view id) {
  return !id.empty() && id.size() <= kWorkerIdBytesMax && std::ranges::all_of(id, IsIdCharacter);
}

Status CheckOrder(const WorkerOrder& order) {
  if (!IsWorkerId(order.worker_id))
    return InvalidArgument(fmt::format("\"{}\" is no worker id: expected 1 to {} of A-Z a-z 0-9 _",
                                       EscapeNonUtf8(order.worker_id.substr(0, kWorkerIdBytesMax)),
                                       kWorkerIdBytesMax));
  const auto is_none = [](std::string_view text) {
    return text.find('\0') != std::string_view::npos || !IsUtf8(text);
  };
  if (is_none(order.key) || std::ranges::any_of(order.arguments, is_none))
    return InvalidArgument("an argument of a worker is no UTF-8 text without zero bytes");
  return {};
}

}  // namespace tessera::gateway
