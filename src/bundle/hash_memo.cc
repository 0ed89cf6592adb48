// SPDX-License-Identifier: Apache-2.0
#include "bundle/hash_memo.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/log.h"

namespace tessera::bundle {
namespace {

constexpr int64_t kSettledSeconds = 2;  // Coarsest clock of common file systems.
constexpr uint64_t kMaxMemoBytes = 4096;

std::filesystem::path MemoFile(const std::filesystem::path& folder,
                               const std::filesystem::path& path) {
  std::error_code ignored;
  const std::string absolute = std::filesystem::absolute(path, ignored).string();
  return folder / Sha256Hex(AsBytes(absolute)).substr(0, 32);
}

std::string IdentityText(const FileIdentity& identity) {
  return fmt::format("{} {} {} {} {} ", identity.device, identity.inode, identity.bytes,
                     identity.modified_ns, identity.changed_ns);
}

bool IsSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> HashMemo::Find(const std::filesystem::path& path,
                                          const FileIdentity& identity) const {
  const auto text = ReadFile(MemoFile(folder_, path), kMaxMemoBytes);
  const std::string expected = IdentityText(identity);
  if (!text.has_value() || !text->starts_with(expected)) return std::nullopt;
  std::string sha256 = text->substr(expected.size());
  if (!IsSha256(sha256)) return std::nullopt;
  return sha256;
}

void HashMemo::Remember(const std::filesystem::path& path, const FileIdentity& identity,
                        const std::string& sha256) const {
  if (clock_.UnixSeconds() - identity.changed_ns / 1'000'000'000 <= kSettledSeconds) return;
  RememberFinal(path, identity, sha256);
}

void HashMemo::RememberFinal(const std::filesystem::path& path, const FileIdentity& identity,
                             const std::string& sha256) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return;
  const Status status = WriteFileAtomic(MemoFile(folder_, path), IdentityText(identity) + sha256);
  if (!status.ok()) log::debug("hash not remembered: {}", status.ToString());
}

}  // namespace tessera::bundle
