// SPDX-License-Identifier: Apache-2.0
#include "runtime/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/check.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "bundle/bundle.h"
#include "kernels/contract.h"
#include "runtime/caller_pin.h"
#include "runtime/limits.h"
#include "runtime/lookup_tables.h"
#include "runtime/rank_group.h"
#include "runtime/step_message.h"
#include "runtime/worker_plan.h"

namespace tessera::runtime {
namespace {

class CpuSession final : public Session {
 public:
  ~CpuSession() override {
    if (group_ != nullptr) TellCommand(StepCommand::kEnd, 0, 0);
  }

  static Result<std::unique_ptr<Session>> Make(bundle::Bundle bundle, const LoadOptions& options);

  const ModelShape& shape() const override { return shape_; }

  Result<std::span<const float>> Step(std::span<const Chunk> chunks) override {
    TESSERA_RETURN_IF_ERROR(group_->Fill(chunks));
    if (transport_ != nullptr) {
      WriteStep(chunks, &message_);
      if (std::ssize(message_) > kMaxStepBytes)
        return Fail(ResourceExhausted(fmt::format(
            "a step of {} bytes for the other ranks, at most {}", message_.size(), kMaxStepBytes)));
      Tell();
    }
    {
      const CallerPin pin(*pool_);
      group_->Run();
    }
    if (releases_weights_) ReleaseWeights();
    tables_->HasRead(group_->rows().rows(), bundle_.archive);
    if (const Status status = bundle_.archive.CheckIntact(); !status.ok()) {
      if (transport_ != nullptr) transport_->Abort(status.ToString());
      return Fail(status);
    }
    ++steps_;
    return group_->lead().logits(LogitRows());
  }

  std::span<const float> block_max() const override {
    return group_->lead().block_max(LogitRows());
  }

  std::span<const float> hidden() const override {
    if (!group_->rows().wants_hidden()) return {};
    return group_->lead().hidden(LogitRows());
  }

  int workers() const override { return pool_->size(); }

  void ForEach(int64_t count, const std::function<void(int64_t, int)>& task) override {
    if (count < 2 || pool_->size() == 1) return Session::ForEach(count, task);
    next_task_.store(0, std::memory_order_relaxed);
    const CallerPin pin(*pool_);
    pool_->Run([&](int worker) {
      for (;;) {
        const int64_t i = next_task_.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) return;
        task(i, worker);
      }
    });
  }

  Status CopyPage(PageId from, PageId to) override {
    for (const PageId page : {from, to})
      if (page < 0 || page >= shape_.page_count)
        return InvalidArgument(fmt::format("page {} of {}", page, shape_.page_count));
    TellCommand(StepCommand::kCopyPage, from, to);
    kv_->Copy(from, to);
    return {};
  }

  void BackPage(PageId page) override {
    TellCommand(StepCommand::kBackPage, page, 0);
    kv_->Back(page);
  }

  Status Follow() override;

  std::span<std::byte> PageBytes(PageId page) override {
    if (transport_ != nullptr) return {};  // Other processes have the other heads.
    TESSERA_CHECK(page >= 0 && page < shape_.page_count);
    const auto bytes = static_cast<size_t>(kv_->layout().PageBytes());
    return {kv_->data() + static_cast<size_t>(page) * bytes, bytes};
  }

  std::string kv_identity() const override {
    const kernels::KvLayout& layout = kv_->layout();
    return fmt::format("contract {} layers {} kv_heads {} head_dim {} page_tokens {} type {}",
                       kernels::kNumericContract, layout.layers, layout.kv_heads, layout.head_dim,
                       layout.page_tokens, layout.type == kernels::KvType::kF16 ? "f16" : "int8");
  }

  SessionStats stats() const override {
    const WorkCounters work = group_->counters();
    return {.steps = steps_,
            .barriers = pool_->barriers(),
            .weight_bytes = work.weight_bytes,
            .kv_bytes = work.kv_bytes,
            .matmul_macs = work.matmul_macs,
            .attention_macs = work.attention_macs,
            .scratch_bytes = group_->scratch_bytes()};
  }

  std::vector<HeldMemory> memory() const override {
    std::vector<HeldMemory> held{{"kv", {kv_->data(), kv_->bytes()}, false}};
    for (const std::span<const std::byte> scratch : group_->scratch())
      held.push_back({"arena", scratch, false});
    for (const formats::SourceFile& file : bundle_.archive.files())
      held.push_back({"weights", file.mapping->bytes(), true});
    return held;
  }

 private:
  CpuSession(bundle::Bundle bundle, std::shared_ptr<Transport> transport)
      : bundle_(std::move(bundle)), transport_(std::move(transport)) {}

