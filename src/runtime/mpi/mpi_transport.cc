// SPDX-License-Identifier: Apache-2.0
//
// The module that carries a group over MPI. Everything is a non-blocking operation that is polled,
// so that a member that no longer answers within a step is an error and not a hang, and a group
// that has nothing to do sleeps.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/open_transport.h"
#include "runtime/transport.h"

namespace tessera::runtime {
namespace {

using std::chrono::steady_clock;

// How long a rank may be late. Within a step they are at most a projection apart.
constexpr auto kStepTimeout = std::chrono::seconds(60);
constexpr auto kNoTimeout = std::chrono::hours(24 * 365);
// Polls before a waiting process sleeps between them, and for how long at the most.
constexpr int kEagerPolls = 20'000;
constexpr auto kLongestSleep = std::chrono::microseconds(500);

constexpr int kLogitsTag = 0;
constexpr int kScatterTag = 1;
constexpr const char* kExchanging = "exchanging sums";

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FindNeighbours();
  }
  ~MpiTransport() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  Neighbours neighbours() const override { return neighbours_; }

  void Meet() override {
    MPI_Request request;
    Check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "meeting");
    Wait({&request, 1}, kNoTimeout, "meeting");
  }

  void Broadcast(std::span<std::byte> bytes) override {
    MPI_Request request;
    Check(MPI_Ibcast(bytes.data(), Count(std::ssize(bytes)), MPI_BYTE, 0, MPI_COMM_WORLD, &request),
          "broadcasting");
    Wait({&request, 1}, rank_ == 0 ? std::chrono::nanoseconds(kStepTimeout) : kNoTimeout,
         "broadcasting");
  }

  void Scatter(float* data, const SegmentSet& set, std::span<const int64_t> begins) override {
    requests_.clear();
    // The values `piece` of the segments of rank `owner`, a message each: one of strided pieces
    // would be copied twice between processes of one machine.
    const auto post = [&](int owner, int piece, const auto& start) {
      const int64_t begin = begins[static_cast<size_t>(piece)];
      const int values = Count(begins[static_cast<size_t>(piece) + 1] - begin);
      if (values == 0) return;
      float* at = data + set.Before(owner) * set.floats + begin;
      for (int64_t i = 0; i < set.counts[static_cast<size_t>(owner)]; ++i, at += set.floats)
        Check(start(at, values, &requests_.emplace_back()), kExchanging);
    };
    for (int peer = 0; peer < ranks_; ++peer)
      if (peer != rank_)
        post(peer, rank_, [&](float* at, int values, MPI_Request* request) {
          return MPI_Irecv(at, values, MPI_FLOAT, peer, kScatterTag, MPI_COMM_WORLD, request);
        });
    for (int peer = 0; peer < ranks_; ++peer)
      if (peer != rank_)
        post(rank_, peer, [&](float* at, int values, MPI_Request* request) {
          return MPI_Isend(at, values, MPI_FLOAT, peer, kScatterTag, MPI_COMM_WORLD, request);
        });
    Wait(requests_, kStepTimeout, kExchanging);
  }

  void AllGather(float* data, std::span<const int64_t> begins) override {
    counts_.clear();
    offsets_.clear();
    for (size_t i = 0; i + 1 < begins.size(); ++i) {
      counts_.push_back(Count(begins[i + 1] - begins[i]));
      offsets_.push_back(Count(begins[i]));
    }
    MPI_Request request;
    Check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, counts_.data(), offsets_.data(),
                          MPI_FLOAT, MPI_COMM_WORLD, &request),
          kExchanging);
    Wait({&request, 1}, kStepTimeout, kExchanging);
  }

  void GatherColumns(const ColumnsOf& matrix) override {
    requests_.clear();
    std::vector<MPI_Datatype> types;
    for (int rank = 1; rank < ranks_; ++rank) {
      const int64_t begin = matrix.begins[static_cast<size_t>(rank)];
      const int64_t width = matrix.begins[static_cast<size_t>(rank) + 1] - begin;
      if (width == 0 || (rank_ != 0 && rank_ != rank)) continue;
      MPI_Datatype type;
      Check(MPI_Type_vector(Count(matrix.rows), Count(width), Count(matrix.columns), MPI_FLOAT,
                            &type),
            "describing logits");
      Check(MPI_Type_commit(&type), "describing logits");
      types.push_back(type);
      requests_.emplace_back();
      float* data = matrix.data + begin;
      Check(rank_ == 0
                ? MPI_Irecv(data, 1, type, rank, kLogitsTag, MPI_COMM_WORLD, &requests_.back())
                : MPI_Isend(data, 1, type, 0, kLogitsTag, MPI_COMM_WORLD, &requests_.back()),
            "gathering logits");
    }
    Wait(requests_, kStepTimeout, "gathering logits");
    for (MPI_Datatype& type : types) MPI_Type_free(&type);
  }

  [[noreturn]] void Abort(std::string_view why) override {
    const std::string line = "tessera: rank " + std::to_string(rank_) + " of " +
                             std::to_string(ranks_) + ": " + std::string(why) +
                             "; the group ends\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::_Exit(1);
  }

 private:
  /// Ranks that may use the same CPUs would pin their workers to the same cores.
  void FindNeighbours() {
    MPI_Comm here;
    Check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
          "finding neighbours");
    int own = 0;
    MPI_Comm_rank(here, &own);
    MPI_Comm_size(here, &neighbours_.here);
    std::vector<cpu_set_t> masks(static_cast<size_t>(neighbours_.here));
    cpu_set_t& mine = masks[static_cast<size_t>(own)];
    CPU_ZERO(&mine);
    (void)::sched_getaffinity(0, sizeof(mine), &mine);
    Check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, masks.data(), sizeof(cpu_set_t),
                        MPI_BYTE, here),
          "finding neighbours");
    neighbours_.index = neighbours_.count = 0;
    for (int i = 0; i < neighbours_.here; ++i) {
      if (!CPU_EQUAL(&masks[static_cast<size_t>(i)], &mine)) continue;
      neighbours_.index += i < own ? 1 : 0;
      ++neighbours_.count;
    }
    MPI_Comm_free(&here);
  }

  int Count(int64_t count) {
    if (count < 0 || count > INT32_MAX) Abort("a step is too large for one message");
    return static_cast<int>(count);
  }

  void Check(int code, const char* what) {
    if (code == MPI_SUCCESS) return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    Abort(std::string(what) + ": " + std::string(text.data(), static_cast<size_t>(length)));
  }

  void Wait(std::span<MPI_Request> requests, std::chrono::nanoseconds timeout, const char* what) {
    const auto begin = steady_clock::now();
    auto nap = std::chrono::microseconds(1);
    for (int polls = 0;; ++polls) {
      int done = 0;
      Check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                        MPI_STATUSES_IGNORE),
            what);
      if (done != 0) return;
      if (polls < kEagerPolls) {
        if (polls % 64 == 63) std::this_thread::yield();
        continue;
      }
      if (steady_clock::now() - begin > timeout)
        Abort(std::string(what) + ": another rank has not answered for 60 s");
      std::this_thread::sleep_for(nap);
      nap = std::min(2 * nap, std::chrono::microseconds(kLongestSleep));
    }
  }

  int rank_ = 0;
  int ranks_ = 1;
  Neighbours neighbours_;
  std::vector<int> counts_, offsets_;
  std::vector<MPI_Request> requests_;
};

}  // namespace
}  // namespace tessera::runtime

extern "C" tessera::runtime::Transport* tessera_make_transport() {
  int provided = 0;
  // One thread at a time: the one that loads, then the one that steps.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
      provided < MPI_THREAD_SERIALIZED)
    return nullptr;
  return new tessera::runtime::MpiTransport();
}
