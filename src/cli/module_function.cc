// SPDX-License-Identifier: Apache-2.0
#include "cli/module_function.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/random.h"

namespace tessera::cli {
namespace {

using tensor::DType;
using tensor::Shape;

constexpr std::string_view kPrefill = "prefill_bs";
constexpr std::string_view kDecode = "decode_bs";
constexpr size_t kInputs = 5;
constexpr size_t kInputsWithoutStarts = 4;  // Of a prefill that begins all sequences.

/// By position, whatever order the function takes them in.
struct Inputs {
  const ModuleInput* tokens = nullptr;
  const ModuleInput* starts = nullptr;  // Null: all 0.
  const ModuleInput* lengths = nullptr;
  const ModuleInput* blocks = nullptr;
  const ModuleInput* cache = nullptr;
};

Inputs InOrder(const FunctionName& function, const std::vector<ModuleInput>& inputs) {
  if (inputs.size() == kInputsWithoutStarts)
    return {&inputs[0], nullptr, &inputs[1], &inputs[2], &inputs[3]};
  Inputs named{&inputs[0], &inputs[1], &inputs[2], &inputs[3], &inputs[4]};
  if (!function.is_prefill) std::swap(named.starts, named.lengths);
  return named;
}

Status Expect(bool holds, size_t number, std::string_view what, const ModuleInput& input,
              std::string_view expected) {
  if (holds) return {};
  return InvalidArgument(fmt::format("input {} ({}) is {}, expected {}", number, what,
                                     ModuleInputType(input.dtype, input.shape), expected));
}

bool IsI64(const ModuleInput& input, int rank, int64_t batch) {
  return input.dtype == DType::kI64 && input.shape.rank() == rank && input.shape[0] == batch;
}

int64_t PageElements(const bundle::Bundle& bundle) {
  const auto& kv = bundle.config.paged_kv_cache;
  if (!kv || kv->paged_kv_block_size_elements_per_device.empty()) return 0;
  int64_t elements = 0;
  for (const int64_t device : kv->paged_kv_block_size_elements_per_device) elements += device;
  return elements;
}

Status CheckTypes(const bundle::Bundle& bundle, const FunctionName& function,
                  const std::vector<ModuleInput>& all) {
  const std::string_view name = function.is_prefill ? kPrefill : kDecode;
  const bool is_short = function.is_prefill && all.size() == kInputsWithoutStarts;
  if (all.size() != kInputs && !is_short)
    return InvalidArgument(
        fmt::format("{}{} takes {} inputs (tokens, {}, seq_block_ids, cache){}, {} are given", name,
                    function.batch, kInputs,
                    function.is_prefill ? "start_positions, seq_lens" : "seq_lens, start_positions",
                    function.is_prefill ? ", or 4 without start_positions" : "", all.size()));
  const Inputs inputs = InOrder(function, all);
  const int64_t n = function.batch;
  const bool one = !function.is_prefill;
  const size_t starts = one ? 2 : 1;
  const size_t lengths = is_short || one ? 1 : 2;
  const bool tokens_fit = IsI64(*inputs.tokens, 2, n) && inputs.tokens->shape[1] >= 1 &&
                          (!one || inputs.tokens->shape[1] == 1);
  TESSERA_RETURN_IF_ERROR(Expect(tokens_fit, 0, "tokens", *inputs.tokens,
                                 fmt::format("{}x{}xi64", n, one ? "1" : "LENGTH")));
  if (inputs.starts != nullptr)
    TESSERA_RETURN_IF_ERROR(Expect(IsI64(*inputs.starts, 1, n), starts, "start_positions",
                                   *inputs.starts, fmt::format("{}xi64", n)));
  TESSERA_RETURN_IF_ERROR(Expect(IsI64(*inputs.lengths, 1, n), lengths, "seq_lens", *inputs.lengths,
                                 fmt::format("{}xi64", n)));
  TESSERA_RETURN_IF_ERROR(Expect(IsI64(*inputs.blocks, 2, n), all.size() - 2, "seq_block_ids",
                                 *inputs.blocks, fmt::format("{}xBLOCKSxi64", n)));
  const int64_t elements = PageElements(bundle);
  const ModuleInput& cache = *inputs.cache;
  const bool cache_fits = cache.dtype == DType::kF16 && cache.shape.rank() == 2 &&
                          cache.shape[0] >= 2 && cache.shape[1] == elements;
  return Expect(cache_fits, all.size() - 1, "cache", cache,
                fmt::format("PAGESx{}xf16 with at least 2 pages", elements));
}

/// What each input says of one row, checked against the others.
Status CheckRow(int64_t row, int64_t start, int64_t length, int64_t tokens, int64_t blocks,
                const bundle::Dims& dims) {
  if (start < 0 || length <= start || length - start > tokens || length > dims.max_seq_len)
    return InvalidArgument(fmt::format(
        "row {}: positions [{}, {}) of a sequence; expected 1 to {} of them within the context "
        "of {}",
        row, start, length, tokens, dims.max_seq_len));
  const int64_t needed = (length - 1) / dims.page_tokens + 1;
  if (needed > blocks)
    return InvalidArgument(
        fmt::format("row {}: {} positions need {} blocks of {}, seq_block_ids has {}", row, length,
                    needed, dims.page_tokens, blocks));
  return {};
}

Status FillCache(const ModuleInput& cache, runtime::Session* session) {
  if (cache.bytes.empty()) return {};
  const size_t page_bytes = static_cast<size_t>(cache.shape[1]) * 2;
  for (int64_t page = 0; page < cache.shape[0]; ++page) {
    const std::span<std::byte> to = session->PageBytes(static_cast<runtime::PageId>(page));
    if (to.size() != page_bytes)
      return Unimplemented("this session's pages cannot be filled; give the cache no value");
    std::memcpy(to.data(), cache.bytes.data() + static_cast<size_t>(page) * page_bytes, page_bytes);
  }
  return {};
}

}  // namespace

std::vector<std::string> FunctionNames(const bundle::ServingConfig& config) {
  std::vector<std::string> names;
  for (const int64_t n : config.prefill_batch_sizes)
    names.push_back(fmt::format("{}{}", kPrefill, n));
  for (const int64_t n : config.decode_batch_sizes)
    names.push_back(fmt::format("{}{}", kDecode, n));
  return names;
}

Result<FunctionName> FindFunction(const bundle::ServingConfig& config, std::string_view name) {
  const std::vector<std::string> names = FunctionNames(config);
  if (std::ranges::find(names, name) == names.end())
    return Fail(NotFound(fmt::format("the module has no function \"{:.60}\"; it has {}", name,
                                     fmt::join(names, ", "))));
  FunctionName function;
  function.is_prefill = name.starts_with(kPrefill);
  name.remove_prefix(function.is_prefill ? kPrefill.size() : kDecode.size());
  std::from_chars(name.data(), name.data() + name.size(), function.batch);
  return function;
}

Result<std::vector<ModuleInput>> SampleInputs(const bundle::Bundle& bundle,
                                              const FunctionName& function, int64_t context) {
  const bundle::Dims& dims = bundle.program.dims;
  const int64_t n = function.batch;
  const int64_t length = function.is_prefill ? context : context + 1;
  if (context < 1 || length > dims.max_seq_len)
    return Fail(InvalidArgument(fmt::format("a context of {} tokens, expected 1 to {}", context,
                                            dims.max_seq_len - (function.is_prefill ? 0 : 1))));
  const int64_t blocks = (length - 1) / dims.page_tokens + 1;
  const auto integers = [](Shape shape, const auto& value_of) {
    ModuleInput input{DType::kI64, std::move(shape), {}};
    std::vector<int64_t> values(static_cast<size_t>(input.shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = value_of(static_cast<int64_t>(i));
    const ByteSpan raw = std::as_bytes(std::span(values));
    input.bytes.assign(raw.begin(), raw.end());
    return input;
  };
  Random random(/*seed=*/1);
  const int64_t columns = function.is_prefill ? context : 1;
  ModuleInput tokens = integers({n, columns}, [&](int64_t) {
    return static_cast<int64_t>(random.Below(static_cast<uint64_t>(dims.vocab_size)));
  });
  ModuleInput starts =
      integers({n}, [&](int64_t) { return function.is_prefill ? int64_t{0} : context; });
  ModuleInput lengths = integers({n}, [&](int64_t) { return length; });
  if (!function.is_prefill) std::swap(starts, lengths);
  return std::vector<ModuleInput>{
      std::move(tokens), std::move(starts), std::move(lengths),
      integers({n, blocks}, [](int64_t i) { return i + 1; }),  // Page 0 is for padding.
      ModuleInput{DType::kF16, {n * blocks + 1, PageElements(bundle)}, {}}};
}

Result<std::unique_ptr<ModuleFunction>> ModuleFunction::Make(const bundle::Bundle& bundle,
                                                             const FunctionName& function,
                                                             const std::vector<ModuleInput>& all,
                                                             const runtime::LoadOptions& options) {
  TESSERA_RETURN_IF_ERROR(CheckTypes(bundle, function, all));
  const Inputs inputs = InOrder(function, all);
  const bundle::Dims& dims = bundle.program.dims;
  const std::vector<int64_t> tokens = inputs.tokens->Integers();
  const std::vector<int64_t> starts =
      inputs.starts == nullptr ? std::vector<int64_t>(static_cast<size_t>(function.batch), 0)
                               : inputs.starts->Integers();
  const std::vector<int64_t> lengths = inputs.lengths->Integers();
  const std::vector<int64_t> blocks = inputs.blocks->Integers();
  const int64_t columns = inputs.tokens->shape[1];
  const int64_t width = inputs.blocks->shape[1];
  const int64_t pages = inputs.cache->shape[0];

  std::unique_ptr<ModuleFunction> made(new ModuleFunction());
  for (int64_t i = 0; i < function.batch; ++i) {
    const auto at = static_cast<size_t>(i);
    TESSERA_RETURN_IF_ERROR(CheckRow(i, starts[at], lengths[at], columns, width, dims));
    Row row{{}, starts[at], {}};
    for (int64_t j = 0; j < lengths[at] - starts[at]; ++j) {
      const int64_t token = tokens[static_cast<size_t>(i * columns + j)];
      if (token < 0 || token >= dims.vocab_size)
        return Fail(InvalidArgument(
            fmt::format("row {}: token {} of a vocabulary of {}", i, token, dims.vocab_size)));
      row.tokens.push_back(static_cast<int32_t>(token));
    }
    for (int64_t j = 0; j < (lengths[at] - 1) / dims.page_tokens + 1; ++j) {
      const int64_t page = blocks[static_cast<size_t>(i * width + j)];
      if (page < 0 || page >= pages)
        return Fail(InvalidArgument(
            fmt::format("row {}: block {} of a cache of {} pages", i, page, pages)));
      row.pages.push_back(static_cast<runtime::PageId>(page));
    }
    made->tokens_ += std::ssize(row.tokens);
    made->rows_.push_back(std::move(row));
  }
  runtime::LoadOptions load = options;
  load.kv = {};
  load.kv.tokens = pages * dims.page_tokens;
  TESSERA_ASSIGN_OR_RETURN(made->session_, runtime::LoadSession(bundle, load));
  TESSERA_RETURN_IF_ERROR(FillCache(*inputs.cache, made->session_.get()));

  // As the engine does: a step takes max_rows tokens, and prompts are cut to fit.
  int64_t room = 0;
  for (const Row& row : made->rows_) {
    for (int64_t done = 0; done < std::ssize(row.tokens);) {
      if (room == 0) {
        made->steps_.emplace_back();
        room = load.max_rows;
      }
      const int64_t count = std::min(room, std::ssize(row.tokens) - done);
      const bool last = done + count == std::ssize(row.tokens);
      made->steps_.back().push_back(
          {.tokens =
               std::span(row.tokens).subspan(static_cast<size_t>(done), static_cast<size_t>(count)),
           .start = row.start + done,
           .pages = row.pages,
           .logits = last ? runtime::Chunk::Logits::kLast : runtime::Chunk::Logits::kNone});
      done += count;
      room -= count;
    }
  }
  return made;
}

Status ModuleFunction::Run() {
  for (const auto& chunks : steps_) TESSERA_RETURN_IF_ERROR(StatusOf(session_->Step(chunks)));
  return {};
}

}  // namespace tessera::cli