  /// The message to all ranks: its size, then its bytes.
  void Tell() {
    auto bytes = static_cast<int64_t>(message_.size());
    transport_->Broadcast(std::as_writable_bytes(std::span(&bytes, 1)));
    transport_->Broadcast(message_);
  }
  void TellCommand(StepCommand command, PageId first, PageId second) {
    if (transport_ == nullptr || transport_->rank() != 0) return;
    WriteCommand(command, first, second, &message_);
    Tell();
  }
  Result<int64_t> Agree(int64_t pages, const LoadOptions& options);
  void ReleaseWeights() const {
    for (const formats::SourceFile& file : bundle_.archive.files())
      file.mapping->DoneWith(0, file.mapping->bytes().size());
  }
  int64_t LogitRows() const { return std::ssize(group_->rows().logit_rows()); }

  bundle::Bundle bundle_;
  const std::shared_ptr<Transport> transport_;
  std::vector<std::byte> message_;
  ModelShape shape_;
  std::unique_ptr<KvMemory> kv_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<RankGroup> group_;
  std::unique_ptr<LookupTables> tables_;
  bool releases_weights_ = false;
  std::atomic<int64_t> next_task_{0};  // Of ForEach.
  uint64_t steps_ = 0;
};

Status CheckOptions(const LoadOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads)
    return InvalidArgument(fmt::format("{} threads, expected 1 to {}, or 0 for one per core",
                                       options.threads, kMaxThreads));
  if (options.max_rows < 1 || options.max_rows > kMaxRows)
    return InvalidArgument(
        fmt::format("max_rows {}, expected 1 to {}", options.max_rows, kMaxRows));
  if (options.kv.tokens < 0)
    return InvalidArgument(fmt::format("{} tokens of KV memory", options.kv.tokens));
  return {};
}

/// Patterns cost their archive nothing, and memory as soon as they are weights.
Status CheckSplatsFit(const bundle::Bundle& bundle, uint64_t available) {
  uint64_t bytes = 0;
  for (const bundle::RankProgram& rank : bundle.ranks)
    bytes += SplatBytes(rank.program, bundle.archive);
  if (bytes <= available) return {};
  return ResourceExhausted(fmt::format(
      "the parameters of this bundle are patterns (splats) that take {} bytes of memory "
      "when they run, and {} are available; it can be inspected and planned here",
      bytes, available));
}

/// Rank 0's number of KV pages, if this rank runs the same bundle with the same options.
Result<int64_t> CpuSession::Agree(int64_t pages, const LoadOptions& options) {
  struct Terms {
    std::array<char, 64> key{};
    int64_t max_rows = 0, kv_type = 0, pages = 0;
  };
  Terms own;
  const std::string key = bundle_.manifest.key;
  std::copy_n(key.begin(), std::min(key.size(), own.key.size() - 1), own.key.begin());
  own.max_rows = options.max_rows;
  own.kv_type = static_cast<int64_t>(options.kv_type);
  own.pages = pages;
  Terms common = own;
  transport_->Broadcast(std::as_writable_bytes(std::span(&common, 1)));
  if (common.key != own.key)
    return Fail(FailedPrecondition(fmt::format(
        "rank {} has bundle {}, rank 0 has {}; give all ranks the same model and options",
        transport_->rank(), own.key.data(), common.key.data())));
  if (common.max_rows != own.max_rows || common.kv_type != own.kv_type)
    return Fail(FailedPrecondition(fmt::format(
        "rank {} has other options than rank 0; start all with the same", transport_->rank())));
  return common.pages;
}

Status CpuSession::Follow() {
  if (transport_ == nullptr || transport_->rank() == 0) return Session::Follow();
  StepMessage message;
  for (;;) {
    int64_t bytes = 0;
    transport_->Broadcast(std::as_writable_bytes(std::span(&bytes, 1)));
    TESSERA_RETURN_IF_ERROR(CheckStepBytes(bytes));
    message_.resize(static_cast<size_t>(bytes));
    transport_->Broadcast(message_);
    TESSERA_RETURN_IF_ERROR(message.Read(message_, kv_->pages()));
    if (message.command == StepCommand::kEnd) return {};
    if (message.command == StepCommand::kCopyPage) kv_->Copy(message.first, message.second);
    if (message.command == StepCommand::kBackPage) kv_->Back(message.first);
    if (message.command != StepCommand::kStep) continue;
    TESSERA_RETURN_IF_ERROR(group_->Fill(message.chunks));
    {
      const CallerPin pin(*pool_);
      group_->Run();
    }
    tables_->HasRead(group_->rows().rows(), bundle_.archive);
    TESSERA_RETURN_IF_ERROR(bundle_.archive.CheckIntact());
  }
}

