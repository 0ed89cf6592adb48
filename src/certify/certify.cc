// SPDX-License-Identifier: Apache-2.0
#include "certify/certify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/topology.h"
#include "bundle/bundle.h"
#include "bundle/limits.h"
#include "certify/comparison.h"
#include "certify/text.h"
#include "runtime/load.h"
#include "text/tokenizer.h"
#include "text/tokenizer_table.h"

namespace tessera::certify {
namespace {

namespace fs = std::filesystem;
using bundle::Parity;
using runtime::Session;

constexpr std::string_view kStage = "measuring parity";

Result<std::vector<int32_t>> Tokens(const fs::path& folder) {
  constexpr text::EncodeOptions kOptions{.add_special = true, .parse_special = false};
  if (IsPresent(folder / bundle::kTokenizerTableFile)) {
    TESSERA_ASSIGN_OR_RETURN(const auto tokenizer,
                             text::OpenTokenizerTable(folder / bundle::kTokenizerTableFile));
    return tokenizer->Encode(kText, kOptions);
  }
  TESSERA_ASSIGN_OR_RETURN(const std::string json,
                           ReadFile(folder / bundle::kTokenizerFile, bundle::kMaxDocumentBytes));
  TESSERA_ASSIGN_OR_RETURN(const auto tokenizer, text::Tokenizer::FromJson(json));
  return tokenizer->Encode(kText, kOptions);
}

/// The bundle to be, which has no manifest yet.
Result<std::unique_ptr<Session>> Load(const fs::path& folder, int64_t tokens) {
  bundle::Parts parts{folder / bundle::kProgramFile, folder / bundle::kConfigFile, {}};
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".irpa") parts.parameters.push_back(it->path());
  if (error) return Fail(ErrnoStatus(error.value(), "listing", folder));
  std::ranges::sort(parts.parameters);
  TESSERA_ASSIGN_OR_RETURN(bundle::Bundle opened, bundle::OpenParts(parts));
  const int64_t vocabulary = opened.program.dims.vocab_size;
  const int64_t row_bytes = vocabulary * static_cast<int64_t>(sizeof(float));
  runtime::LoadOptions options;
  options.kv.tokens = tokens;
  options.release_weights = true;
  options.max_rows = std::clamp<int64_t>(kMaxLogitBytes / row_bytes, 1, tokens);
  return runtime::LoadSession(std::move(opened), options);
}

/// Feeds a text to sessions in step with each other.
class Walk {
 public:
  Walk(std::span<const int32_t> tokens, const Session& session)
      : tokens_(tokens), rows_(session.shape().max_rows) {
    const int64_t page = session.shape().page_tokens;
    pages_.resize(static_cast<size_t>((std::ssize(tokens) + page - 1) / page));
    std::iota(pages_.begin(), pages_.end(), 0);
  }
  const std::vector<runtime::PageId>& pages() const { return pages_; }
  int64_t rows() const { return rows_; }

  /// Logits of the positions [at, at + count).
  Result<std::span<const float>> Step(Session* session, int64_t at, int64_t count) const {
    const runtime::Chunk chunk{tokens_.subspan(static_cast<size_t>(at), static_cast<size_t>(count)),
                               at, pages_, runtime::Chunk::Logits::kAll};
    return session->Step({&chunk, 1});
  }

