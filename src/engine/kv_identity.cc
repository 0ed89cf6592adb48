// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "engine/kv_pool.h"

namespace tessera::engine {
namespace {

/// More than the positions that attention takes at a time (kernels/attention.h).
constexpr int64_t kProbeTokens = 96;

/// Hash of the pages of a fixed prompt, as this session computes them.
Result<std::string> ProbePages(runtime::Session* session) {
  const runtime::ModelShape& shape = session->shape();
  const int64_t rows = std::min(
      {kProbeTokens, shape.max_rows, shape.max_seq_len, shape.page_count * shape.page_tokens});
  std::vector<TokenId> tokens(static_cast<size_t>(rows));
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<TokenId>((static_cast<int64_t>(i) * 7919 + 1) % shape.vocab_size);
  std::vector<PageId> pages(static_cast<size_t>(PagesFor(rows, shape.page_tokens)));
  std::iota(pages.begin(), pages.end(), 0);
  // What the end of the last page holds is not computed here.
  for (const PageId page : pages) std::ranges::fill(session->PageBytes(page), std::byte{0});
  const runtime::Chunk chunk{.tokens = tokens, .start = 0, .pages = pages};
  TESSERA_ASSIGN_OR_RETURN(const auto logits, session->Step({&chunk, 1}));
  Sha256 hash;
  for (const PageId page : pages) hash.Update(session->PageBytes(page));
  hash.Update(std::as_bytes(logits));
  return hash.FinishHex();
}

}  // namespace

Result<PageHash> KvIdentity(std::string_view model, runtime::Session* session) {
  const runtime::ModelShape& shape = session->shape();
  if (std::ssize(session->PageBytes(0)) != shape.page_tokens * shape.kv_bytes_per_token)
    return Fail(FailedPrecondition("the session does not give the bytes of its KV pages"));
  TESSERA_ASSIGN_OR_RETURN(const std::string probe, ProbePages(session));
  return RootHash(fmt::format("model {}\nkv {}\nprobe {}\n", model, session->kv_identity(), probe));
}

}  // namespace tessera::engine