Result<std::unique_ptr<Session>> CpuSession::Make(bundle::Bundle bundle,
                                                  const LoadOptions& options) {
  if (bundle.ranks.empty()) bundle.ranks.push_back(bundle::WholeProgram(bundle.program));
  Transport* const transport = options.transport.get();
  if (transport != nullptr && bundle.ranks.size() != 1)
    return Fail(Unimplemented(
        "several processes serve a bundle: name its folder as MODEL, or start one process"));
  std::unique_ptr<CpuSession> session(new CpuSession(std::move(bundle), options.transport));
  bundle::Dims dims = session->bundle_.program.dims;
  if (transport != nullptr) dims.kv_heads = session->bundle_.ranks.front().program.dims.kv_heads;
  const Isa isa = options.isa.value_or(ReadIsa());
  const Topology topology = ReadTopology();  // Hundreds of small files: read once.
  const Neighbours neighbours = transport != nullptr ? transport->neighbours() : Neighbours{};
  const uint64_t available = topology.memory_available / static_cast<uint64_t>(neighbours.here);
  const kernels::KvLayout page{dims.layers, dims.kv_heads, dims.head_dim, dims.page_tokens,
                               options.kv_type};
  const KvShape kv_shape{dims.max_seq_len, dims.page_tokens, page.PageBytes()};
  TESSERA_ASSIGN_OR_RETURN(int64_t pages, KvPages(options.kv, kv_shape, available));
  if (transport != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(pages, session->Agree(pages, options));
  }
  if (topology.memory_bytes > 0)  // Else unknown.
    TESSERA_RETURN_IF_ERROR(CheckKvFits(options.kv, pages, kv_shape, available));
  TESSERA_ASSIGN_OR_RETURN(KvMemory kv, KvMemory::Make(dims, pages, options.kv_type));
  session->kv_ = std::make_unique<KvMemory>(std::move(kv));
  if (topology.memory_bytes > 0)
    TESSERA_RETURN_IF_ERROR(CheckSplatsFit(session->bundle_, available));
  TESSERA_ASSIGN_OR_RETURN(WorkerPlan workers,
                           PlanWorkers({.threads = options.threads,
                                        .device_ids = options.device_ids,
                                        .pin = options.pin_threads,
                                        .ranks = static_cast<int>(session->bundle_.ranks.size()),
                                        .neighbours = neighbours},
                                       topology));
  TESSERA_ASSIGN_OR_RETURN(
      session->pool_, ThreadPool::Make(workers.threads, std::move(workers.cpus), workers.crowded));
  std::function<void()> after_segment;
  session->releases_weights_ = options.release_weights;
  if (options.release_weights) after_segment = [self = session.get()] { self->ReleaseWeights(); };
  TESSERA_ASSIGN_OR_RETURN(
      session->group_, RankGroup::Make(session->bundle_, session->kv_.get(), isa, options.max_rows,
                                       session->pool_.get(), transport, std::move(after_segment)));
  session->tables_ =
      std::make_unique<LookupTables>(session->bundle_.program, session->bundle_.archive);
  const int64_t page_bytes = session->kv_->layout().PageBytes();
  session->shape_ = {.vocab_size = dims.vocab_size,
                     .hidden_size = dims.hidden,
                     .max_seq_len = dims.max_seq_len,
                     .layers = dims.layers,
                     .kv_bytes_per_token = page_bytes / dims.page_tokens,
                     .page_tokens = dims.page_tokens,
                     .page_count = session->kv_->pages(),
                     .max_rows = options.max_rows};
  // Others may take minutes longer to have their weights in memory: a step would not wait for them.
  if (transport != nullptr) transport->Meet();
  return session;
}

}  // namespace

Result<std::unique_ptr<Session>> LoadSession(const std::filesystem::path& bundle,
                                             const LoadOptions& options) {
  TESSERA_RETURN_IF_ERROR(CheckOptions(options));
  const auto check =
      options.verify_parameters ? bundle::Check::kEverything : bundle::Check::kSizesAndSmallFiles;
  std::optional<int64_t> rank;
  if (options.transport != nullptr) {
    // Before it opens a rank that the bundle has not.
    TESSERA_ASSIGN_OR_RETURN(const bundle::Manifest manifest, bundle::LoadManifest(bundle));
    if (manifest.tensor_parallel != options.transport->ranks())
      return Fail(FailedPrecondition(
          fmt::format("{} is made for tp{}, and {} processes were started; give --tp and mpirun -n "
                      "the same number",
                      bundle.string(), manifest.tensor_parallel, options.transport->ranks())));
    rank = options.transport->rank();
  }
  TESSERA_ASSIGN_OR_RETURN(bundle::Bundle opened, bundle::OpenBundle(bundle, check, rank));
  return CpuSession::Make(std::move(opened), options);
}

Result<std::unique_ptr<Session>> LoadSession(bundle::Bundle bundle, const LoadOptions& options) {
  TESSERA_RETURN_IF_ERROR(CheckOptions(options));
  return CpuSession::Make(std::move(bundle), options);
}

}  // namespace tessera::runtime