 private:
  std::span<const int32_t> tokens_;
  int64_t rows_;
  std::vector<runtime::PageId> pages_;
};

std::span<const float> Row(std::span<const float> logits, int64_t row, int64_t vocabulary) {
  return logits.subspan(static_cast<size_t>(row * vocabulary), static_cast<size_t>(vocabulary));
}

/// `original` may be null.
Status Run(std::span<const int32_t> tokens, Session* program, Session* original,
           const compiler::ProgressFn& progress, Parity* parity) {
  const Walk walk(tokens, *program);
  const int64_t vocabulary = program->shape().vocab_size;
  const int64_t last = std::ssize(tokens) - 1;  // Nothing follows it.
  Comparison comparison;
  double nll = 0;
  for (int64_t at = 0; at < last; at += walk.rows()) {
    const int64_t count = std::min(walk.rows(), last - at);
    TESSERA_ASSIGN_OR_RETURN(const auto logits, walk.Step(program, at, count));
    std::span<const float> expected;
    if (original != nullptr) {
      TESSERA_ASSIGN_OR_RETURN(expected, walk.Step(original, at, count));
    }
    for (int64_t row = 0; row < count; ++row) {
      const int32_t next = tokens[static_cast<size_t>(at + row + 1)];
      const auto values = Row(logits, row, vocabulary);
      nll += NegativeLogLikelihood(values, next);
      if (original != nullptr) comparison.AddPosition(Row(expected, row, vocabulary), values, next);
    }
    if (progress) progress({kStage, 0, 0});  // Not counted in bytes.
  }
  parity->kind = Parity::Kind::kMeasured;
  parity->tokens = last;
  parity->program_nll = nll / static_cast<double>(last);
  if (original == nullptr) return {};
  for (const runtime::PageId page : walk.pages())
    comparison.AddPage(original->PageBytes(page), program->PageBytes(page),
                       program->shape().layers);
  parity->comparison = comparison.Finish();
  return {};
}

bool IsFinite(const Parity& parity) {
  if (!std::isfinite(parity.program_nll)) return false;
  if (!parity.comparison) return true;
  const Parity::Comparison& c = *parity.comparison;
  return std::isfinite(c.original_nll) && std::isfinite(c.mean_kl) &&
         std::isfinite(c.worst_layer_error);
}

}  // namespace

int64_t TokensToScore(int64_t text_tokens, int64_t parameters, int64_t max_seq_len) {
  const int64_t affordable =
      std::max(kMinTokens, kMaxMultiplyAdds / std::max<int64_t>(parameters, 1));
  return std::min({text_tokens, kMaxTokens, affordable, max_seq_len});
}

std::string WhyNotOriginal(uint64_t original_bytes, uint64_t memory_available,
                           uint64_t disk_available) {
  constexpr uint64_t kDiskMargin = uint64_t{1} << 30;
  const uint64_t memory = memory_available / 2;
  if (original_bytes > memory)
    return fmt::format(
        "the original weights take {} bytes, more than the {} of memory that comparing may use",
        original_bytes, memory);
  const uint64_t disk = disk_available > kDiskMargin ? disk_available - kDiskMargin : 0;
  if (original_bytes > disk)
    return fmt::format(
        "the original weights take {} bytes, more than the {} of disk that comparing may use",
        original_bytes, disk);
  return {};
}

Result<Parity> Certify(const compiler::CertifyRequest& request) {
  Parity parity;
  std::error_code error;
  const fs::space_info disk = fs::space(request.folder, error);
  parity.reason = WhyNotOriginal(request.original_bytes, ReadTopology().memory_available,
                                 error ? 0 : disk.available);
  const bool compares = parity.reason.empty();
  if (compares) TESSERA_RETURN_IF_ERROR(request.write_original());
  if (request.progress) request.progress({kStage, 0, 0});
  TESSERA_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, Tokens(request.folder));
  TESSERA_ASSIGN_OR_RETURN(auto program, Load(request.folder, kMaxTokens));
  tokens.resize(static_cast<size_t>(
      TokensToScore(std::ssize(tokens), request.parameters, program->shape().max_seq_len)));
  if (tokens.size() < 2) {
    parity.reason = fmt::format("the context has no room for a text: {} tokens", tokens.size());
    return parity;
  }
  std::unique_ptr<Session> original;
  if (compares) {
    TESSERA_ASSIGN_OR_RETURN(original, Load(request.original_folder, kMaxTokens));
  }
  TESSERA_RETURN_IF_ERROR(Run(tokens, program.get(), original.get(), request.progress, &parity));
  if (IsFinite(parity)) return parity;
  return Parity{.kind = Parity::Kind::kAbsent,
                .reason = "the model's logits for the text are not finite numbers",
                .tokenizer_sha256 = {},
                .chat_template_sha256 = {},
                .tokens = 0,
                .program_nll = 0,
                .comparison = std::nullopt};
}

}  // namespace tessera::certify
